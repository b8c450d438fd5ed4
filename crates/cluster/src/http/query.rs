//! The query of a request.

use std::collections::BTreeMap;

use crate::list_filter::ListFilter;
use crate::resource::Resource;
use crate::server::{FieldValidation, ListOptions, WriteOptions};
use crate::status::{FieldError, Status};

/// Parameters by name. Of repeated ones the first usually counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(super) fn read(query: &str) -> Self {
        let mut parameters = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()).into_owned() {
            parameters.entry(name).or_default().push(value);
        }
        Self(parameters)
    }

    /// A parameter; empty if it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.all(name).first().map_or("", String::as_str)
    }

    fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether it is set to anything but `0` or `false`.
    pub(super) fn is_set(&self, name: &str) -> bool {
        let said = self.all(name).first();
        said.is_some_and(|said| said != "0" && !said.eq_ignore_ascii_case("false"))
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

    pub(super) fn selected(&self, resource: &Resource) -> Result<ListFilter, Status> {
        ListFilter::parse(resource, self.get("labelSelector"), self.get("fieldSelector"))
    }

    pub(super) fn list(&self, resource: &Resource) -> Result<ListOptions, Status> {
        self.number("timeoutSeconds")?;
        if !self.get("sendInitialEvents").is_empty() {
            let error = FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
            return Err(Status::invalid_options("ListOptions", &[error]));
        }
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
        let said = self.all("dryRun");
        if said.iter().any(|one| !matches!(one.as_str(), "" | "All")) {
            errors.push(FieldError::not_supported("dryRun", &said.into(), &["All"]));
            return false;
        }
        said.iter().any(|one| one == "All")
    }
}
