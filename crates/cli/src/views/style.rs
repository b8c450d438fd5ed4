//! Colour and line drawing, if the terminal supports them. Neither carries meaning alone.

use std::env;
use std::ffi::OsStr;
use std::io::IsTerminal;

use stateward_terminal::Charset;

/// The style of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Use escape sequences for colour.
    pub colour: bool,
    /// Use ASCII only.
    pub ascii: bool,
}

/// The symbols of a tree.
pub(crate) struct Lines {
    pub(crate) branch: &'static str,
    pub(crate) last: &'static str,
    pub(crate) trunk: &'static str,
    pub(crate) done: &'static str,
    pub(crate) here: &'static str,
    pub(crate) ahead: &'static str,
    /// A skipped step.
    pub(crate) skipped: &'static str,
}

/// Whether the locale has the characters for trees. Without a locale, UTF-8 is assumed.
fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Whether a terminal of this type supports cursor movement.
fn can_be_drawn_on(term: Option<&OsStr>) -> bool {
    term.is_none_or(|term| term != "dumb")
}

impl Style {
    /// The style for standard output and the environment.
    pub fn of_the_terminal() -> Self {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        Self {
            colour: Self::has_a_screen() && set("NO_COLOR").is_none(),
            ascii: locale.is_some_and(|locale| !is_utf8(&locale)),
        }
    }

    /// The characters that are written unescaped.
    pub fn charset(self) -> Charset {
        Charset::of(self.ascii)
    }

    /// Whether standard output is a terminal that can be drawn on.
    pub fn has_a_screen() -> bool {
        std::io::stdout().is_terminal() && can_be_drawn_on(env::var_os("TERM").as_deref())
    }

    pub(crate) fn lines(self) -> Lines {
        if self.ascii {
            Lines {
                branch: "|- ",
                last: "`- ",
                trunk: "|  ",
                done: "v",
                here: ">",
                ahead: ".",
                skipped: "-",
            }
        } else {
            Lines {
                branch: "├─ ",
                last: "└─ ",
                trunk: "│  ",
                done: "✓",
                here: "▶",
                ahead: "·",
                skipped: "»",
            }
        }
    }

    /// Truncates a text to a number of characters.
    pub(crate) fn short(self, text: &str, most: usize) -> String {
        let end = if self.ascii { "..." } else { "…" };
        match text.char_indices().nth(most) {
            Some((at, _)) => format!("{}{end}", text[..at].trim_end()),
            None => text.to_owned(),
        }
    }

    /// Colours a phase or a pod's state.
    pub(crate) fn state(self, word: &str) -> String {
        let code = match word {
            "Successful" | "Ready" => "32",
            "Paused" => "33",
            "Progressing" => "36",
            "Failed"
            | "CrashLoopBackOff"
            | "Error"
            | "ImagePullBackOff"
            | "ErrImagePull"
            | "OOMKilled"
            | "CreateContainerConfigError" => "31",
            _ => return word.to_owned(),
        };
        self.paint(code, word)
    }

    /// Emphasizes the current step of a rollout.
    pub(crate) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Dims a note.
    pub(crate) fn note(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// Marks a removed line.
    pub(crate) fn gone(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Marks an added line.
    pub(crate) fn come(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Marks text for colouring. The marks become escape sequences when the line is written.
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            stateward_terminal::paint(code, text)
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn a_dumb_terminal_is_not_drawn_on() {
        assert!(!can_be_drawn_on(Some(OsStr::new("dumb"))));
        assert!(can_be_drawn_on(Some(OsStr::new("xterm"))) && can_be_drawn_on(None));
    }

    #[rstest]
    #[case("en_US.UTF-8", true)]
    #[case("C.utf8", true)]
    #[case("de_DE.UTF-8@euro", true)]
    #[case("en_US.ISO-8859-1", false)]
    #[case("en_US", false)]
    #[case("C", false)]
    #[case("POSIX", false)]
    fn only_what_a_locale_has_is_drawn(#[case] locale: &str, #[case] expected: bool) {
        assert_eq!(is_utf8(locale), expected);
    }

    #[test]
    fn what_is_done_looks_unlike_what_is_unwell() {
        let ascii = Style {
            colour: false,
            ascii: true,
        };
        assert_eq!(ascii.lines().done, "v");
    }
}
