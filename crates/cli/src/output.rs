//! `-o`: objects for machines.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::error::Error;

/// What `-o` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// The whole object
    Json,
    /// The whole object
    Yaml,
    /// kind.group/name
    Name,
    /// More columns
    Wide,
}

/// What to write, and how.
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

    pub(crate) fn json(self) -> Result<String, Error> {
        serde_json::to_string_pretty(&self.value()).map_err(|error| Error::Format {
            format: "json",
            why: error.to_string(),
        })
    }

    pub(crate) fn yaml(self) -> Result<String, Error> {
        let text = serde_saphyr::to_string(&self.value()).map_err(|error| Error::Format {
            format: "yaml",
            why: error.to_string(),
        })?;
        Ok(text.trim_end().to_owned())
    }
}

/// As kubectl shows objects: without the record of who wrote what.
fn tidy(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    json!(object)
}
