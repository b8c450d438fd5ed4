//! Regular expressions in Go's syntax.
//!
//! Go and Rust share most of it. The differences are translated (`\d`, `\w`, `\s` and `\b` match ASCII in Go, `\Q…\E` quotes, `a{` is a
//! literal brace) or rejected (syntax that only Rust has).
//!
//! Patterns and texts are both untrusted, so the cost of a search is known before it begins: most patterns become an automaton that reads
//! every byte once, and one that does not fit is charged every byte as often as its program has states. The engines of the `regex` crate
//! do neither: they build their automaton during the search and may rebuild it at every byte.

use std::sync::Arc;

use regex_automata::Input;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;

use super::error::Wrong;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: String,
    engine: Engine,
    size: usize,
}

/// Why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongPattern {
    message: String,
    size: bool,
}

impl WrongPattern {
    /// Whether it is too large.
    pub(crate) fn is_size(&self) -> bool {
        self.size
    }

    pub(super) fn into_message(self) -> String {
        self.message
    }
}

/// The search engine of a pattern.
#[derive(Clone, Debug)]
enum Engine {
    /// Reads every byte once.
    Automaton(Arc<dense::DFA<Vec<u32>>>),
    /// Reads every byte once for every possible state.
    States(Arc<PikeVM>),
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// The maximum size of a compiled expression in bytes.
pub(crate) const SIZE: usize = 512 * 1024;
/// The maximum size of its automaton in bytes.
const AUTOMATON: usize = 256 * 1024;
/// The longest source, in characters.
pub(crate) const LONGEST: usize = 2_000;
/// The maximum number of character classes that are Unicode tables: each takes time to parse.
const MOST_TABLES: usize = 16;
/// A range of this many characters counts as a table: case folding walks through it.
const A_TABLE: u32 = 1_000;
/// Classes with a name, as in `[[:alpha:]]`.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];
/// The limit of Go for repetitions.
const MOST_REPEATS: u32 = 1000;

impl Pattern {
    /// The steps that compiling a pattern during an evaluation costs, even if it fails.
    pub(super) const COST: usize = 20_000;

    /// Compiles what Go would compile.
    pub(super) fn new(source: &str) -> Result<Self, WrongPattern> {
        Self::within(source, SIZE)
    }

    /// Compiles what Go would compile, to `most` bytes at most.
    pub(crate) fn within(source: &str, most: usize) -> Result<Self, WrongPattern> {
        if source.chars().nth(LONGEST).is_some() {
            return Err(WrongPattern {
                message: format!("a regular expression may have {LONGEST} characters; this one is longer"),
                size: true,
            });
        }
        let wrong = |message: String| WrongPattern {
            message: format!("{source:?} is not a regular expression: {message}"),
            size: false,
        };
        let translated = Translator::new(source).translate().map_err(wrong)?;
        let parsed = syntax::parse(&translated).map_err(|error| {
            // The last line is the error; the ones before show the translation.
            let message = error.to_string();
            wrong(message.lines().last().unwrap_or_default().trim().to_owned())
        })?;
        let too_large = || WrongPattern {
            size: true,
            ..wrong("it is too large when compiled".to_owned())
        };
        let most = most.min(SIZE);
        let limits = thompson::Config::new()
            .nfa_size_limit(Some(most))
            .which_captures(WhichCaptures::None);
        let program = thompson::Compiler::new()
            .configure(limits)
            .build_from_hir(&parsed)
            .map_err(|_| too_large())?;
        let engine = match automaton(&program) {
            Some(automaton) => Engine::Automaton(Arc::new(automaton)),
            None => Engine::States(Arc::new(
                PikeVM::builder()
                    .build_from_nfa(program.clone())
                    .map_err(|_| too_large())?,
            )),
        };
        let size = program.memory_usage()
            + match &engine {
                Engine::Automaton(automaton) => automaton.memory_usage(),
                Engine::States(_) => 0,
            };
        Ok(Self {
            source: source.to_owned(),
            engine,
            size,
        })
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether a search reads every byte once.
    pub(crate) fn is_linear(&self) -> bool {
        matches!(self.engine, Engine::Automaton(_))
    }

    /// The steps that searching a text of `length` bytes costs.
    pub(super) fn cost(&self, length: usize) -> usize {
        match &self.engine {
            Engine::Automaton(_) => length / 16,
            Engine::States(machine) => length.saturating_mul(machine.get_nfa().states().len()),
        }
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        match &self.engine {
            Engine::Automaton(automaton) => {
                let input = Input::new(text).earliest(true);
                // It has no quit bytes, so it does not fail.
                automaton
                    .try_search_fwd(&input)
                    .is_ok_and(|found| found.is_some())
            }
            Engine::States(machine) => machine.is_match(&mut machine.create_cache(), text),
        }
    }
}

/// The maximum size of all patterns of an expression in bytes.
const ALL: usize = 1024 * 1024;

/// The remaining size for the patterns of an expression.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(ALL)
    }
}

