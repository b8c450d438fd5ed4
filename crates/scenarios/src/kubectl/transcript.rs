//! The file format of transcripts.
//!
//! ```text
//! # a comment, up to the next command
//! #: only the last line counts
//! $ kubectl rollout status sts/db
//! partitioned roll out complete: 3 new pods have been updated...
//! $ kubectl delete pod nobody
//! 2> Error from server (NotFound): pods "nobody" not found
//! = exit 1
//! $ kubectl apply -f - <<END
//! > kind: …
//! > END
//! ```
//!
//! A line that begins with `$ ` is a command for a shell, continued by lines that begin with `> `. What follows is what was
//! recorded: standard output as it is, standard error after `2> `, the exit status after `= exit ` unless it is 0. Lines of
//! output that look like one of these are indented by a backslash. `#:` lines say how the next command is to be taken.

use anyhow::{Context, Result, bail};

/// A script with its recorded answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Transcript {
    /// The comment that opens the file, without what recording adds to it.
    pub(super) opening: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// One command and its answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// The comment and the directives above it, as written.
    pub(super) above: Vec<String>,
    /// The shell command: several lines if it has a here-document.
    pub(super) command: String,
    pub(super) taken: Taken,
    /// How much of the answer counts.
    pub(super) counts: Counts,
    /// How many lines of output to read from a command that does not end by itself.
    pub(super) ends_after: Option<usize>,
    /// A command to run once the first line of output has appeared.
    pub(super) meanwhile: Option<String>,
    pub(super) recorded: Answer,
}

/// Where a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Everywhere,
    /// The embedded cluster differs on purpose. The recorded answer is its own.
    EmbeddedOnly,
    RealOnly,
}

/// How much of an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    All,
    /// The earlier lines depend on timing.
    LastLine,
    /// The order of the lines is not defined.
    Sorted,
    /// Nothing: the step cleans up or waits.
    Nothing,
}

/// The normalised output of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) code: i32,
}

/// The line that recording adds at the top of a file.
const RECORDED: &str = "# Recorded from Kubernetes ";
/// Added to that line if some steps ran on the embedded cluster only.
const EMBEDDED: &str = ", and from the embedded cluster what is marked so,";

impl Transcript {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines().peekable();
        let mut opening = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('#')) {
            if !line.starts_with(RECORDED) {
                opening.push(line.to_owned());
            }
        }
        let mut steps = Vec::new();
        let mut above = Vec::new();
        while let Some(line) = lines.next() {
            if let Some(first) = line.strip_prefix("$ ") {
                let mut command = first.to_owned();
                while let Some(more) = lines.next_if(|line| line.starts_with('>')) {
                    command.push('\n');
                    command.push_str(more.strip_prefix("> ").unwrap_or_default());
                }
                let mut answer = Vec::new();
                while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with('#'))
                {
                    answer.push(line);
                }
                let comment = std::mem::take(&mut above);
                steps.push(Step::new(comment, command, Answer::parse(&answer)?)?);
            } else if line.starts_with('#') || line.is_empty() {
                above.push(line.to_owned());
            } else {
                bail!("{line:?} is neither a comment nor a command, and no command is above it");
            }
        }
        Ok(Self { opening, steps })
    }

    /// The file, with a line that names the source of its answers.
    pub(super) fn render(&self, version: &str, command: &str) -> String {
        let ours = self.steps.iter().any(|step| step.taken == Taken::EmbeddedOnly);
        let but = if ours { EMBEDDED } else { "" };
        let mut text = format!("{RECORDED}{version}{but} by: {command}\n");
        for line in &self.opening {
            text.push_str(line);
            text.push('\n');
        }
        for step in &self.steps {
            text.push('\n');
            for line in step.above.iter().filter(|line| !line.is_empty()) {
                text.push_str(line);
                text.push('\n');
            }
            text.push_str("$ ");
            text.push_str(&step.command.replace('\n', "\n> "));
            text.push('\n');
            text.push_str(&step.recorded.render());
        }
        // An empty line of a here-document has nothing after the `>`.
        text.replace("\n> \n", "\n>\n")
    }
}

