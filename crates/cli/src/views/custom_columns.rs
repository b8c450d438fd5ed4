//! `-o custom-columns=NAME:.metadata.name,…`: columns selected by the user, in kubectl's syntax.

use std::str::FromStr;

use serde_json::Value;
use stateward_jsonpath::JsonPath;

/// The placeholder for a missing field.
const NONE: &str = "<none>";

/// Columns with their headings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CustomColumns(Vec<Column>);

#[derive(Clone, Debug, PartialEq)]
struct Column {
    heading: String,
    path: JsonPath,
}

impl FromStr for CustomColumns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("custom-columns: there is no column in it, write HEADING:PATH,HEADING:PATH".into());
        }
        let columns = specs(text).into_iter().map(Column::parse);
        columns.collect::<Result<_, _>>().map(Self)
    }
}

impl CustomColumns {
    /// The heading.
    pub(crate) fn heading(&self) -> Vec<String> {
        self.0.iter().map(|column| column.heading.clone()).collect()
    }

    /// The cells of an object.
    pub(crate) fn row(&self, object: &Value) -> Vec<String> {
        self.0.iter().map(|column| column.cell(object)).collect()
    }
}

impl Column {
    fn parse(spec: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("custom-columns: {spec:?} {why}");
        let Some((heading, path)) = spec.split_once(':') else {
            return Err(bad("is not HEADING:PATH, such as NAME:.metadata.name"));
        };
        if heading.trim().is_empty() {
            return Err(bad("has no heading before the colon"));
        }
        let path = relaxed(path).and_then(|path| JsonPath::parse(&path));
        let path = path.ok_or_else(|| {
            bad("has no valid path after the colon, such as .status.phase or {.spec.steps[0]}")
        })?;
        Ok(Self {
            heading: heading.to_owned(),
            path,
        })
    }

    /// Several values share a cell. A path that does not fit the object, such as an index past the end of a list, yields nothing.
    fn cell(&self, object: &Value) -> String {
        let found = self.path.all(object).unwrap_or_default();
        if found.is_empty() {
            return NONE.into();
        }
        found.into_iter().map(plain).collect::<Vec<_>>().join(",")
    }
}

/// Splits the columns. A comma in brackets or quotes belongs to the path.
fn specs(text: &str) -> Vec<&str> {
    let (mut depth, mut quote) = (0_u32, None);
    let separates = |c: char| {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') if depth > 0 => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        c == ',' && depth == 0 && quote.is_none()
    };
    text.split(separates).collect()
}

/// Accepts a path with or without braces and leading dot.
fn relaxed(path: &str) -> Option<String> {
    let path = path.trim();
    let inner = match path.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => path,
    };
    let inner = inner.strip_prefix('.').unwrap_or(inner);
    if inner.is_empty() || inner.contains(['{', '}']) {
        return None;
    }
    Some(match inner.starts_with(['[', '$', '@']) {
        true => inner.to_owned(),
        false => format!(".{inner}"),
    })
}

/// Formats a value like kubectl: `map[app:db tier:data]`, `[a b]`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => NONE.into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields = fields
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(".metadata.name", "db")]
    #[case("metadata.name", "db")]
    #[case("{.metadata.name}", "db")]
    #[case("{metadata.name}", "db")]
    #[case(".status.pods[0].name", "db-0")]
    #[case(".status.pods[-1].name", "db-1")]
    #[case(".status.pods[9].name", "<none>")]
    #[case(".status.pods[*].name", "db-0,db-1")]
    #[case(".status.pods[0,1].name", "db-0,db-1")]
    #[case(r#".status.pods[?(@.ready==true)].name"#, "db-1")]
    #[case("..revision", "db-2")]
    #[case(r".metadata.labels.example\.com/app", "a,b")]
    #[case(".metadata.labels", "map[example.com/app:a,b tier:data]")]
    #[case(".status.pods[1]", "map[name:db-1 ready:true revision:db-2]")]
    #[case(".status.replicas", "5")]
    #[case(".status.nothing.there", "<none>")]
    #[case(".status.message", "")]
    fn a_cell_is_what_kubectl_prints(#[case] path: &str, #[case] expected: &str) {
        let columns: CustomColumns = format!("FIRST:.kind,CELL:{path}").parse().unwrap();
        let object = json!({
            "kind": "RolloutPlugin",
            "metadata": {"name": "db", "labels": {"tier": "data", "example.com/app": "a,b"}},
            "status": {"replicas": 5, "message": "", "pods": [
                {"name": "db-0", "ready": false}, {"name": "db-1", "ready": true, "revision": "db-2"},
            ]},
        });
        assert_eq!(columns.heading(), ["FIRST", "CELL"]);
        assert_eq!(columns.row(&object), ["RolloutPlugin", expected]);
    }

    #[rstest]
    #[case("", "there is no column in it")]
    #[case("NAME", "\"NAME\" is not HEADING:PATH")]
    #[case("NAME:.metadata.name,", "\"\" is not HEADING:PATH")]
    #[case(":.metadata.name", "\":.metadata.name\" has no heading")]
    #[case("NAME:", "\"NAME:\" has no valid path")]
    #[case("NAME:{.metadata.name", "has no valid path")]
    #[case("NAME:.metadata{.name}", "has no valid path")]
    #[case("NAME:.pods[", "has no valid path")]
    #[case("NAME:.metadata name", "has no valid path")]
    fn a_bad_spec_is_named(#[case] spec: &str, #[case] expected: &str) {
        let error = spec.parse::<CustomColumns>().unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