impl Room {
    /// Compiles the pattern at that character.
    pub(super) fn compile(&mut self, source: &str, at: usize) -> Result<Pattern, Wrong> {
        let pattern = Pattern::new(source).map_err(|wrong| Wrong::new(at, wrong.into_message()))?;
        self.0 = self
            .0
            .checked_sub(pattern.size())
            .ok_or_else(|| Wrong::new(at, "the patterns of this expression are too large together"))?;
        Ok(pattern)
    }

    /// The size used so far.
    pub(super) fn taken(&self) -> usize {
        ALL - self.0
    }
}

/// The automaton of a program; `None` if it would be too large.
fn automaton(program: &NFA) -> Option<dense::DFA<Vec<u32>>> {
    let limits = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(AUTOMATON))
        .determinize_size_limit(Some(AUTOMATON));
    let builder = dense::Builder::new().configure(limits).clone();
    builder.build_from_nfa(program).ok()
}

struct Translator {
    characters: Vec<char>,
    at: usize,
    out: String,
    tables: usize,
}

impl Translator {
    fn new(source: &str) -> Self {
        Self {
            characters: source.chars().collect(),
            at: 0,
            out: String::new(),
            tables: 0,
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn translate(mut self) -> Result<String, String> {
        while let Some(character) = self.peek(0) {
            match character {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '*' | '+' | '?' => {
                    self.out.push(character);
                    self.at += 1;
                    self.after_repeat()?;
                }
                '{' => match self.counts()? {
                    Some(end) => {
                        self.copy_to(end);
                        self.after_repeat()?;
                    }
                    None => {
                        self.out.push_str("\\{");
                        self.at += 1;
                    }
                },
                ']' | '}' => {
                    self.out.push('\\');
                    self.copy_to(self.at + 1);
                }
                _ => self.copy_to(self.at + 1),
            }
        }
        Ok(self.out)
    }

    fn copy_to(&mut self, end: usize) {
        self.out.extend(&self.characters[self.at..end]);
        self.at = end;
    }

    /// A question mark makes a repetition lazy; a repetition cannot be repeated again.
    fn after_repeat(&mut self) -> Result<(), String> {
        if self.peek(0) == Some('?') {
            self.copy_to(self.at + 1);
        }
        let again = match self.peek(0) {
            Some('*' | '+' | '?') => true,
            Some('{') => self.counts()?.is_some(),
            _ => false,
        };
        match again {
            true => Err("a repeat cannot be repeated without parentheses".into()),
            false => Ok(()),
        }
    }

    /// The end of `{2}`, `{2,}` or `{2,5}`, if there is one here.
    fn counts(&self) -> Result<Option<usize>, String> {
        let Some(length) = self.characters[self.at..]
            .iter()
            .position(|character| *character == '}')
        else {
            return Ok(None);
        };
        let inside: String = self.characters[self.at + 1..self.at + length].iter().collect();
        let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !number(least) || !most.is_empty() && !number(most) {
            return Ok(None);
        }
        let large =
            |text: &str| !text.is_empty() && text.parse::<u32>().map_or(true, |count| count > MOST_REPEATS);
        if large(least) || large(most) {
            return Err(format!("a repeat counts to {MOST_REPEATS} at most"));
        }
        Ok(Some(self.at + length + 1))
    }

    fn group(&mut self) -> Result<(), String> {
        // Empty flags.
        if (self.peek(1), self.peek(2)) == (Some('?'), Some(')')) {
            self.at += 3;
            return Ok(());
        }
        self.copy_to(self.at + 1);
        if self.peek(0) != Some('?') || matches!(self.peek(1), Some('P' | '<')) {
            return Ok(());
        }
        let flags = self.characters[self.at + 1..]
            .iter()
            .take_while(|character| !matches!(character, ':' | ')'));
        match flags.clone().find(|flag| !"imsU-".contains(**flag)) {
            Some(flag) => Err(format!("(?{flag} has no meaning; the flags are i, m, s and U")),
            None => {
                self.copy_to(self.at + 1 + flags.count());
                Ok(())
            }
        }
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(letter) = self.peek(1) else {
            return Err("there is a \\ at the end".into());
        };
        let inside = |class: &str| match in_class {
            true => class.to_owned(),
            false => format!("[{class}]"),
        };
        let translated = match letter {
            'd' => inside("0-9"),
            'w' => inside("0-9A-Za-z_"),
            's' => inside("\\t\\n\\f\\r "),
            'D' => "[^0-9]".into(),
            'W' => "[^0-9A-Za-z_]".into(),
            'S' => "[^\\t\\n\\f\\r ]".into(),
            'b' if !in_class => "(?-u:\\b)".into(),
            'B' if !in_class => "(?-u:\\B)".into(),
            'Q' if !in_class => {
                self.at += 2;
                while let Some(character) = self.peek(0) {
                    if character == '\\' && self.peek(1) == Some('E') {
                        self.at += 2;
                        break;
                    }
                    self.out.push_str(&format!("\\x{{{:X}}}", u32::from(character)));
                    self.at += 1;
                }
                return Ok(());
            }
            'A' | 'z' if !in_class => format!("\\{letter}"),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => format!("\\{letter}"),
            'p' | 'P' | 'x' => return self.braced(letter),
            '0'..='7' => return self.octal(letter),
            _ if letter.is_ascii_alphanumeric() => {
                return Err(format!("\\{letter} has no meaning"));
            }
            '<' | '>' => letter.to_string(),
            _ if letter.is_ascii() => format!("\\{letter}"),
            _ => return Err(format!("\\{letter} has no meaning")),
        };
        self.out.push_str(&translated);
        self.at += 2;
        Ok(())
    }

    /// Counts a class that is a Unicode table.
    fn one_more_table(&mut self) -> Result<(), String> {
        self.tables += 1;
        match self.tables > MOST_TABLES {
            true => Err(format!("it has more than {MOST_TABLES} classes of Unicode")),
            false => Ok(()),
        }
    }

    /// `\pL`, `\p{Greek}`, `\x7F` or `\x{10FFFF}`.
    fn braced(&mut self, letter: char) -> Result<(), String> {
        if letter != 'x' {
            self.one_more_table()?;
        }
        let end = match (letter, self.peek(2)) {
            (_, Some('{')) => self.characters[self.at..]
                .iter()
                .position(|character| *character == '}')
                .map(|length| self.at + length + 1),
            ('x', _) => Some(self.at + 4),
            _ => Some(self.at + 3),
        };
        match end.filter(|end| *end <= self.characters.len()) {
            Some(end) => {
                // `\p{^L}` is another way to write `\P{L}`.
                let negated = letter != 'x' && self.peek(3) == Some('^') && self.peek(2) == Some('{');
                if negated {
                    self.out.push_str(if letter == 'p' { "\\P{" } else { "\\p{" });
                    self.at += 4;
                }
                self.copy_to(end);
                Ok(())
            }
            None => Err(format!("\\{letter} is not complete")),
        }
    }

    fn octal(&mut self, first: char) -> Result<(), String> {
        let digits: String = self.characters[self.at + 1..]
            .iter()
            .take(3)
            .take_while(|digit| ('0'..='7').contains(*digit))
            .collect();
        if first != '0' && digits.len() == 1 {
            return Err("references to groups have no meaning".into());
        }
        let code = u32::from_str_radix(&digits, 8).unwrap_or(0);
        self.out.push_str(&format!("\\x{{{code:X}}}"));
        self.at += 1 + digits.len();
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        self.copy_to(self.at + 1);
        if self.peek(0) == Some('^') {
            self.copy_to(self.at + 1);
        }
        let start = self.at;
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return Err("] is missing".into()),
                (Some(']'), _) if self.at > start => {
                    self.copy_to(self.at + 1);
                    return Ok(());
                }
                (Some('['), Some(':')) if self.named_class()? => {}
                (Some('\\'), Some('d' | 'D' | 'w' | 'W' | 's' | 'S' | 'p' | 'P')) => self.escape(true)?,
                _ => self.class_range()?,
            }
        }
    }

