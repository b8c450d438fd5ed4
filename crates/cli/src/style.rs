//! Colour and line drawing, where the terminal has them. Neither carries meaning alone.

use std::env;
use std::io::IsTerminal;

/// How output looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Escape sequences for colour.
    pub colour: bool,
    /// No characters beyond ASCII.
    pub ascii: bool,
}

/// The pieces of a tree.
pub(crate) struct Lines {
    pub(crate) branch: &'static str,
    pub(crate) last: &'static str,
    pub(crate) trunk: &'static str,
    pub(crate) done: &'static str,
    pub(crate) here: &'static str,
    pub(crate) ahead: &'static str,
}

impl Style {
    /// What standard output and the environment ask for.
    pub fn of_the_terminal() -> Self {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        Self {
            colour: std::io::stdout().is_terminal() && set("NO_COLOR").is_none() && !dumb,
            ascii: locale.is_some_and(|locale| matches!(locale.as_str(), "C" | "POSIX")),
        }
    }

    pub(crate) fn lines(self) -> Lines {
        if self.ascii {
            Lines {
                branch: "|- ",
                last: "`- ",
                trunk: "|  ",
                done: "x",
                here: ">",
                ahead: ".",
            }
        } else {
            Lines {
                branch: "├─ ",
                last: "└─ ",
                trunk: "│  ",
                done: "✓",
                here: "▶",
                ahead: "·",
            }
        }
    }

    /// A text cut to so many characters, if it is longer.
    pub(crate) fn short(self, text: &str, most: usize) -> String {
        let end = if self.ascii { "..." } else { "…" };
        match text.char_indices().nth(most) {
            Some((at, _)) => format!("{}{end}", text[..at].trim_end()),
            None => text.to_owned(),
        }
    }

    /// The word of a phase, or of a pod's state.
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

    /// The step that a rollout stands at.
    pub(crate) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// What is told beside the matter.
    pub(crate) fn note(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// A line that is there no more.
    pub(crate) fn gone(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// A line that is new.
    pub(crate) fn come(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
