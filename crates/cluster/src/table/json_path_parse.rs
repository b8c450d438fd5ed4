//! Reading JSONPath templates.

use serde_json::Value;

use super::json_path::{JsonPath, JsonPathError, Operator, Part, Slice, Step};

pub(super) fn parse(template: &str) -> Result<JsonPath, JsonPathError> {
    let mut open: Vec<(Vec<Step>, Vec<Part>)> = Vec::new();
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let Some(start) = rest.find('{') else {
            parts.push(Part::Text(rest.to_owned()));
            break;
        };
        if start > 0 {
            parts.push(Part::Text(rest[..start].to_owned()));
        }
        let mut action = Action {
            rest: &rest[start + 1..],
            keyword: None,
            steps: Vec::new(),
        };
        action.read()?;
        rest = action.rest;
        match action.keyword.as_deref() {
            None => parts.push(Part::Path(action.steps)),
            Some("range") => open.push((action.steps, std::mem::take(&mut parts))),
            Some("end") => {
                let (steps, outer) = open.pop().ok_or_else(|| error("not in range, nothing to end"))?;
                let inner = std::mem::replace(&mut parts, outer);
                parts.push(Part::Range(steps, inner));
            }
            Some(other) => return Err(error(format!("unrecognized identifier {other}"))),
        }
    }
    // A range without an end reaches to the end of the template.
    while let Some((steps, outer)) = open.pop() {
        let inner = std::mem::replace(&mut parts, outer);
        parts.push(Part::Range(steps, inner));
    }
    Ok(JsonPath { parts })
}

fn error(why: impl Into<String>) -> JsonPathError {
    JsonPathError(why.into())
}

/// What stands in one pair of braces, being read.
struct Action<'t> {
    rest: &'t str,
    keyword: Option<String>,
    steps: Vec<Step>,
}

/// Reads the steps of a piece of a path that stands in brackets.
fn steps(text: &str) -> Result<Vec<Step>, JsonPathError> {
    let closed = format!("{text}}}");
    let mut action = Action {
        rest: &closed,
        keyword: None,
        steps: Vec::new(),
    };
    action.read()?;
    match action.keyword {
        Some(keyword) => Err(error(format!("unrecognized identifier {keyword}"))),
        None => Ok(action.steps),
    }
}