    /// `[:alpha:]`, if there is one here.
    fn named_class(&mut self) -> Result<bool, String> {
        let rest: String = self.characters[self.at + 2..].iter().collect();
        let Some(end) = rest.find(":]") else {
            return Ok(false);
        };
        let name = &rest[..end];
        if !CLASSES.contains(&name.trim_start_matches('^')) {
            return Err(format!("there is no class [:{name}:]"));
        }
        self.copy_to(self.at + 2 + name.chars().count() + 2);
        Ok(true)
    }

    /// A character, or a range of them.
    fn class_range(&mut self) -> Result<(), String> {
        let from = self.class_character()?;
        let mut to = from;
        if self.peek(0) == Some('-') && self.peek(1).is_some_and(|next| next != ']') {
            self.at += 1;
            to = self.class_character()?;
        }
        if to < from {
            return Err(format!("there is nothing from {from:?} to {to:?}"));
        }
        if u32::from(to) - u32::from(from) >= A_TABLE {
            self.one_more_table()?;
        }
        self.out.push_str(&format!(
            "\\x{{{:X}}}-\\x{{{:X}}}",
            u32::from(from),
            u32::from(to)
        ));
        Ok(())
    }

    fn class_character(&mut self) -> Result<char, String> {
        let Some(character) = self.peek(0) else {
            return Err("] is missing".into());
        };
        self.at += 1;
        if character != '\\' {
            return Ok(character);
        }
        let Some(letter) = self.peek(0) else {
            return Err("there is a \\ at the end".into());
        };
        self.at += 1;
        Ok(match letter {
            'a' => '\u{7}',
            'f' => '\u{c}',
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'v' => '\u{b}',
            'x' => {
                let rest: String = self.characters[self.at..].iter().take(12).collect();
                let (digits, length) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                    Some((digits, _)) => (digits, digits.len() + 2),
                    None => (rest.get(..2).unwrap_or_default(), 2),
                };
                let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                self.at += length;
                code.ok_or("\\x needs the number of a character")?
            }
            '0'..='7' => {
                self.at -= 1;
                let digits: String = self.characters[self.at..]
                    .iter()
                    .take(3)
                    .take_while(|digit| ('0'..='7').contains(*digit))
                    .collect();
                if letter != '0' && digits.len() == 1 {
                    return Err("references to groups have no meaning".into());
                }
                self.at += digits.len();
                u32::from_str_radix(&digits, 8)
                    .ok()
                    .and_then(char::from_u32)
                    .ok_or("there is no such character")?
            }
            _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => letter,
            _ => return Err(format!("\\{letter} has no meaning")),
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r"^\d+$", "12", true)]
    #[case(r"^\d+$", "\u{0661}", false)]
    #[case(r"^\w$", "é", false)]
    #[case(r"\bok\b", "é ok", true)]
    #[case(r"^\Qa.b\E$", "a.b", true)]
    #[case(r"^\Qa.b\E$", "axb", false)]
    #[case(r"a{", "a{", true)]
    #[case(r"^a{2,3}$", "aaa", true)]
    #[case(r"^[[:alpha:]&&b]+$", "&ab", true)]
    #[case(r"^[^\D]$", "1", true)]
    #[case(r"^[]a-c^-]+$", "]abc^-", true)]
    #[case(r"^[\x41-\x{43}\n]$", "B", true)]
    #[case(r"^\p{^L}$", "1", true)]
    #[case(r"(?i)OK", "ok", true)]
    #[case(r"^\101$", "A", true)]
    #[case(r"^.$", "é", true)]
    fn patterns_mean_what_they_mean_in_go(#[case] pattern: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(Pattern::new(pattern).unwrap().is_match(text), expected);
    }