impl Step {
    fn new(above: Vec<String>, command: String, recorded: Answer) -> Result<Self> {
        let mut step = Self {
            above,
            command,
            taken: Taken::Everywhere,
            counts: Counts::All,
            ends_after: None,
            meanwhile: None,
            recorded,
        };
        for line in step.above.clone() {
            let Some(directive) = line.strip_prefix("#:").map(str::trim) else {
                continue;
            };
            // The text after a comma is a reason for the reader.
            match directive.split(',').next().unwrap_or_default() {
                "embedded only" => step.taken = Taken::EmbeddedOnly,
                "real only" => step.taken = Taken::RealOnly,
                "only the last line counts" => step.counts = Counts::LastLine,
                "in any order" => step.counts = Counts::Sorted,
                "whatever it says" => step.counts = Counts::Nothing,
                _ => step.long_directive(directive)?,
            }
        }
        Ok(step)
    }

    fn long_directive(&mut self, directive: &str) -> Result<()> {
        if let Some(command) = directive.strip_prefix("after the first line: ") {
            self.meanwhile = Some(command.to_owned());
        } else if let Some(count) = directive.strip_prefix("ends after lines: ") {
            self.ends_after = Some(
                count
                    .parse()
                    .with_context(|| format!("{count:?} is not a number of lines"))?,
            );
        } else {
            bail!("unknown directive {directive:?}");
        }
        Ok(())
    }
}

impl Answer {
    fn parse(lines: &[&str]) -> Result<Self> {
        let mut answer = Self::default();
        for line in lines {
            if let Some(line) = line.strip_prefix("2> ") {
                answer.stderr.push_str(line);
                answer.stderr.push('\n');
            } else if let Some(code) = line.strip_prefix("= exit ") {
                answer.code = code
                    .parse()
                    .with_context(|| format!("{code:?} is not an exit status"))?;
            } else {
                answer.stdout.push_str(line.strip_prefix('\\').unwrap_or(line));
                answer.stdout.push('\n');
            }
        }
        Ok(answer.trimmed())
    }

    /// Without leading and trailing empty lines, which the file's layout would hide.
    pub(super) fn trimmed(mut self) -> Self {
        for text in [&mut self.stdout, &mut self.stderr] {
            *text = text.trim_matches('\n').to_owned();
        }
        self
    }

    /// As a terminal would show it.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for line in self.stdout.lines() {
            if ["$ ", "#", ">", "2> ", "= exit ", "\\"]
                .iter()
                .any(|mark| line.starts_with(mark))
            {
                text.push('\\');
            }
            text.push_str(line);
            text.push('\n');
        }
        for line in self.stderr.lines() {
            text.push_str("2> ");
            text.push_str(line);
            text.push('\n');
        }
        if self.code != 0 {
            text.push_str(&format!("= exit {}\n", self.code));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# Recorded from Kubernetes v1 by: someone
# What this is about.

$ kubectl get pods
NAME   READY

db-0   1/1
\\# not a comment

# Then it goes wrong.
#: whatever it says, because it is only tidying up
$ kubectl apply -f - <<END
> kind: Pod
>
> END
2> error: no
= exit 1
";

    #[test]
    fn a_file_is_read_and_written_back_as_it_was() {
        let read = Transcript::parse(FILE).unwrap();
        assert_eq!(read.opening, ["# What this is about."]);
        assert_eq!(
            read.steps[0].recorded.stdout,
            "NAME   READY\n\ndb-0   1/1\n# not a comment"
        );
        assert_eq!(
            read.steps[1].command,
            "kubectl apply -f - <<END\nkind: Pod\n\nEND"
        );
        assert_eq!(read.steps[1].counts, Counts::Nothing);
        assert_eq!(
            (
                read.steps[1].recorded.stderr.as_str(),
                read.steps[1].recorded.code
            ),
            ("error: no", 1)
        );
        assert_eq!(read.render("v1", "someone"), FILE);
    }

    #[test]
    fn an_unknown_directive_is_refused() {
        let error = Transcript::parse("#\n\n#: perhaps\n$ kubectl\n")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "unknown directive \"perhaps\"");
    }
}
