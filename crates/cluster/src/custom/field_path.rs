//! Paths to a field of a schema, in rules and selectable fields: `.spec.color`, `.labels['a.b']`.

use super::schema::Schema;

/// The field at a path.
pub(super) struct Found<'s> {
    /// The path in the format of errors: `spec.labels[a.b]`.
    pub(super) path: String,
    pub(super) schema: Option<&'s Schema>,
}

/// Follows a path through a schema, or returns why it is invalid.
pub(super) fn resolve<'s>(path: &str, schema: &'s Schema, brackets: bool) -> Result<Found<'s>, String> {
    let mut found = Found {
        path: String::new(),
        schema: Some(schema),
    };
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        let mut next = || tokens.next().ok_or("unexpected end of JSON path");
        match token {
            "[" if !brackets => return Err("array notation is not allowed".into()),
            "[" => {
                let name = next()?;
                let Some(name) = name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')) else {
                    return Err(format!("expected single quoted string but got {name}"));
                };
                step(&mut found, &unescaped(name)?)?;
                match next()? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => step(&mut found, next()?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

fn step(found: &mut Found<'_>, name: &str) -> Result<(), String> {
    let nowhere = || "does not refer to a valid field".to_owned();
    let schema = found.schema.ok_or_else(nowhere)?;
    if !schema.properties.is_empty() {
        found.schema = Some(schema.properties.get(name).ok_or_else(nowhere)?);
        found.path = super::decode::joined(&found.path, name);
    } else if !matches!(schema.additional, super::schema::Additional::Absent) {
        found.schema = schema.additional();
        found.path.push_str(&format!("[{name}]"));
    } else {
        return Err(nowhere());
    }
    Ok(())
}

/// Dots, brackets, quoted strings and the text between them.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = rest.as_bytes();
                let close = (1..bytes.len()).find(|&at| bytes[at] == b'\'' && bytes[at - 1] != b'\\');
                close.map_or(rest.len(), |close| close + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn unescaped(name: &str) -> Result<String, String> {
    let mut out = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(c @ ('\'' | '\\'))) => out.push(c),
            ('\\', Some(c)) => return Err(format!("invalid string literal: invalid escape char \\{c}")),
            (c, _) => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(".spec.color", Ok("spec.color"))]
    #[case(".spec['color']", Ok("spec.color"))]
    #[case(".spec.labels['a.b']", Ok("spec.labels[a.b]"))]
    #[case("spec", Err("expected [ or . but got: spec"))]
    #[case(".spec.size", Err("does not refer to a valid field"))]
    #[case(".spec.color.x", Err("does not refer to a valid field"))]
    #[case(".spec.", Err("unexpected end of JSON path"))]
    #[case(".spec[0]", Err("expected single quoted string but got 0"))]
    fn a_path_leads_to_a_declared_field(#[case] path: &str, #[case] expected: Result<&str, &str>) {
        let schema = Schema::read(&json!({"properties": {"spec": {"properties": {
            "color": {"type": "string"}, "labels": {"additionalProperties": {"type": "string"}},
        }}}}));
        let found = resolve(path, &schema, true).map(|found| found.path);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }
}