    #[rstest]
    #[case("a**")]
    #[case("(")]
    #[case("[a")]
    #[case(r"\1")]
    #[case("a{1001}")]
    #[case("[[:foo:]]")]
    #[case("[z-a]")]
    #[case("(?x)a")]
    #[case(r"\y")]
    #[case("a\\")]
    #[case(r"((((\w{900}){900}){900}){900})")]
    fn what_go_refuses_is_refused(#[case] pattern: &str) {
        let message = Pattern::new(pattern).unwrap_err().into_message();
        assert!(message.contains("is not a regular expression"), "{message}");
    }

    #[rstest]
    #[case::long("a".repeat(LONGEST + 1), "may have 2000 characters")]
    #[case::large(".{900}".repeat(20), "too large when compiled")]
    #[case::classes(r"\pL".repeat(17), "more than 16 classes of Unicode")]
    #[case::classes_in_brackets(r"[\pL]".repeat(17), "more than 16 classes of Unicode")]
    #[case::ranges("[\u{100}-\u{ffff}]".repeat(17), "more than 16 classes of Unicode")]
    fn what_takes_long_to_compile_is_refused(#[case] pattern: String, #[case] message: &str) {
        let found = Pattern::new(&pattern).unwrap_err().into_message();
        assert!(found.contains(message), "{found}");
        let ignoring_case = Pattern::new(&format!("(?i){pattern}")).unwrap_err();
        let ignoring_case = ignoring_case.into_message();
        assert!(ignoring_case.contains(message), "{ignoring_case}");
    }

