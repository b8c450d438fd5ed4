//! The output of `stateward plan`, compared with what happens: the same partitions and the same pods in the same order.

mod phasedrollout;
mod rolloutplugin;

use std::time::Duration;

use serde_json::{Value, json};
use stateward_preview::{Outcome as Ending, Preview, Subject, Version, play};

use crate::harness::{Cluster, Kind, Outcome, Rollout, Scenario, Set};

/// All scenarios of this module.
pub fn all() -> Vec<Scenario> {
    [phasedrollout::all(), rolloutplugin::all()].concat()
}

/// Plans the rollout from the cluster's current state to v2.
async fn planned<K: Kind>(
    cluster: &Cluster,
    db: &Set<'_>,
    rollout: &Rollout<'_, K>,
    templates: Vec<Value>,
    what_ifs: &[&str],
) -> Outcome<Preview> {
    planned_to(cluster, db, rollout, "v2", templates, what_ifs).await
}

/// The same with any version.
async fn planned_to<K: Kind>(
    cluster: &Cluster,
    db: &Set<'_>,
    rollout: &Rollout<'_, K>,
    tag: &str,
    templates: Vec<Value>,
    what_ifs: &[&str],
) -> Outcome<Preview> {
    let mut subject = Subject::default();
    let standing = rollout.raw().await?;
    let copy = standing["status"]["stableTemplateCopy"].as_str();
    let copy = copy.and_then(|name| cluster.look(|view| view.revisions.get(name).cloned()));
    if let Some(mut data) = copy.and_then(|copy| copy.data) {
        let mut template = data.0["spec"]["template"].take();
        template.as_object_mut().map(|fields| fields.remove("$patch"));
        subject.add_stable_template(template);
    }
    subject.add_rollout(standing);
    let present = json!(db.get().await?);
    let mut to_be = present.clone();
    to_be["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("example.com/db:{tag}"));
    subject.add_present_set(present);
    let added = subject.add_manifests(templates.into_iter().chain([to_be]));
    let what_ifs: Result<Vec<_>, _> = what_ifs.iter().map(|what_if| what_if.parse()).collect();
    let what_ifs = what_ifs.map_err(|why: String| cluster.unmet("what can happen", why))?;
    let pace = subject.pace(Some(Duration::from_secs(1)), None);
    let now = jiff::Timestamp::from_second(1_767_225_600).unwrap_or_default();
    added
        .and_then(|()| play(&subject, &what_ifs, pace, now, "stateward"))
        .map_err(|why| cluster.unmet("a preview", why.to_string()))
}

/// Where the recorded changes of a set begin.
struct Since {
    partitions: usize,
    pods: usize,
}

fn since(cluster: &Cluster) -> Since {
    cluster.look(|view| Since {
        partitions: view.partitions.len(),
        pods: view.pod_changes.len(),
    })
}

/// Compares what happened with the plan.
fn agrees(cluster: &Cluster, since: &Since, plan: &Preview) -> Outcome {
    let (partitions, readied) = cluster.look(|view| {
        let partitions: Vec<_> = view.partitions[since.partitions..]
            .iter()
            .map(|(_, partition)| *partition)
            .collect();
        let mut ready = std::collections::BTreeMap::new();
        let mut readied = Vec::new();
        for (count, (name, row)) in view.pod_changes.iter().enumerate() {
            let is = row.as_ref().filter(|row| row.ready && !row.terminating);
            let was = match is {
                Some(row) => ready.insert(name.clone(), row.uid.clone()),
                None => {
                    ready.remove(name);
                    continue;
                }
            };
            if let Some(row) = is.filter(|row| was.as_ref() != Some(&row.uid) && count >= since.pods) {
                let version = if row.image == "v1" {
                    Version::Stable
                } else {
                    Version::New
                };
                readied.push((name.clone(), version));
            }
        }
        (partitions, readied)
    });
    let same = partitions == plan.partitions() && readied == plan.readied();
    if same {
        return Ok(());
    }
    Err(cluster.unmet(
        format!("partitions {:?}, pods {:?}", plan.partitions(), plan.readied()),
        format!("partitions {partitions:?}, pods {readied:?}"),
    ))
}

fn ends(cluster: &Cluster, plan: &Preview, ending: Ending) -> Outcome {
    let what = format!(
        "a plan that ends {ending:?}, not {:?}: {}",
        plan.outcome, plan.message
    );
    cluster.expect(&what, plan.outcome == ending)
}
