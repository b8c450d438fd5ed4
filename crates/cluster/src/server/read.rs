//! Reads objects: one or many, at the current or an older version.

use crate::json::{Value, json};
use base64::Engine;

use super::scale::{replicas_path, says_no_replicas, scale_of};
use super::{Server, Target};
use crate::http::syntax;
use crate::list_filter::ListFilter;
use crate::object::{self, Object};
use crate::status::{FieldError, Status};

/// The options of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) selected: ListFilter,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) version_match: String,
}

/// A list, or one page of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) items: Vec<Object>,
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl Server {
    /// One object, or its scale.
    pub(crate) fn get(&self, target: &Target) -> Result<Object, Status> {
        let object = self
            .store
            .get(target.shelf(), &target.key())
            .ok_or_else(|| Status::not_found(target.about()))?;
        Ok(match target.subresource.as_str() {
            "scale" if says_no_replicas(&target.resource, &object) => {
                let path = replicas_path(&target.resource.model).join(".");
                return Err(Status::internal(format!(
                    "the spec replicas field \".{path}\" does not exist"
                )));
            }
            "scale" => scale_of(&target.resource, &object).into(),
            _ => object,
        })
    }

    /// The objects of the target's collection.
    pub(crate) fn list(&self, target: &Target, options: &ListOptions) -> Result<Page, Status> {
        check_list_options(options)?;
        let namespace = Some(target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let asked = options
            .resource_version
            .parse::<u64>()
            .ok()
            .filter(|revision| *revision > 0);
        // A version with a limit means exactly that version, for old clients.
        let exact = options.version_match == "Exact"
            || (options.version_match.is_empty() && options.limit > 0 && asked.is_some());
        let (from, pinned) = match token(&options.continue_token)? {
            Some(Token { revision, start }) => (Some(start), Some(revision)),
            None => (None, asked.filter(|_| exact)),
        };
        let (items, revision) = match pinned {
            Some(revision) => {
                let items = self.store.list_at(target.shelf(), namespace, revision);
                (items.map_err(|_| expired(&options.continue_token))?, revision)
            }
            None => self.store.list(target.shelf(), namespace),
        };
        let behind = |object: &Value| from.as_ref().is_none_or(|from| place(object) > *from);
        let mut rest = items.into_iter().filter(|object| behind(object));
        let mut page = Page {
            revision,
            ..Page::default()
        };
        let limit = if options.limit > 0 {
            options.limit
        } else {
            usize::MAX
        };
        let holds = |object: &Object| options.selected.holds(&target.resource, object);
        page.items = rest.by_ref().filter(holds).take(limit).collect();
        // The next page tells whether any of the rest matches.
        let left = rest.count();
        if left > 0 {
            page.remaining = Some(left).filter(|_| options.selected.is_everything());
            page.continue_token = page.items.last().map(|last| {
                Token {
                    revision,
                    start: place(last),
                }
                .encode()
            });
        }
        Ok(page)
    }
}

/// The start of the next page, and its version.
struct Token {
    revision: u64,
    start: String,
}

impl Token {
    fn encode(&self) -> String {
        let token = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.start});
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string())
    }
}

fn token(text: &str) -> Result<Option<Token>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid = |why: &str| {
        Status::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| invalid("illegal base64 data at input byte 0"))?;
    let parsed =
        serde_json::from_slice::<Value>(&decoded).map_err(|error| invalid(&syntax::of(&decoded, &error)))?;
    let parsed = Some(parsed);
    let token = parsed.and_then(|token| {
        Some(Token {
            revision: token["rv"].as_u64()?,
            start: token["start"].as_str()?.to_owned(),
        })
    });
    match token {
        Some(token) => Ok(Some(token)),
        None => Err(invalid("start key is empty")),
    }
}

/// The order of a list: by namespace, then by name. The separator sorts before every character of a name.
fn place(object: &Value) -> String {
    format!("{}\u{0}{}", object::namespace(object), object::name(object))
}

fn expired(continue_token: &str) -> Status {
    if continue_token.is_empty() {
        Status::expired("The resourceVersion for the provided list is too old.")
    } else {
        Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
             results. Continuing with the provided token results in an inconsistent list - objects that were created, \
             modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        )
    }
}

/// The rules of `resourceVersionMatch`.
fn check_list_options(options: &ListOptions) -> Result<(), Status> {
    let mut errors = Vec::new();
    let (version, version_match) = (options.resource_version.as_str(), options.version_match.as_str());
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(Status::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax"
        )));
    }
    if !version_match.is_empty() {
        if version.is_empty() {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !options.continue_token.is_empty() {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if version_match != "Exact" && version_match != "NotOlderThan" {
            let allowed = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                &version_match.into(),
                &allowed,
            ));
        }
        if version_match == "Exact" && version == "0" {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid_options("ListOptions", &errors))
    }
}
