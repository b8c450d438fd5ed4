//! The API server without a transport: executes requests from HTTP and from controllers.
//!
//! A write reads the old object, builds the new one (decode, default, prepare, validate), updates field ownership, and commits, all while
//! it holds the store: there is no conflict inside the server, only between what clients read and what they write. HTTP calls this; so do
//! controllers, directly.

mod create;
mod delete;
mod eviction;
mod modify;
mod names;
mod read;
mod review;
mod scale;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::Value;
use jiff::Timestamp;
use parking_lot::Mutex;
use stateward_clock::Clock;

use crate::audit::{Audit, Entry};
use crate::builtin::{Context, Gates};
use crate::cluster::Options;
use crate::controllers::MaxUnavailable;
use crate::custom;
use crate::encode_cache::EncodeCache;
use crate::object::Object;
use crate::resource::{Model, Registry, Resource};
use crate::status::{About, Status};
use crate::store::{Key, Shelf, Store};
use crate::types::Mismatch;

pub(crate) use delete::{Deleted, check_deletion};
pub(crate) use modify::Change;
pub(crate) use read::{ListOptions, Page};

/// The state of the API server.
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) audit: Audit,
    pub(crate) told: EncodeCache,
    pub(crate) gates: Gates,
    pub(crate) max_unavailable: MaxUnavailable,
    /// Users by bearer token.
    pub(crate) users: BTreeMap<String, String>,
    pub(crate) anonymous: bool,
    /// The CA certificate for clients, in PEM; empty without TLS.
    pub(crate) certificate: String,
    /// Watches never end and have few bookmarks.
    pub(crate) patient_watches: bool,
    /// The source of UIDs and generated names: one seed, so that a run is reproducible.
    chance: Mutex<fastrand::Rng>,
}

/// The client of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: String,
    /// The user agent; the part before the slash is the field manager if the request names none.
    pub(crate) agent: String,
}

/// The target of a request.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// Empty for cluster-scoped resources.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// `status`, `scale`, … or empty.
    pub(crate) subresource: String,
}

/// The options of a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    /// Do everything but the commit.
    pub(crate) dry_run: bool,
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
    /// Take fields from other managers.
    pub(crate) force: bool,
    /// The duplicate fields of the request, in a sentence each.
    pub(crate) duplicates: Vec<String>,
}

/// How unknown fields are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The result of a write.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) object: Object,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl Server {
    pub(crate) fn new(options: Options) -> Self {
        let Options {
            clock,
            seed,
            max_unavailable,
            users,
            anonymous,
            certificate,
            patient_watches,
        } = options;
        let gates = Gates {
            max_unavailable_statefulset: max_unavailable != MaxUnavailable::Off,
        };
        Self {
            store: Store::default(),
            registry: Registry::default(),
            clock,
            audit: Audit::default(),
            told: EncodeCache::default(),
            gates,
            max_unavailable,
            users,
            anonymous,
            certificate,
            patient_watches,
            chance: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The current time in the format of objects: whole seconds.
    pub(crate) fn now_text(&self) -> String {
        seconds(self.now())
    }

    /// The inputs of a write to the object with this UID, besides the object.
    fn context<'c>(&self, uid: &'c str) -> Context<'c> {
        Context {
            uid,
            now: self.now(),
            gates: self.gates,
        }
    }

    fn chance<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.chance.lock())
    }
}

/// RFC 3339 without a fraction.
pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}

impl Target {
    pub(crate) fn about(&self) -> About<'_> {
        self.about_named(&self.name)
    }

    fn about_named<'a>(&'a self, name: &'a str) -> About<'a> {
        let Resource {
            group, plural, kind, ..
        } = &*self.resource;
        About {
            group,
            plural,
            kind,
            name,
        }
    }

    /// The audit entry of a write to this target, without its body.
    pub(crate) fn entry(&self, caller: &Caller, verb: &str, code: u16) -> Entry {
        let (plural, part) = (&self.resource.plural, &self.subresource);
        Entry {
            user: caller.user.clone(),
            agent: caller.agent.clone(),
            verb: verb.to_owned(),
            resource: if part.is_empty() {
                plural.clone()
            } else {
                format!("{plural}/{part}")
            },
            group: self.resource.group.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            code,
            revision: None,
            body: serde_json::Value::Null,
        }
    }

    fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    fn shelf(&self) -> &Shelf {
        &self.resource.shelf
    }
}

