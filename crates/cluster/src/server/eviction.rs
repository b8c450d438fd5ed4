//! Bindings and evictions of pods.

use crate::json::{Value, json};

use super::{Caller, Change, Server, Target, WriteOptions};
use crate::controllers::disruption::{covering, eviction};
use crate::object;
use crate::status::{About, FieldError, Status};
use crate::store::{Shelf, Transaction};

impl Server {
    /// Binds a pod to a node.
    pub(crate) fn bind(
        &self,
        target: &Target,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        check_posted(target, binding, "Binding", "core")?;
        let node = binding["target"]["name"].as_str().unwrap_or_default();
        // Upstream returns these without the usual prefix.
        let mut errors = Vec::new();
        let kind = binding["target"]["kind"].as_str().unwrap_or_default();
        if !kind.is_empty() && kind != "Node" {
            errors.push(FieldError::not_supported(
                "target.kind",
                &kind.into(),
                &["Node", "<empty>"],
            ));
        }
        if node.is_empty() {
            errors.push(FieldError::required("target.name", ""));
        }
        let sentences: Vec<_> = errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message))
            .collect();
        match sentences.as_slice() {
            [] => {}
            [one] => return Err(Status::internal_plain(one)),
            several => return Err(Status::internal_plain(format!("[{}]", several.join(", ")))),
        }
        self.store.write(|tx| {
            let Some(pod) = tx.get(target.shelf(), &target.key()) else {
                return Err(Status::not_found(target.about()));
            };
            let about = About {
                plural: "pods/binding",
                ..target.about()
            };
            let (name, current) = (&target.name, pod["spec"]["nodeName"].as_str().unwrap_or_default());
            if !object::uid(binding).is_empty() && object::uid(binding) != object::uid(pod) {
                return Err(Status::conflict(about, &format!("pod {name} has another UID")));
            }
            if object::is_terminating(pod) {
                return Err(Status::conflict(
                    about,
                    &format!("pod {name} is being deleted, cannot be assigned to a host"),
                ));
            }
            if !current.is_empty() {
                return Err(Status::conflict(
                    about,
                    &format!("pod {name} is already assigned to node {current:?}"),
                ));
            }
            let (mut bound, managers) = (Value::clone(pod), pod.managers.clone());
            bound["spec"]["nodeName"] = node.into();
            set_scheduled(&mut bound, &self.now_text());
            if let Some(annotations) = binding["metadata"]["annotations"].as_object() {
                for (key, value) in annotations {
                    bound["metadata"]["annotations"][key] = value.clone();
                }
            }
            // A binding gives no field ownership.
            if !options.dry_run {
                tx.put(target.shelf(), target.key(), bound, managers);
            }
            Ok(())
        })
    }

    /// Evicts a pod unless a PodDisruptionBudget forbids it.
    pub(crate) fn evict(
        &self,
        target: &Target,
        eviction: &Value,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        check_posted(target, eviction, "Eviction", "policy")?;
        self.store.write(|tx| {
            let Some(pod) = tx.get(target.shelf(), &target.key()).cloned() else {
                return Err(Status::not_found(target.about()));
            };
            let dry_run = options.dry_run || !eviction["deleteOptions"]["dryRun"].is_null();
            if !eviction::needs_no_budget(&pod) {
                self.spend_budget(tx, target, &pod, dry_run)?;
            }
            let mut marked = Value::clone(&pod);
            marked["status"] = eviction::marked(&pod, self.now());
            // The condition gets no field owner.
            if !dry_run && marked != *pod {
                tx.put(target.shelf(), target.key(), marked, pod.managers);
            }
            self.delete_in(tx, target, &eviction["deleteOptions"], dry_run)
                .map(drop)
        })
    }

    /// Takes one disruption from the pod's budget, if it has one.
    fn spend_budget(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        pod: &Value,
        dry_run: bool,
    ) -> Result<(), Status> {
        let shelf = Shelf::new("policy", "poddisruptionbudgets");
        let budgets = tx.list(&shelf, Some(&target.namespace)).into_iter();
        let budgets = covering(pod, &budgets.map(|budget| budget.value).collect::<Vec<_>>());
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [budget] => budget.clone(),
            _ => {
                return Err(Status::internal_plain(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        let Some(status) = eviction::may_evict(&budget, pod, self.now())? else {
            return Ok(());
        };
        let Some(resource) = self.registry.by_id("poddisruptionbudgets.policy") else {
            return Ok(());
        };
        let budget = Target {
            resource,
            namespace: target.namespace.clone(),
            name: object::name(&budget).to_owned(),
            subresource: "status".into(),
        };
        let change = json!({"status": status});
        // The server itself updates the budget, whoever the caller.
        let caller = Caller {
            user: "system:apiserver".to_owned(),
            agent: "kube-apiserver".to_owned(),
        };
        let options = WriteOptions {
            dry_run,
            ..WriteOptions::default()
        };
        self.modify_in(tx, &budget, Change::Merge(&change), &options, &caller)
            .map(drop)
    }
}

/// The body of such a request must have the right kind and the pod's name.
fn check_posted(target: &Target, body: &Value, kind: &str, package: &str) -> Result<(), Status> {
    let given = body["kind"].as_str().unwrap_or_default();
    if !given.is_empty() && given != kind {
        let version = body["apiVersion"]
            .as_str()
            .unwrap_or_default()
            .rsplit('/')
            .next()
            .unwrap_or_default();
        return Err(Status::bad_request(format!(
            "{given} in version {version:?} cannot be handled as a {kind}: converting ({version}.{given}) to \
             ({package}.{kind}): unknown conversion"
        )));
    }
    let name = object::name(body);
    if !name.is_empty() && name != target.name {
        return Err(Status::bad_request(format!(
            "name in URL does not match name in {kind} object"
        )));
    }
    Ok(())
}

/// Sets the PodScheduled condition, which binding implies.
fn set_scheduled(pod: &mut Value, now: &str) {
    let condition =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = &mut pod["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    match conditions
        .iter_mut()
        .find(|known| known["type"] == "PodScheduled")
    {
        Some(known) if known["status"] == "True" => {}
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
