//! Templates with embedded paths, as in `kubectl -o jsonpath=…`: `{range .items[*]}{.metadata.name}{"\n"}{end}`.

use std::fmt;

use serde_json::Value;

use crate::JsonPath;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Values(Expression),
    Range(Expression, Vec<Piece>),
}

/// A path in braces.
#[derive(Clone, Debug, PartialEq)]
struct Expression {
    path: JsonPath,
    /// It begins with `$`: inside a range it still applies to the whole value.
    from_root: bool,
    text: String,
    at: usize,
}

/// An error in a template, or in the value it is rendered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The position of the error in characters, from 1.
    pub at: usize,
    /// The error.
    pub what: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at, self.what)
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut reader = Reader { text, at: 0 };
        let pieces = reader.pieces(None)?;
        Ok(Self { pieces })
    }

    /// The text for a value. A path without a match renders as nothing, as with kubectl.
    pub fn render(&self, value: &Value) -> Result<String, TemplateError> {
        let mut out = String::new();
        render(&self.pieces, value, value, &mut out)?;
        Ok(out)
    }
}

fn render(pieces: &[Piece], root: &Value, here: &Value, out: &mut String) -> Result<(), TemplateError> {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Values(expression) => {
                let found = expression.find(root, here)?;
                let words: Vec<_> = found.iter().map(|value| plain(value)).collect();
                out.push_str(&words.join(" "));
            }
            Piece::Range(expression, inner) => {
                for item in expression.find(root, here)? {
                    render(inner, root, item, out)?;
                }
            }
        }
    }
    Ok(())
}

/// Strings as they are, everything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Expression {
    fn find<'v>(&'v self, root: &'v Value, here: &'v Value) -> Result<Vec<&'v Value>, TemplateError> {
        let from = if self.from_root { root } else { here };
        self.path.all(from).ok_or_else(|| TemplateError {
            at: self.at,
            what: format!("{{{}}} does not fit the object", self.text),
        })
    }
}

struct Reader<'t> {
    text: &'t str,
    /// In bytes.
    at: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, at: usize, what: impl Into<String>) -> Result<T, TemplateError> {
        Err(TemplateError {
            at: self.text[..at].chars().count() + 1,
            what: what.into(),
        })
    }

    /// Up to the end, or to the `{end}` of the range opened at `opened`.
    fn pieces(&mut self, opened: Option<usize>) -> Result<Vec<Piece>, TemplateError> {
        let mut pieces = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(open) = rest.find('{') else {
                if let Some(opened) = opened {
                    return self.fail(opened, "this range has no {end}");
                }
                if !rest.is_empty() {
                    pieces.push(Piece::Text(rest.to_owned()));
                }
                self.at = self.text.len();
                return Ok(pieces);
            };
            if open > 0 {
                pieces.push(Piece::Text(rest[..open].to_owned()));
            }
            let brace = self.at + open;
            let inner = self.braces(brace)?;
            let (inner, from) = (inner.trim_start().trim_end_matches(' '), brace);
            match inner
                .strip_prefix("range")
                .filter(|rest| rest.starts_with([' ', '.', '$', '@', '[']))
            {
                Some(path) => {
                    let expression = self.expression(path.trim(), from)?;
                    let looped = self.pieces(Some(from))?;
                    pieces.push(Piece::Range(expression, looped));
                }
                None if inner == "end" && opened.is_some() => return Ok(pieces),
                None if inner == "end" => return self.fail(from, "{end} ends no range"),
                None => pieces.push(Piece::Values(self.expression(inner, from)?)),
            }
        }
    }

    /// The text between the brace at `open` and its closing brace; moves past that.
    fn braces(&mut self, open: usize) -> Result<String, TemplateError> {
        let (mut quote, mut escaped) = (None, false);
        for (offset, c) in self.text[open + 1..].char_indices() {
            match (quote, c) {
                _ if escaped => escaped = false,
                (_, '\\') => escaped = true,
                (Some(open), c) if open == c => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                (None, '}') => {
                    let close = open + 1 + offset;
                    self.at = close + 1;
                    return Ok(self.text[open + 1..close].to_owned());
                }
                _ => {}
            }
        }
        self.fail(open, "this brace is not closed")
    }

    fn expression(&self, text: &str, at: usize) -> Result<Expression, TemplateError> {
        let Some(path) = JsonPath::parse(text).filter(|_| !text.is_empty()) else {
            return self.fail(
                at,
                format!("{{{text}}} is no path; write one such as {{.status.phase}}"),
            );
        };
        Ok(Expression {
            path,
            from_root: text.starts_with('$'),
            text: text.to_owned(),
            at: self.text[..at].chars().count() + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    fn list() -> Value {
        json!({"kind": "List", "items": [
            {"metadata": {"name": "db"}, "status": {"phase": "Paused", "pods": [{"name": "db-0"}, {"name": "db-1"}], "n": 2}},
            {"metadata": {"name": "web"}, "status": {}},
        ]})
    }

    #[rstest]
    #[case("{.kind}", "List")]
    #[case("kind: {.kind}\n", "kind: List\n")]
    #[case(".kind", ".kind")]
    #[case("{.items[*].metadata.name}", "db web")]
    #[case(
        r#"{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}"#,
        "db\tPaused\nweb\t\n"
    )]
    #[case(
        r#"{range .items[*]}{range .status.pods[*]}{.name}{","}{end}{";"}{end}"#,
        "db-0,db-1,;;"
    )]
    #[case("{range .items[*]}{$.kind}{@.metadata.name} {end}", "Listdb Listweb ")]
    #[case(r#"{.items[?(@.status.phase=="Paused")].metadata.name}"#, "db")]
    #[case("{.items[0].status.n}", "2")]
    #[case("{.items[0].status.pods[0]}", r#"{"name":"db-0"}"#)]
    #[case("{.missing}", "")]
    #[case(r#"{"}"}"#, "}")]
    fn a_template_prints_what_it_prints_upstream(#[case] template: &str, #[case] expected: &str) {
        assert_eq!(
            Template::parse(template).unwrap().render(&list()).unwrap(),
            expected
        );
    }

    #[rstest]
    #[case("{.kind", "at character 1: this brace is not closed")]
    #[case(
        "ä {.items[}",
        "at character 3: {.items[} is no path; write one such as {.status.phase}"
    )]
    #[case("{}", "at character 1: {} is no path; write one such as {.status.phase}")]
    #[case("{range .items[*]}{.kind}", "at character 1: this range has no {end}")]
    #[case("{.kind}{end}", "at character 8: {end} ends no range")]
    #[case(
        "{kind}",
        "at character 1: {kind} is no path; write one such as {.status.phase}"
    )]
    fn an_error_names_the_place(#[case] template: &str, #[case] expected: &str) {
        assert_eq!(Template::parse(template).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_value_that_does_not_fit_is_told() {
        let refused = Template::parse("x{.kind[0]}").unwrap().render(&list());
        assert_eq!(
            refused.unwrap_err().to_string(),
            "at character 2: {.kind[0]} does not fit the object"
        );
    }

    proptest! {
        #[test]
        fn no_template_breaks_the_reader(text in r#"[-.\[\]?(@='"a0:,*$ \\){}a-z]{0,32}"#) {
            if let Ok(template) = Template::parse(&text) {
                let _ = template.render(&list());
            }
        }
    }
}
