//! The environment of a verb.

use std::io::Write;

use kube::Client;
use stateward_clock::Clock;
use stateward_terminal as terminal;

use crate::error::Error;
use crate::views::invocation;
use crate::views::style::Style;

/// A cluster, a namespace, a clock and the output streams.
pub struct Session<'a> {
    /// The cluster.
    pub client: Client,
    /// The default namespace.
    pub namespace: String,
    /// The time, for ages.
    pub clock: Clock,
    /// The user in the kubeconfig, used if the API server does not report the user.
    pub user: Option<String>,
    /// How the user invoked the program, `stateward` or `kubectl stateward`, with the flags for the cluster and the namespace.
    pub program: &'a str,
    /// The style of the output.
    pub style: Style,
    /// Whether stdout is a terminal that can be drawn on.
    pub terminal: bool,
    /// Data.
    pub out: &'a mut (dyn Write + Send),
    /// Messages.
    pub talk: &'a mut (dyn Write + Send),
}

impl Session<'_> {
    /// The same session with another invocation.
    pub(crate) fn called<'a>(&'a mut self, program: &'a str) -> Session<'a> {
        Session {
            client: self.client.clone(),
            namespace: self.namespace.clone(),
            clock: self.clock.clone(),
            user: self.user.clone(),
            program,
            style: self.style,
            terminal: self.terminal,
            out: &mut *self.out,
            talk: &mut *self.talk,
        }
    }

    /// Prints a line for people. Like all output for people it may contain text from the cluster, which is sanitized.
    pub(crate) fn print(&mut self, line: &str) -> Result<(), Error> {
        write_line(self.out, line, self.style)
    }

    /// Prints lines for people.
    pub(crate) fn print_lines<L: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = L>,
    ) -> Result<(), Error> {
        lines.into_iter().try_for_each(|line| self.print(line.as_ref()))
    }

    /// The character set of data on a terminal; a pipe gets all characters.
    pub(crate) fn charset(&self) -> terminal::Charset {
        if self.terminal {
            self.style.charset()
        } else {
            terminal::Charset::Unicode
        }
    }

    /// Prints a document for tools, with a final newline.
    pub(crate) fn print_data(&mut self, text: &str) -> Result<(), Error> {
        self.print_raw(&format!("{text}\n"))
    }

    /// Prints raw data without a final newline. It is sanitized only for a terminal: a pipe gets the cluster's bytes.
    pub(crate) fn print_raw(&mut self, text: &str) -> Result<(), Error> {
        let text = if self.terminal {
            terminal::document(text, self.charset())
        } else {
            text.into()
        };
        write!(self.out, "{text}")
            .and_then(|()| self.out.flush())
            .map_err(Error::Output)
    }

    /// Prints an error and continues.
    pub(crate) fn complain(&mut self, error: &Error) {
        let line = format!("{}: {error}", invocation::name(self.program));
        self.say(&line);
    }

    /// Prints a message. A closed stderr is not an error.
    pub(crate) fn say(&mut self, line: &str) {
        let _ = write_line(self.talk, line, self.style);
    }
}

/// Writes one line for people. All text reaches stdout and stderr through this function; what is drawn on the whole screen goes through
/// [`terminal::spans`].
pub(crate) fn write_line(out: &mut dyn Write, line: &str, style: Style) -> Result<(), Error> {
    let line = terminal::line(line, style.charset());
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}
