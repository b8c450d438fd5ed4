//! Builds a new pod of a Job.

use crate::json::{Map, Value, json};

use super::tracked_pod::{COMPLETION_INDEX, IndexFailures, TRACKING};
use super::{API_VERSION, KIND};
use crate::controllers::edit::add_finalizer;
use crate::controllers::owner;
use crate::object;

/// The server generates names from at most this many characters and five random ones.
const LONGEST_PREFIX: usize = 58;

const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// A pod from the Job's template, with its index and its failure count, if any.
pub(super) fn new_pod(job: &Value, index: Option<i64>, failures: Option<IndexFailures>) -> Value {
    let template = &job["spec"]["template"];
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template["metadata"].get(field) {
            metadata.insert(field.into(), value.clone());
        }
    }
    metadata.insert("generateName".into(), format!("{}-", object::name(job)).into());
    metadata.insert(
        "ownerReferences".into(),
        json!([owner::controller_reference(job, API_VERSION, KIND)]),
    );
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]});
    add_finalizer(&mut pod, TRACKING);
    if let Some(index) = index {
        give_index(&mut pod, object::name(job), index);
    }
    for (name, value) in failures.into_iter().flat_map(IndexFailures::annotations) {
        put(&mut pod, "annotations", name, value);
    }
    pod
}

fn give_index(pod: &mut Value, job: &str, index: i64) {
    let suffix = format!("-{index}-");
    let room = LONGEST_PREFIX.saturating_sub(suffix.len());
    let prefix: String = if job.len() > room {
        job.chars().take(room).collect()
    } else {
        job.to_owned()
    };
    object::metadata_mut(pod).insert("generateName".into(), format!("{prefix}{suffix}").into());
    put(pod, "annotations", COMPLETION_INDEX, index.to_string());
    put(pod, "labels", COMPLETION_INDEX, index.to_string());
    let Some(spec) = pod["spec"].as_object_mut() else {
        return;
    };
    spec.insert("hostname".into(), format!("{job}-{index}").into());
    for field in ["initContainers", "containers"] {
        for container in spec
            .get_mut(field)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            tell_index(container);
        }
    }
}

/// Sets the index variable unless the template does.
fn tell_index(container: &mut Value) {
    let Some(container) = container.as_object_mut() else {
        return;
    };
    let variables = container.entry("env").or_insert_with(|| json!([]));
    let Some(variables) = variables.as_array_mut() else {
        return;
    };
    if !variables
        .iter()
        .any(|variable| variable["name"] == INDEX_VARIABLE)
    {
        let path = format!("metadata.labels['{COMPLETION_INDEX}']");
        variables.push(json!({"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
    }
}

fn put(pod: &mut Value, field: &str, name: &str, value: String) {
    let entries = object::metadata_mut(pod)
        .entry(field)
        .or_insert_with(|| json!({}));
    if !entries.is_object() {
        *entries = json!({});
    }
    entries[name] = value.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str) -> Value {
        json!({"metadata": {"name": name, "uid": "u"}, "spec": {"template": {
            "metadata": {"labels": {"job-name": name}},
            "spec": {"containers": [{"name": "c"}, {"name": "d", "env": [{"name": INDEX_VARIABLE, "value": "x"}]}]},
        }}})
    }

    #[test]
    fn a_pod_without_index_is_the_template_with_owner_and_finalizer() {
        let pod = new_pod(&job("work"), None, None);
        assert_eq!(
            pod["metadata"],
            json!({
                "generateName": "work-",
                "labels": {"job-name": "work"},
                "finalizers": ["batch.kubernetes.io/job-tracking"],
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "u",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            })
        );
    }

    #[test]
    fn a_pod_with_an_index_knows_it() {
        let pod = new_pod(
            &job("work"),
            Some(3),
            Some(IndexFailures {
                counted: 1,
                ignored: 0,
            }),
        );
        let metadata = &pod["metadata"];
        assert_eq!(metadata["generateName"], "work-3-");
        assert_eq!(metadata["labels"][COMPLETION_INDEX], "3");
        let failures = "batch.kubernetes.io/job-index-failure-count";
        assert_eq!(
            metadata["annotations"],
            json!({COMPLETION_INDEX: "3", failures: "1"})
        );
        assert_eq!(pod["spec"]["hostname"], "work-3");
        let path = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        let told = json!([{"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}]);
        assert_eq!(pod["spec"]["containers"][0]["env"], told);
        assert_eq!(
            pod["spec"]["containers"][1]["env"],
            json!([{"name": INDEX_VARIABLE, "value": "x"}])
        );
    }

    #[test]
    fn a_long_name_loses_its_end_and_keeps_its_index() {
        let pod = new_pod(&job(&"j".repeat(60)), Some(7), None);
        assert_eq!(pod["metadata"]["generateName"], format!("{}-7-", "j".repeat(55)));
    }
}
