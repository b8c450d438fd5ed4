//! Annotated CSV, the format of Flux results: consecutive tables, each with annotations that describe its columns.
//!
//! ```text
//! #datatype,string,long,dateTime:RFC3339,double
//! #group,false,false,false,false
//! #default,_result,,,
//! ,result,table,_time,_value
//! ,,0,2026-11-16T06:00:00Z,0.25
//! ```

use serde_json::Value;

use crate::json::DOCUMENT;

/// Why there are no values.
#[derive(Debug, PartialEq)]
pub(super) enum Trouble {
    /// Not annotated CSV.
    Malformed,
    /// More values than the limit.
    TooMany,
    /// The query failed while it ran, with this message.
    Said(String),
}

/// The annotations of a table.
#[derive(Default)]
struct Table {
    types: Vec<String>,
    defaults: Vec<String>,
    columns: Option<Vec<String>>,
}

/// The values of the column `_value`, in order. Rows without that column are skipped.
pub(super) fn values(body: &[u8]) -> Result<Vec<Value>, Trouble> {
    let mut reader = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(body);
    let mut table = Table::default();
    let mut values = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|_| Trouble::Malformed)?;
        let texts = || record.iter().map(str::to_owned).collect::<Vec<_>>();
        match record.get(0).unwrap_or_default() {
            // Annotations start a new table.
            "#datatype" => {
                table = Table {
                    types: texts(),
                    ..Table::default()
                }
            }
            "#default" => table.defaults = texts(),
            annotation if annotation.starts_with('#') => {}
            _ if record.iter().all(str::is_empty) => {}
            _ => match &table.columns {
                None if table.types.is_empty() => return Err(Trouble::Malformed),
                None => table.columns = Some(texts()),
                Some(columns) => {
                    if let Some(at) = columns.iter().position(|column| column == "error") {
                        return Err(Trouble::Said(record.get(at).unwrap_or_default().to_owned()));
                    }
                    if values.len() >= DOCUMENT {
                        return Err(Trouble::TooMany);
                    }
                    values.push(table.value(columns, &record)?);
                }
            },
        }
    }
    Ok(values)
}

impl Table {
    fn value(&self, columns: &[String], record: &::csv::StringRecord) -> Result<Value, Trouble> {
        let Some(at) = columns.iter().position(|column| column == "_value") else {
            return Ok(Value::Null);
        };
        let default = self.defaults.get(at).map(String::as_str).unwrap_or_default();
        let text = record.get(at).filter(|text| !text.is_empty()).unwrap_or(default);
        if text.is_empty() {
            return Ok(Value::Null);
        }
        let kind = self.types.get(at).map(String::as_str).unwrap_or_default();
        let value = match kind {
            "double" => text.parse::<f64>().ok().map(|number| {
                // JSON has no NaN or infinity; a condition fails on the text instead of ignoring the value.
                serde_json::Number::from_f64(number).map_or_else(|| Value::from(text), Value::from)
            }),
            "long" => text.parse::<i64>().ok().map(Value::from),
            "unsignedLong" => text.parse::<u64>().ok().map(Value::from),
            "boolean" => text.parse::<bool>().ok().map(Value::from),
            _ => Some(Value::from(text)),
        };
        value.ok_or(Trouble::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("double", "0.25", json!(0.25))]
    #[case("long", "-3", json!(-3))]
    #[case("unsignedLong", "3", json!(3))]
    #[case("boolean", "true", json!(true))]
    #[case("string", "\"a, \"\"b\"\"\"", json!("a, \"b\""))]
    #[case("double", "", json!(7.0))]
    fn a_value_is_of_its_columns_type(#[case] kind: &str, #[case] text: &str, #[case] expected: Value) {
        let default = if kind == "double" { "7" } else { "" };
        let body = format!(
            "#datatype,string,long,{kind}\r\n#group,false,false,false\r\n#default,_result,,{default}\r\n,result,table,_value\r\n,,0,{text}\r\n\r\n"
        );
        assert_eq!(values(body.as_bytes()), Ok(vec![expected]));
    }

    #[test]
    fn tables_come_one_after_the_other() {
        let body = "#datatype,string,long,double\n#default,_result,,\n,result,table,_value\n,,0,1\n,,0,2\n\n\
                    #datatype,string,long,string,long\n#default,_result,,,\n,result,table,host,_value\n,,1,a,3\n";
        assert_eq!(
            values(body.as_bytes()),
            Ok(vec![json!(1.0), json!(2.0), json!(3)])
        );
    }

    #[test]
    fn an_error_in_the_midst_is_told() {
        let body =
            "#datatype,string,string\n#group,true,true\n#default,,\n,error,reference\n,out of memory,897\n";
        assert_eq!(
            values(body.as_bytes()),
            Err(Trouble::Said("out of memory".to_owned()))
        );
    }

    #[rstest]
    #[case("")]
    #[case("\r\n")]
    fn no_table_is_no_value(#[case] body: &str) {
        assert_eq!(values(body.as_bytes()), Ok(vec![]));
    }

    #[rstest]
    #[case("#datatype,long\n,_value\n,many\n")]
    #[case("{\"code\": \"invalid\"}")]
    #[case(",_value\n,1\n")]
    fn what_is_no_number_and_what_is_not_annotated_is_malformed(#[case] body: &str) {
        assert_eq!(values(body.as_bytes()), Err(Trouble::Malformed));
    }
}
