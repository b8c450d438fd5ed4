//! Untrusted text on a terminal.
//!
//! Status messages, change causes, pod messages, names and the API server's own errors are written by users of a cluster. On a
//! terminal an escape sequence in them moves the cursor, changes the clipboard or hides earlier output; bidirectional overrides
//! reorder a line. Everything that is printed for people passes through this crate, which replaces such characters.
//!
//! - [`paint`] marks text with a style. The mark is not an escape sequence yet, and its key is chosen at random in each process, so
//!   that text from a cluster cannot contain one.
//! - [`line`] converts a marked line to output: our own styles become escape sequences, every other character that a terminal would
//!   interpret becomes one visible character, so that [`width`] holds before and after.
//! - [`spans`] does the same for a screen that is drawn in pieces.
//! - [`plain`] is for text without styles that is not for a terminal: pictures, logs.
//! - [`document`] keeps line ends and tabs, for YAML and for users' own templates.
//! - [`json`] keeps the data: unsafe characters are escaped as in JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Replaces an unsafe character.
const REPLACEMENT: char = '\u{FFFD}';

/// The same if only ASCII can be shown.
const ASCII_REPLACEMENT: char = '?';

/// The start of a mark: a random key from Unicode's private use area.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u8(0);
    let mut bits = hasher.finish();
    let mut key = String::from('\u{FDD0}');
    for _ in 0..8 {
        let offset = u32::try_from(bits & 0xff).unwrap_or_default();
        key.extend(char::from_u32(0xE000 + offset));
        bits >>= 8;
    }
    key
});

/// The end of the style in a mark.
const END: char = 'm';

/// Text with a style: `code` is a parameter of the SGR escape sequence, such as `31` for red.
pub fn paint(code: &str, text: &str) -> String {
    let mark = MARK.as_str();
    format!("{mark}{code}{END}{text}{mark}0{END}")
}

/// Which characters are written unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// All safe characters.
    #[default]
    Unicode,
    /// ASCII only. In UTF-8 a letter may contain bytes that a terminal with another encoding interprets as control characters.
    Ascii,
}

impl Charset {
    /// [`Charset::Ascii`] if `ascii` is true.
    pub fn of(ascii: bool) -> Self {
        if ascii { Self::Ascii } else { Self::Unicode }
    }
}

/// Whether a terminal would interpret this character instead of showing it: C0 and C1 controls, bidirectional controls, line and
/// paragraph separators, and other format characters that change or hide the text around them. Includes what XML 1.0 forbids.
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061C}'
                | '\u{200E}'
                | '\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2066}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                // Not characters: XML does not allow them.
                | '\u{FFFE}'..='\u{FFFF}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

fn shown(character: char) -> char {
    match character {
        // They separate words, so a space keeps the text readable.
        '\n' | '\t' => ' ',
        character if is_unsafe(character) => REPLACEMENT,
        character => character,
    }
}

/// One line as it is written to a terminal or a pipe, without its end. Our own styles become escape sequences; a line end in the
/// text becomes a space. `charset` applies to the text; the caller chooses its own decoration.
pub fn line(marked: &str, charset: Charset) -> String {
    let mut out = String::with_capacity(marked.len());
    for (code, text) in pieces(marked) {
        if let Some(code) = code {
            let _ = write!(out, "\x1b[{code}m");
        }
        out.extend(text.chars().map(|character| within(shown(character), charset)));
    }
    out
}

fn within(character: char, charset: Charset) -> char {
    if charset == Charset::Ascii && !character.is_ascii() {
        ASCII_REPLACEMENT
    } else {
        character
    }
}

/// A marked line in pieces: the SGR parameter of our own style, if the piece has one, and its text, which is safe to draw.
pub fn spans(marked: &str, charset: Charset) -> Vec<(Option<String>, String)> {
    let piece = |(code, text): (Option<&str>, &str)| {
        let code = code.filter(|code| *code != "0").map(str::to_owned);
        let shown = |character| within(shown(character), charset);
        (code, text.chars().map(shown).collect())
    };
    let spans = pieces(marked).map(piece);
    spans.filter(|(_, text): &(_, String)| !text.is_empty()).collect()
}

/// How many columns a marked line takes, before and after it is written.
pub fn width(marked: &str) -> usize {
    pieces(marked).map(|(_, text)| text.chars().count()).sum()
}

/// The pieces between marks, each with the code of the mark before it.
fn pieces(marked: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let mut split = marked.split(MARK.as_str());
    let first = split.next().map(|text| (None, text));
    let rest = split.map(|piece| match piece.split_once(END) {
        Some((code, text)) => (Some(code), text),
        None => (None, piece),
    });
    first.into_iter().chain(rest)
}

/// Text without styles, in one line, for outputs other than terminals: pictures, logs. Their encoding is known.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        text.chars().map(shown).collect::<String>().into()
    } else {
        text.into()
    }
}

/// Text of several lines: line ends and tabs stay.
pub fn document(text: &str, charset: Charset) -> Cow<'_, str> {
    let is_layout = |character: char| matches!(character, '\n' | '\t');
    let is_replaced = |c: char| is_unsafe(c) && !is_layout(c) || within(c, charset) != c;
    if text.chars().any(is_replaced) {
        let shown = |c: char| match is_layout(c) {
            true => c,
            false => within(shown(c), charset),
        };
        text.chars().map(shown).collect::<String>().into()
    } else {
        text.into()
    }
}

/// JSON with the same data, in which unsafe characters, and those that `charset` lacks, are escaped. Outside of strings, JSON
/// contains no unsafe characters but line ends and tabs.
pub fn json(text: &str, charset: Charset) -> Cow<'_, str> {
    let escaped = |c: char| is_unsafe(c) && !matches!(c, '\n' | '\t' | '\r') || within(c, charset) != c;
    if !text.chars().any(escaped) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests;