/// A decoded object, and its unknown fields.
type Decoded = (Value, Vec<String>);

/// Why an object cannot be decoded.
enum Unreadable {
    Mismatch(Mismatch),
    Other(String),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mismatch(mismatch) => mismatch.fmt(f),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// Decodes JSON as the target's type.
fn decode(resource: &Resource, value: &Value) -> Result<Decoded, Unreadable> {
    decode_over(resource, value, None)
}

/// The same for an object that replaces `stored`. Shared parts of a built-in kind are not decoded again.
fn decode_over(resource: &Resource, value: &Value, stored: Option<&Value>) -> Result<Decoded, Unreadable> {
    let (decoded, unknown) = match &resource.model {
        Model::Builtin { name, .. } => {
            let decoded = match crate::types::decode_over(name, value, stored) {
                Some(Ok(decoded)) => decoded,
                Some(Err(mismatch)) => return Err(Unreadable::Mismatch(mismatch)),
                None => return Err(Unreadable::Other(format!("no type {name}"))),
            };
            let is_spec_stored = stored.is_some_and(|stored| stored["spec"].shares(&decoded.value["spec"]));
            if &*resource.id == DEFINITIONS && !is_spec_stored {
                // The table of types accepts any schema; this decodes them.
                let schemas = custom::decode_schemas(&decoded.value)
                    .map_err(|wrong| Unreadable::Other(wrong.to_string()))?;
                (schemas.value, [decoded.unknown, schemas.unknown].concat())
            } else {
                (decoded.value, decoded.unknown)
            }
        }
        Model::Custom(custom) => {
            let decoded = custom::decode(custom, value).map_err(|why| Unreadable::Other(why.to_string()))?;
            (decoded.value, decoded.unknown)
        }
    };
    let decoded = typed(resource, decoded);
    debug_assert!(
        resource.is_custom()
            || stored.is_none()
            || decode(resource, &decoded).is_ok_and(|(again, _)| again == decoded),
        "what is stored of a {} would be read as something else",
        resource.kind
    );
    Ok((decoded, unknown))
}

/// The object with its apiVersion and kind.
fn typed(resource: &Resource, mut decoded: Value) -> Value {
    for (field, known) in [
        ("apiVersion", resource.api_version()),
        ("kind", resource.kind.clone()),
    ] {
        // The type of a custom object is validated with the rest of it.
        let is_kept = resource.is_custom() && decoded[field].as_str().is_some_and(|given| !given.is_empty());
        if !is_kept && decoded[field] != known {
            decoded[field] = known.into();
        }
    }
    decoded
}

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The error for a body that cannot be decoded.
fn unreadable(resource: &Resource, why: impl std::fmt::Display) -> Status {
    let Resource { kind, version, .. } = resource;
    Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

/// The same for the result of an apply, which is converted, not decoded.
fn unconvertible(resource: &Resource, namespace: &str, name: &str, why: &Unreadable) -> Status {
    let Unreadable::Mismatch(why) = why else {
        return unreadable(resource, why);
    };
    let Resource {
        group, version, kind, ..
    } = resource;
    let kind = format!("{group}/{version}, Kind={kind}");
    Status::internal_plain(format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to convert unstructured object to \
         {kind}: error decoding from json: {why}"
    ))
}

/// Warns about unknown or duplicate fields, or returns an error, depending on the options.
fn unknown_fields(unknown: &[String], options: &WriteOptions) -> Result<Vec<String>, String> {
    let unknown = unknown.iter().map(|field| format!("unknown field {field:?}"));
    let sentences: Vec<_> = options.duplicates.iter().cloned().chain(unknown).collect();
    match options.validation {
        FieldValidation::Strict if !sentences.is_empty() => {
            Err(format!("strict decoding error: {}", sentences.join(", ")))
        }
        FieldValidation::Ignore => Ok(Vec::new()),
        _ => Ok(sentences),
    }
}

/// The field manager of a write: from the request, or the prefix of the user agent.
fn manager<'a>(options: &'a WriteOptions, caller: &'a Caller) -> &'a str {
    if !options.manager.is_empty() {
        return &options.manager;
    }
    let agent = caller.agent.split('/').next().unwrap_or_default();
    if agent.is_empty() { "unknown" } else { agent }
}
