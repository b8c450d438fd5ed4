//! The query of a request.

use std::collections::BTreeMap;

use crate::resource::Resource;
use crate::selected::Selected;
use crate::server::{FieldValidation, ListOptions, WriteOptions};
use crate::status::{FieldError, Status};

/// Parameters by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn read(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// A parameter; empty when it is not there.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        matches!(self.get(name), "1" | "true" | "True" | "TRUE" | "t" | "T")
    }

    pub(super) fn is_watch(&self) -> bool {
        self.is_set("watch")
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
            }),
        }
    }

    pub(super) fn selected(&self, resource: &Resource) -> Result<Selected, Status> {
        Selected::parse(resource, self.get("labelSelector"), self.get("fieldSelector"))
    }

    pub(super) fn list(&self, resource: &Resource) -> Result<ListOptions, Status> {
        Ok(ListOptions {
            selected: self.selected(resource)?,
            limit: match self.get("limit").parse::<i64>() {
                Ok(limit) => limit.try_into().unwrap_or(0),
                Err(_) => self
                    .number("limit")?
                    .and_then(|limit| limit.try_into().ok())
                    .unwrap_or(0),
            },
            continue_token: self.get("continue").to_owned(),
            resource_version: self.get("resourceVersion").to_owned(),
            version_match: self.get("resourceVersionMatch").to_owned(),
        })
    }

    /// The options of a write; `kind` names them in errors.
    pub(super) fn write(&self, kind: &str) -> Result<WriteOptions, Status> {
        let mut errors = Vec::new();
        let dry_run = self.dry_run(&mut errors);
        let validation = match self.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let allowed = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    &other.into(),
                    &allowed,
                ));
                FieldValidation::Warn
            }
        };
        let manager = self.get("fieldManager");
        if manager.len() > 128 {
            errors.push(FieldError::too_long("fieldManager", 128));
        }
        if !errors.is_empty() {
            return Err(Status::invalid_options(kind, &errors));
        }
        Ok(WriteOptions {
            dry_run,
            manager: manager.to_owned(),
            validation,
            force: self.is_set("force"),
            duplicates: Vec::new(),
        })
    }

    fn dry_run(&self, errors: &mut Vec<FieldError>) -> bool {
        match self.get("dryRun") {
            "" => false,
            "All" => true,
            other => {
                errors.push(FieldError::not_supported("dryRun", &[other][..].into(), &["All"]));
                false
            }
        }
    }
}
