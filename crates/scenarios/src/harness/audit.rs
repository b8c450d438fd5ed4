//! The API server's own record of who wrote what: the last word on what a rollout did.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::failure::{Failure, Outcome};

/// Names the audit log of the control plane under test. `cargo xtask test` sets it for its own planes.
const AUDIT_LOG: &str = "STATEWARD_TEST_AUDIT_LOG";

/// Where writes can be read back.
#[derive(Clone)]
pub enum AuditLog {
    /// The real server's log, JSON lines.
    File(PathBuf),
    /// The embedded server's own.
    Embedded(Arc<stateward_cluster::Cluster>),
}

/// One answered write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Who.
    pub user: String,
    /// With which program.
    pub agent: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// `pods`, or with a subresource `statefulsets/status`.
    pub resource: String,
    /// The object's name; empty where the request names none.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// The request's body; null where the log has none.
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
        // The last line may still be on its way.
        let events = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(events.filter_map(|event| write_of(&event, namespace)).collect())
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
    let resource = match object["subresource"].as_str() {
        Some(subresource) => format!("{}/{subresource}", text(&object["resource"])),
        None => text(&object["resource"]),
    };
    Some(Write {
        user: text(&event["user"]["username"]),
        agent: text(&event["userAgent"]),
        verb: text(&event["verb"]),
        resource,
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
    }
}