impl Action<'_> {
    fn read(&mut self) -> Result<(), JsonPathError> {
        loop {
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(());
            }
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                self.filter()?;
                continue;
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                self.rest = rest;
                self.recursive()?;
                continue;
            }
            match self.rest.chars().next() {
                None | Some('\n' | '\r') => return Err(error("unclosed action")),
                Some(' ' | '@' | '$') => self.rest = &self.rest[1..],
                Some('[') => self.array()?,
                Some(quote @ ('"' | '\'')) => self.quote(quote)?,
                Some('.') => {
                    self.rest = &self.rest[1..];
                    self.field();
                }
                Some(c) if c == '+' || c == '-' || c.is_ascii_digit() => self.number()?,
                Some(c) if c == '_' || c.is_alphanumeric() => self.identifier()?,
                Some(c) => {
                    let code = c as u32;
                    return Err(error(format!(
                        "unrecognized character in action: U+{code:04X} '{c}'"
                    )));
                }
            }
        }
    }

    fn until(&mut self, end: impl Fn(char) -> bool) -> &str {
        let at = self.rest.find(end).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(at);
        self.rest = rest;
        token
    }

    fn field(&mut self) {
        let mut escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = !escaped && is_terminator(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        self.steps.push(match name {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "")),
        });
    }

    fn recursive(&mut self) -> Result<(), JsonPathError> {
        if self.steps.last() == Some(&Step::Recursive) {
            return Err(error("invalid multiple recursive descent"));
        }
        self.steps.push(Step::Recursive);
        if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonPathError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let (number, rest) = self
            .rest
            .split_at(digits.map_or(self.rest.len(), |digits| digits + sign));
        self.rest = rest;
        let unsigned = number.strip_prefix('+').unwrap_or(number);
        let whole = unsigned.parse::<i64>().map(Value::from);
        let value = whole.or_else(|_| unsigned.parse::<f64>().map(Value::from));
        self.steps.push(Step::Literal(
            value.map_err(|_| error(format!("cannot parse number {number}")))?,
        ));
        Ok(())
    }

    fn identifier(&mut self) -> Result<(), JsonPathError> {
        match self.until(is_terminator).to_owned().as_str() {
            "true" => self.steps.push(Step::Literal(true.into())),
            "false" => self.steps.push(Step::Literal(false.into())),
            name if self.keyword.is_none() => self.keyword = Some(name.to_owned()),
            name => return Err(error(format!("unrecognized identifier {name}"))),
        }
        Ok(())
    }

    fn quote(&mut self, quote: char) -> Result<(), JsonPathError> {
        let bytes = self.rest.as_bytes();
        let close = (1..bytes.len())
            .find(|&at| bytes[at] == b'\n' || (char::from(bytes[at]) == quote && bytes[at - 1] != b'\\'));
        let close = close
            .filter(|&at| bytes[at] != b'\n')
            .ok_or_else(|| error("unterminated quoted string"))?;
        let text = unquoted(&self.rest[1..close]);
        self.rest = &self.rest[close + 1..];
        self.steps.push(Step::Literal(text.into()));
        Ok(())
    }

    fn array(&mut self) -> Result<(), JsonPathError> {
        let close = self
            .rest
            .find([']', '\n'])
            .filter(|&at| self.rest.as_bytes()[at] == b']');
        let close = close.ok_or_else(|| error("unterminated array"))?;
        let text = &self.rest[1..close];
        self.rest = &self.rest[close + 1..];
        if text.contains(',') {
            let branches = text
                .split(',')
                .map(|branch| steps(&format!("[{}]", branch.trim_matches(' '))));
            self.steps.push(Step::Union(branches.collect::<Result<_, _>>()?));
        } else if let Some(name) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''))
            && !name.contains('\'')
        {
            self.steps.extend(steps(&format!(".{name}"))?);
        } else {
            self.steps
                .push(Step::Slice(slice(if text == "*" { ":" } else { text })?));
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<(), JsonPathError> {
        let (mut quote, mut closed) = (None, false);
        let mut before = ' ';
        let mut end = None;
        for (at, c) in self.rest.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' => match quote {
                    None => quote = Some(c),
                    Some(open) if open == c && before != '\\' => closed = true,
                    Some(_) => {}
                },
                ')' if quote.is_some() == closed => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
            before = c;
        }
        let end = end.ok_or_else(|| error("unterminated filter"))?;
        let text = &self.rest[..end];
        let rest = self.rest[end + 1..]
            .strip_prefix(']')
            .ok_or_else(|| error("unclosed array expect ]"))?;
        self.rest = rest;
        self.steps.push(comparison(text)?);
        Ok(())
    }
}

fn comparison(text: &str) -> Result<Step, JsonPathError> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let parts = text.find(is_operator).filter(|&at| at > 0).and_then(|at| {
        let (left, rest) = text.split_at(at);
        let end = rest.find(|c: char| !is_operator(c))?;
        let (operator, right) = rest.split_at(end);
        Some((left, operator, right))
    });
    let Some((left, operator, right)) = parts else {
        return Ok(Step::Filter {
            left: steps(text)?,
            operator: Operator::Exists,
            right: Vec::new(),
        });
    };
    let operator = match operator {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        other => return Err(error(format!("unrecognized filter operator {other}"))),
    };
    Ok(Step::Filter {
        left: steps(left)?,
        operator,
        right: steps(right)?,
    })
}

fn slice(text: &str) -> Result<Slice, JsonPathError> {
    let invalid = || error(format!("invalid array index {text}"));
    let parts: Vec<_> = text.split(':').collect();
    let number = |part: &str| match part {
        "" => Ok(None),
        part => {
            let digits = part.strip_prefix('-').unwrap_or(part);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(invalid());
            }
            part.parse()
                .map(Some)
                .map_err(|_| error(format!("array index {part} is not a number")))
        }
    };
    let (from, to, step, lone) = match parts.as_slice() {
        [from] => {
            let from: Option<i64> = number(from)?;
            (from, Some(from.unwrap_or(0).saturating_add(1)), None, true)
        }
        [from, to] => (number(from)?, number(to)?, None, false),
        [from, to, step] => (number(from)?, number(to)?, number(step)?, false),
        _ => return Err(invalid()),
    };
    Ok(Slice { from, to, lone, step })
}

/// The characters that end a name.
fn is_terminator(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn unquoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}
