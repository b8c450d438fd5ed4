//! The API server's audit log: which user sent which write.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::failure::{Failure, Outcome};

/// Names the audit log of the control plane under test. `cargo xtask test` sets it for the control planes it starts.
const AUDIT_LOG: &str = "STATEWARD_TEST_AUDIT_LOG";

/// Where scenarios read the audited writes.
#[derive(Clone)]
pub enum AuditLog {
    /// The audit log of a real API server, JSON lines.
    File(PathBuf),
    /// The audit log of the embedded API server.
    Embedded(Arc<stateward_cluster::Cluster>),
}

/// A kind of request a user made, to compare with what the user's role grants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Access {
    /// `apps`; empty for the core group.
    pub group: String,
    /// `pods`, or with a subresource `pods/eviction`.
    pub resource: String,
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// Whether the authorizer allowed it.
    pub allowed: bool,
}

/// A write the API server has answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The user.
    pub user: String,
    /// The user agent.
    pub agent: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// `pods`, or with a subresource `statefulsets/status`.
    pub resource: String,
    /// The object's name; empty where the request names none.
    pub name: String,
    /// The HTTP status code of the response.
    pub code: u16,
    /// The request's body; null if the log has none.
    pub body: Value,
}

impl AuditLog {
    pub(crate) fn from_env() -> Option<Self> {
        std::env::var_os(AUDIT_LOG)
            .filter(|path: &OsString| !path.is_empty())
            .map(|path| Self::File(path.into()))
    }

    pub(crate) fn writes(&self, namespace: &str) -> Outcome<Vec<Write>> {
        let path = match self {
            Self::File(path) => path,
            Self::Embedded(cluster) => {
                let entries = cluster.audit().into_iter();
                return Ok(entries
                    .filter(|entry| entry.namespace == namespace)
                    .map(Write::from)
                    .collect());
            }
        };
        let log = std::fs::read_to_string(path).map_err(|source| Failure::Audit {
            log: path.clone(),
            source,
        })?;
        // The API server may still be writing the last line.
        let events = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(events.filter_map(|event| write_of(&event, namespace)).collect())
    }
}

/// Every kind of request that `user` made, according to a real API server's audit log.
pub(crate) fn accesses(log: &Path, user: &str) -> std::io::Result<BTreeSet<Access>> {
    let log = std::fs::read_to_string(log)?;
    let named = format!("\"username\":\"{user}\"");
    let events = log
        .lines()
        .filter(|line| line.contains(&named))
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(events.map(|event| access_of(&event)).collect())
}

fn access_of(event: &Value) -> Access {
    let object = &event["objectRef"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Access {
        group: text(&object["apiGroup"]),
        resource: resource(object),
        verb: text(&event["verb"]),
        // The status code alone is ambiguous: admission also answers 403, in a namespace that is being deleted.
        allowed: event["annotations"]["authorization.k8s.io/decision"] != "forbid",
    }
}

fn resource(object: &Value) -> String {
    let name = object["resource"].as_str().unwrap_or_default();
    match object["subresource"].as_str() {
        Some(subresource) => format!("{name}/{subresource}"),
        None => name.to_owned(),
    }
}

impl From<stateward_cluster::Entry> for Write {
    fn from(entry: stateward_cluster::Entry) -> Self {
        let stateward_cluster::Entry {
            user,
            agent,
            verb,
            resource,
            name,
            code,
            body,
            ..
        } = entry;
        Self {
            user,
            agent,
            verb,
            resource,
            name,
            code,
            body,
        }
    }
}

fn write_of(event: &Value, namespace: &str) -> Option<Write> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    if object["namespace"] != namespace || event["stage"] != "ResponseComplete" {
        return None;
    }
    let verb = text(&event["verb"]);
    if ["get", "list", "watch"].contains(&verb.as_str()) {
        return None;
    }
    Some(Write {
        user: text(&event["user"]["username"]),
        agent: text(&event["userAgent"]),
        verb,
        resource: resource(object),
        name: text(&object["name"]),
        code: event["responseStatus"]["code"]
            .as_u64()
            .and_then(|code| code.try_into().ok())
            .unwrap_or(0),
        body: event["requestObject"].clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_write_is_read_with_its_subresource_and_answer() {
        let event = json!({
            "stage": "ResponseComplete", "verb": "update", "user": {"username": "system:kube-controller-manager"},
            "userAgent": "kube-controller-manager/v1.36.3", "responseStatus": {"code": 422},
            "objectRef": {"resource": "statefulsets", "subresource": "status", "namespace": "ns", "name": "db"},
        });
        let write = write_of(&event, "ns").unwrap();
        assert_eq!(
            (write.resource.as_str(), write.name.as_str(), write.code),
            ("statefulsets/status", "db", 422)
        );
        assert_eq!(write_of(&event, "another"), None);
        let read = json!({
            "stage": "ResponseComplete", "verb": "list", "objectRef": {"resource": "pods", "namespace": "ns"},
            "annotations": {"authorization.k8s.io/decision": "forbid"},
        });
        assert_eq!(write_of(&read, "ns"), None);
        assert!(!access_of(&read).allowed && access_of(&event).allowed);
    }
}
