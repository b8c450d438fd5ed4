//! Applies an operation to a Job.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stateward_kubelet::{Behaviour, Match};

use super::job_op::{Fate, IMAGE, JOB, JobOp};
use super::play::Stage;
use super::set_play::{api, create};
use crate::harness::{Doing, Outcome};

/// How long a pod lives before it ends.
const A_WHILE: Duration = Duration::from_millis(100);

/// Longer than the Job controller batches updates of a pod. It counts a terminating pod as failed and a deleted one by how it ended, so
/// which of the two it sees must not be random.
const STOPPING: Duration = Duration::from_secs(3);

pub(crate) async fn apply(stage: &mut Stage, op: &JobOp) -> Outcome {
    match op {
        JobOp::Create(spec) => create::<Job>(stage, spec.to_manifest()).await,
        JobOp::Fate(fate) => {
            let behaviour = match fate {
                Fate::RunOn => Behaviour::ready_after(Duration::ZERO).stops_after(STOPPING),
                Fate::Succeed => Behaviour::exits(0, A_WHILE),
                Fate::Fail => Behaviour::exits(1, A_WHILE),
            };
            stage.programme.jobs_run_on = *fate == Fate::RunOn;
            stage.cluster.pods().program(Match::image(IMAGE), behaviour);
            Ok(())
        }
        JobOp::Suspend(suspend) => patch_spec(stage, op, json!({"suspend": suspend})).await,
        JobOp::Parallelism(parallelism) => patch_spec(stage, op, json!({"parallelism": parallelism})).await,
        JobOp::DeletePod => delete_pod(stage).await,
        JobOp::Delete(propagation) => {
            let deleted = api::<Job>(stage).delete(JOB, &propagation.to_params()).await;
            deleted.doing(op.to_string()).map(drop)
        }
    }
}

async fn patch_spec(stage: &Stage, op: &JobOp, spec: Value) -> Outcome {
    let patch = Patch::Merge(json!({"spec": spec}));
    let patched = api::<Job>(stage)
        .patch(JOB, &PatchParams::default(), &patch)
        .await;
    patched.doing(op.to_string()).map(drop)
}

/// The running pods are all alike, so any of them will do.
async fn delete_pod(stage: &Stage) -> Outcome {
    let pods = api::<Pod>(stage);
    let all = pods.list(&ListParams::default()).await.doing("list pods")?;
    let running = |pod: &&Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        pod.metadata.owner_references.is_some() && phase == Some("Running")
    };
    let Some(name) = all.iter().find(running).and_then(|pod| pod.metadata.name.clone()) else {
        return Ok(());
    };
    let deleted = pods.delete(&name, &DeleteParams::default()).await;
    deleted.doing("delete a job pod").map(drop)
}
