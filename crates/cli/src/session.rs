//! What a verb works with.

use std::io::Write;

use kube::Client;
use stateward_clock::Clock;
use stateward_terminal as terminal;

use crate::call;
use crate::error::Error;
use crate::style::Style;

/// A cluster, a place in it, and where to write.
pub struct Session<'a> {
    /// The cluster.
    pub client: Client,
    /// The namespace, where the arguments name none.
    pub namespace: String,
    /// The time, for ages.
    pub clock: Clock,
    /// The user that the kubeconfig names, for where the API server does not say who asks.
    pub user: Option<String>,
    /// How the user calls us, `stateward` or `kubectl stateward`, with the flags that say which cluster and namespace are meant.
    pub program: &'a str,
    /// How output looks.
    pub style: Style,
    /// Data goes to a terminal, which can be drawn on.
    pub terminal: bool,
    /// For data.
    pub out: &'a mut (dyn Write + Send),
    /// For talk.
    pub talk: &'a mut (dyn Write + Send),
}

impl Session<'_> {
    /// The same, with another way to call us.
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

    /// A line for people. Like everything that is printed for people it may contain text from the cluster, which is sanitized.
    pub(crate) fn print(&mut self, line: &str) -> Result<(), Error> {
        write_line(self.out, line, self.style)
    }

    /// Lines for people.
    pub(crate) fn print_lines<L: AsRef<str>>(
        &mut self,
        lines: impl IntoIterator<Item = L>,
    ) -> Result<(), Error> {
        lines.into_iter().try_for_each(|line| self.print(line.as_ref()))
    }

    /// The characters that data has on its way to a terminal; in a pipe it has all.
    pub(crate) fn charset(&self) -> terminal::Charset {
        if self.terminal {
            self.style.charset()
        } else {
            terminal::Charset::Unicode
        }
    }

    /// A document for machines, with an end of line.
    pub(crate) fn print_data(&mut self, text: &str) -> Result<(), Error> {
        self.print_raw(&format!("{text}\n"))
    }

    /// Data as it is, without an end of line. It is sanitized only on its way to a terminal: in a pipe it stays what the cluster has.
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

    /// An error that is not the end yet.
    pub(crate) fn complain(&mut self, error: &Error) {
        let line = format!("{}: {error}", call::name(self.program));
        self.say(&line);
    }

    /// A line of talk. That nobody listens is no failure.
    pub(crate) fn say(&mut self, line: &str) {
        let _ = write_line(self.talk, line, self.style);
    }
}

/// Writes one line for people. This is the only way by which text reaches stdout and stderr; what is drawn on a whole screen goes
/// through [`terminal::spans`].
pub(crate) fn write_line(out: &mut dyn Write, line: &str, style: Style) -> Result<(), Error> {
    let line = terminal::line(line, style.charset());
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}
