//! The number of pods that a budget expects, from the workloads of its pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::Value;

use crate::access::Access;
use crate::controllers::owner;
use crate::object;

const REPLICA_SETS: &str = "replicasets.apps";
const DEPLOYMENTS: &str = "deployments.apps";
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The expected counts of a budget.
#[derive(Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) pods: i64,
    pub(super) healthy: i64,
    /// Whether there are pods without a workload, which such a budget cannot count.
    pub(super) unmanaged: bool,
}

/// `Err` is the reason why it is unknown.
pub(super) fn expected(budget: &Value, pods: &[Arc<Value>], access: &dyn Access) -> Result<Expected, String> {
    let (least, most_lost) = (&budget["spec"]["minAvailable"], &budget["spec"]["maxUnavailable"]);
    if !most_lost.is_null() {
        let Scale { total, unmanaged } = scale_of_all(pods, access)?;
        let healthy = total.saturating_sub(share(most_lost, total)?).max(0);
        Ok(Expected {
            pods: total,
            healthy,
            unmanaged,
        })
    } else if let Some(healthy) = least.as_i64() {
        Ok(Expected {
            pods: i64::try_from(pods.len()).unwrap_or(i64::MAX),
            healthy,
            unmanaged: false,
        })
    } else if !least.is_null() {
        let Scale { total, unmanaged } = scale_of_all(pods, access)?;
        Ok(Expected {
            pods: total,
            healthy: share(least, total)?,
            unmanaged,
        })
    } else {
        Ok(Expected {
            pods: 0,
            healthy: 0,
            unmanaged: false,
        })
    }
}

/// A number, or a percentage of `total`, rounded up.
fn share(value: &Value, total: i64) -> Result<i64, String> {
    if let Some(number) = value.as_i64() {
        return Ok(number);
    }
    let text = value.as_str().unwrap_or_default();
    let percent = text
        .strip_suffix('%')
        .ok_or("invalid type: string is not a percentage");
    let percent = percent.and_then(|number| {
        number
            .parse::<i64>()
            .map_err(|_| "invalid type: string is not a percentage")
    });
    let percent = percent.map_err(|error| format!("invalid value for IntOrString: {error}"))?;
    let part = percent.saturating_mul(total);
    Ok(part.div_euclid(100) + i64::from(part.rem_euclid(100) != 0))
}

struct Scale {
    total: i64,
    unmanaged: bool,
}

/// The replicas of all workloads that the pods belong to.
fn scale_of_all(pods: &[Arc<Value>], access: &dyn Access) -> Result<Scale, String> {
    let mut scales = BTreeMap::new();
    let mut unmanaged = false;
    for pod in pods {
        let Some(controller) = owner::controller_of(pod) else {
            unmanaged = true;
            continue;
        };
        let uid = controller["uid"].as_str().unwrap_or_default();
        if !scales.contains_key(uid) {
            let (uid, replicas) = scale(controller, object::namespace(pod), access)?
                .ok_or_else(|| format!("found no controllers for pod \"{}\"", object::name(pod)))?;
            scales.insert(uid, replicas);
        }
    }
    Ok(Scale {
        total: scales.into_values().fold(0, i64::saturating_add),
        unmanaged,
    })
}

/// The workload behind a reference, by uid, with its replicas.
fn scale(controller: &Value, namespace: &str, access: &dyn Access) -> Result<Option<(String, i64)>, String> {
    let text = |field: &str| controller[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if kind == "ReplicaSet" && matches!(group, "apps" | "extensions") {
        let Some(set) = find(REPLICA_SETS, controller, namespace, access) else {
            return Ok(None);
        };
        // The replicas of a Deployment are spread over its ReplicaSets.
        return Ok(match owner::controller_of(&set) {
            Some(deployment) if deployment["kind"] == "Deployment" => {
                find(DEPLOYMENTS, deployment, namespace, access).map(|deployment| replicas(&deployment))
            }
            _ => Some(replicas(&set)),
        });
    }
    let info = access
        .resources()
        .into_iter()
        .find(|info| *info.api_version == *api_version && *info.kind == *kind);
    let info = info.ok_or_else(|| format!("no matches for kind \"{kind}\" in version \"{api_version}\""))?;
    let path = scale_path(&info.resource, api_version, access)
        .ok_or_else(|| format!("{} does not implement the scale subresource", info.resource))?;
    let workload = find(&info.resource, controller, namespace, access);
    Ok(workload.map(|workload| {
        (
            object::uid(&workload).to_owned(),
            at(&workload, &path).as_i64().unwrap_or(0),
        )
    }))
}

fn find(resource: &str, reference: &Value, namespace: &str, access: &dyn Access) -> Option<Arc<Value>> {
    let object = access.get(resource, namespace, reference["name"].as_str()?)?;
    (reference["uid"] == object::uid(&object)).then_some(object)
}

fn replicas(workload: &Value) -> (String, i64) {
    (
        object::uid(workload).to_owned(),
        workload["spec"]["replicas"].as_i64().unwrap_or(1),
    )
}

/// The path of a resource's replicas, if it can be scaled: `.spec.replicas`.
fn scale_path(resource: &str, api_version: &str, access: &dyn Access) -> Option<String> {
    if matches!(resource, "statefulsets.apps" | "replicationcontrollers") {
        return Some(".spec.replicas".into());
    }
    let version = api_version.rsplit('/').next()?;
    let definition = access.get(DEFINITIONS, "", resource)?;
    let version = definition["spec"]["versions"]
        .as_array()?
        .iter()
        .find(|one| one["name"] == version)?;
    version["subresources"]["scale"]["specReplicasPath"]
        .as_str()
        .map(str::to_owned)
}

fn at<'o>(object: &'o Value, path: &str) -> &'o Value {
    path.split('.')
        .filter(|part| !part.is_empty())
        .fold(object, |value, part| &value[part])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(json!(2), 5, Ok(2))]
    #[case(json!("50%"), 5, Ok(3))]
    #[case(json!("0%"), 5, Ok(0))]
    #[case(json!("100%"), 7, Ok(7))]
    #[case(json!("34%"), 3, Ok(2))]
    #[case(json!("many"), 3, Err("invalid value for IntOrString: invalid type: string is not a percentage"))]
    fn percentages_are_rounded_up(
        #[case] value: Value,
        #[case] total: i64,
        #[case] wanted: Result<i64, &str>,
    ) {
        assert_eq!(share(&value, total), wanted.map_err(str::to_owned));
    }
}
