//! Parses a path.

use serde_json::Value;

use super::{Operator, Slice, Step};

/// The steps of a path, or of a bracketed piece of one. It ends at a closing brace.
pub(super) fn steps(text: &str) -> Option<Vec<Step>> {
    let mut reader = Reader {
        rest: text,
        steps: Vec::new(),
    };
    reader.read()?;
    Some(reader.steps)
}

struct Reader<'t> {
    rest: &'t str,
    steps: Vec<Step>,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<()> {
        loop {
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
                None | Some('}') => return Some(()),
                Some(' ' | '@' | '$') => self.rest = &self.rest[1..],
                Some('[') => self.array()?,
                Some(quote @ ('"' | '\'')) => self.quote(quote)?,
                Some('.') => {
                    self.rest = &self.rest[1..];
                    self.field();
                }
                Some(c) if c == '+' || c == '-' || c.is_ascii_digit() => self.number()?,
                Some(c) if c == '_' || c.is_alphanumeric() => self.identifier()?,
                Some(_) => return None,
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

    fn recursive(&mut self) -> Option<()> {
        if self.steps.last() == Some(&Step::Recursive) {
            return None;
        }
        self.steps.push(Step::Recursive);
        if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let (number, rest) = self
            .rest
            .split_at(digits.map_or(self.rest.len(), |digits| digits + sign));
        self.rest = rest;
        let unsigned = number.strip_prefix('+').unwrap_or(number);
        let whole = unsigned.parse::<i64>().map(Value::from);
        let value = whole.or_else(|_| unsigned.parse::<f64>().map(Value::from));
        self.steps.push(Step::Literal(value.ok()?));
        Some(())
    }

    fn identifier(&mut self) -> Option<()> {
        match self.until(is_terminator).to_owned().as_str() {
            "true" => self.steps.push(Step::Literal(true.into())),
            "false" => self.steps.push(Step::Literal(false.into())),
            // A keyword of templates, which a path cannot contain.
            _ => return None,
        }
        Some(())
    }

    fn quote(&mut self, quote: char) -> Option<()> {
        let bytes = self.rest.as_bytes();
        let close = (1..bytes.len())
            .find(|&at| bytes[at] == b'\n' || (char::from(bytes[at]) == quote && bytes[at - 1] != b'\\'));
        let close = close.filter(|&at| bytes[at] != b'\n')?;
        let text = unquoted(&self.rest[1..close]);
        self.rest = &self.rest[close + 1..];
        self.steps.push(Step::Literal(text.into()));
        Some(())
    }

    fn array(&mut self) -> Option<()> {
        let close = self
            .rest
            .find([']', '\n'])
            .filter(|&at| self.rest.as_bytes()[at] == b']')?;
        let text = &self.rest[1..close];
        self.rest = &self.rest[close + 1..];
        if text.contains(',') {
            let branches = text
                .split(',')
                .map(|branch| steps(&format!("[{}]", branch.trim_matches(' '))));
            self.steps.push(Step::Union(branches.collect::<Option<_>>()?));
        } else if let Some(name) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''))
            && !name.contains('\'')
        {
            self.steps.extend(steps(&format!(".{name}"))?);
        } else {
            self.steps
                .push(Step::Slice(slice(if text == "*" { ":" } else { text })?));
        }
        Some(())
    }

    fn filter(&mut self) -> Option<()> {
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
        let end = end?;
        let text = &self.rest[..end];
        self.rest = self.rest[end + 1..].strip_prefix(']')?;
        self.steps.push(comparison(text)?);
        Some(())
    }
}

fn comparison(text: &str) -> Option<Step> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let parts = text.find(is_operator).filter(|&at| at > 0).and_then(|at| {
        let (left, rest) = text.split_at(at);
        let end = rest.find(|c: char| !is_operator(c))?;
        let (operator, right) = rest.split_at(end);
        Some((left, operator, right))
    });
    let Some((left, operator, right)) = parts else {
        return Some(Step::Filter {
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
        _ => return None,
    };
    Some(Step::Filter {
        left: steps(left)?,
        operator,
        right: steps(right)?,
    })
}

fn slice(text: &str) -> Option<Slice> {
    // `None` if it is not a number, `Some(None)` if it is omitted.
    let number = |part: &str| match part {
        "" => Some(None),
        part => {
            let digits = part.strip_prefix('-').unwrap_or(part);
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| part.parse().ok()).flatten().map(Some)
        }
    };
    let (from, to, step, lone) = match text.split(':').collect::<Vec<_>>().as_slice() {
        [from] => {
            let from: Option<i64> = number(from)?;
            (from, Some(from.unwrap_or(0).saturating_add(1)), None, true)
        }
        [from, to] => (number(from)?, number(to)?, None, false),
        [from, to, step] => (number(from)?, number(to)?, number(step)?, false),
        _ => return None,
    };
    Some(Slice { from, to, lone, step })
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
