//! `-o`: output formats for tools.

use std::str::FromStr;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use stateward_jsonpath::Template;
use stateward_terminal::Charset;

use crate::error::Error;
use crate::rollout::Kind;
use crate::session::Session;
use crate::views::columns::columns;
use crate::views::custom_columns::CustomColumns;

/// The values of `-o` for objects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    Json,
    Yaml,
    /// `kind.group/name`.
    Name,
    /// More columns.
    Wide,
    /// kubectl's templates.
    JsonPath(Template),
    /// Columns selected by the user.
    Columns(CustomColumns),
}

/// The values, for help texts.
pub(crate) const FORMS: &str = "json|yaml|name|wide|jsonpath=TEMPLATE|custom-columns=HEADING:PATH,…";

/// The beginnings of the values.
pub(crate) const BEGINNINGS: [&str; 6] = ["json", "yaml", "name", "wide", "jsonpath=", "custom-columns="];

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "name" => Ok(Self::Name),
            "wide" => Ok(Self::Wide),
            _ => match text.split_once('=') {
                Some(("jsonpath", template)) => Template::parse(template)
                    .map(Self::JsonPath)
                    .map_err(|error| error.to_string()),
                Some(("custom-columns", columns)) => columns.parse().map(Self::Columns),
                _ => Err(format!("there is {FORMS}")),
            },
        }
    }
}

/// The values of `-o` for verbs that print no objects of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// JSON, for tools
    Json,
    /// YAML, for tools
    Yaml,
}

impl Format {
    pub(crate) fn write(self, value: &Value, charset: Charset) -> Result<String, Error> {
        match self {
            Self::Json => to_json(value, charset),
            Self::Yaml => to_yaml(value),
        }
    }
}

pub(crate) fn to_json(value: &Value, charset: Charset) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Format {
        format: "json",
        why: error.to_string(),
    })?;
    // The same data: JSON has escapes for what a terminal would interpret.
    Ok(stateward_terminal::json(&text, charset).into_owned())
}

pub(crate) fn to_yaml(value: &Value) -> Result<String, Error> {
    let text = serde_saphyr::to_string(value).map_err(|error| Error::Format {
        format: "yaml",
        why: error.to_string(),
    })?;
    Ok(text.trim_end().to_owned())
}

/// Objects to print, as a list or as one.
pub(crate) enum Objects {
    One(Box<DynamicObject>),
    Many(Vec<DynamicObject>),
}

impl Objects {
    fn value(self) -> Value {
        match self {
            Self::One(object) => tidy(*object),
            Self::Many(objects) => {
                let items: Vec<Value> = objects.into_iter().map(tidy).collect();
                json!({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}})
            }
        }
    }

    /// Prints the objects for tools; `false` if the output is for people.
    pub(crate) fn print(self, output: Option<&Output>, session: &mut Session<'_>) -> Result<bool, Error> {
        if let Some(Output::Name) = output
            && self.objects().next().is_none()
        {
            return Ok(true);
        }
        let text = match output {
            None | Some(Output::Wide) => return Ok(false),
            Some(Output::Json) => to_json(&self.value(), session.charset())?,
            Some(Output::Yaml) => to_yaml(&self.value())?,
            Some(Output::JsonPath(template)) => {
                let rendered = template.render(&self.value());
                let text = rendered
                    .map_err(|error| Error::Refused(format!("the template of -o jsonpath, {error}")))?;
                // Like kubectl: no final newline unless the template has one.
                return session.print_raw(&text).map(|()| true);
            }
            Some(Output::Columns(chosen)) => {
                let objects = match self {
                    Self::One(object) => vec![*object],
                    Self::Many(objects) => objects,
                };
                let rows = objects.into_iter().map(|object| chosen.row(&tidy(object)));
                let rows: Vec<_> = std::iter::once(chosen.heading()).chain(rows).collect();
                return session.print_lines(columns(&rows)).map(|()| true);
            }
            Some(Output::Name) => {
                let names = self.objects().map(|object| {
                    let kind = Kind::of(object.types.as_ref());
                    kind.full_name(&object.name_any())
                });
                return session.print_lines(names).map(|()| true);
            }
        };
        session.print_data(&text).map(|()| true)
    }

    fn objects(&self) -> impl Iterator<Item = &DynamicObject> {
        let (one, many) = match self {
            Self::One(object) => (Some(object.as_ref()), &[][..]),
            Self::Many(objects) => (None, objects.as_slice()),
        };
        one.into_iter().chain(many)
    }
}

/// Removes managedFields, like kubectl.
pub(crate) fn tidy(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    json!(object)
}