    #[rstest]
    #[case::word("error", true)]
    #[case::anywhere(".*error.*", true)]
    #[case::ignoring_case("(?i)connection refused|timeout|deadline exceeded", true)]
    #[case::number(r"^\d+\.\d+$", true)]
    #[case::version(r"^v\d+\.\d+\.\d+(-[a-z0-9.]+)?$", true)]
    #[case::unicode(r"^\p{L}+$", true)]
    #[case::exponential("(a|b)*a(a|b){500}c", false)]
    #[case::large(".{0,200}z", false)]
    fn a_search_is_charged_what_it_takes(#[case] pattern: &str, #[case] linear: bool) {
        let pattern = Pattern::new(pattern).unwrap();
        assert_eq!(pattern.is_linear(), linear);
        let cost = pattern.cost(1_000_000);
        assert_eq!(cost < 100_000, linear, "{cost}");
        assert!(linear || cost > 100_000_000, "{cost}");
        assert!(pattern.size() <= SIZE + AUTOMATON);
    }

    #[test]
    fn both_engines_find_the_same() {
        for (pattern, text, expected) in [
            ("(a|b)*a(a|b){500}c", "ab".repeat(300) + "bc", true),
            ("(a|b)*a(a|b){500}c", "ab".repeat(300), false),
            ("ab+c", "xabbbc".to_owned(), true),
        ] {
            assert_eq!(
                Pattern::new(pattern).unwrap().is_match(&text),
                expected,
                "{pattern}"
            );
        }
    }
}
