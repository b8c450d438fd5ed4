//! Sequences with a name: those that once showed a difference, and those that random seeds rarely produce.

use super::job_op::{Fate, JobOp, JobSpec};
use super::op::Op;
use super::set_op::{Lost, Propagation, Retention, SetOp, SetSpec, Strategy, Template};

/// A sequence and the behaviour it shows.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) ops: Vec<Op>,
}

/// All named sequences.
pub(crate) fn all() -> Vec<Named> {
    vec![
        named(
            "the_tenth_message_for_a_reason_is_combined_with_the_next",
            [
                SetOp::Create(SetSpec {
                    replicas: 5,
                    claims: true,
                    ..ordered()
                }),
                SetOp::Scale(6),
            ],
        ),
        named(
            "a_controller_tells_25_events_about_a_set_and_no_more",
            [
                SetOp::Create(SetSpec {
                    replicas: 4,
                    ..parallel()
                }),
                SetOp::Scale(0),
                SetOp::Scale(4),
                SetOp::Scale(0),
                SetOp::Scale(4),
                SetOp::Scale(0),
                SetOp::Scale(4),
                SetOp::Scale(0),
            ],
        ),
        named(
            "a_scale_to_zero_ends_a_canary",
            [
                SetOp::Create(SetSpec {
                    strategy: Some(Strategy::Partition(2)),
                    ..ordered()
                }),
                SetOp::Template(Template::V2),
                SetOp::Scale(0),
                SetOp::Scale(3),
            ],
        ),
        named(
            "an_ordered_set_grows_from_the_bottom_and_shrinks_and_updates_from_the_top",
            [
                SetOp::Create(ordered()),
                SetOp::Scale(5),
                SetOp::Template(Template::V2),
                SetOp::Scale(1),
            ],
        ),
        named(
            "a_partition_counts_from_the_first_ordinal",
            [
                SetOp::Create(SetSpec {
                    start: 5,
                    strategy: Some(Strategy::Partition(1)),
                    ..ordered()
                }),
                SetOp::Template(Template::V2),
                SetOp::DeletePod(5),
                SetOp::Strategy(Strategy::Partition(2)),
                SetOp::DeletePod(6),
                SetOp::Ordinals(4),
            ],
        ),
        named(
            "history_is_kept_up_to_the_limit_and_reuse_raises_a_number",
            [
                SetOp::Create(SetSpec {
                    replicas: 1,
                    history_limit: Some(1),
                    ..ordered()
                }),
                SetOp::Template(Template::V2),
                SetOp::Template(Template::V3),
                SetOp::Template(Template::V4),
                SetOp::Template(Template::V3),
                SetOp::HistoryLimit(0),
                SetOp::Template(Template::V1),
            ],
        ),
        named(
            "a_lost_current_revision_promotes_the_canary",
            [
                SetOp::Create(SetSpec {
                    strategy: Some(Strategy::Partition(2)),
                    ..ordered()
                }),
                SetOp::Template(Template::V2),
                SetOp::DeleteRevision(Lost::Current),
                SetOp::DeletePod(0),
                SetOp::DeleteRevision(Lost::Update),
                SetOp::Scale(4),
            ],
        ),
        named(
            "a_taken_name_raises_the_collision_count",
            [
                SetOp::Create(SetSpec {
                    replicas: 1,
                    ..ordered()
                }),
                SetOp::TakeRevisionName(Template::V2),
                SetOp::Template(Template::V2),
                SetOp::TakeRevisionName(Template::V4),
                SetOp::Template(Template::V4),
                SetOp::Template(Template::V2),
            ],
        ),
        named(
            "an_ordered_set_waits_at_a_broken_pod_and_a_parallel_one_does_not",
            [
                SetOp::Create(SetSpec {
                    replicas: 1,
                    ..ordered()
                }),
                SetOp::Unready(1),
                SetOp::Scale(3),
                SetOp::Template(Template::V2),
                SetOp::Scale(0),
                SetOp::Ready(1),
                SetOp::Delete(Propagation::Orphan),
                SetOp::Unready(1),
                SetOp::Create(parallel()),
                SetOp::Template(Template::V3),
                SetOp::Scale(1),
            ],
        ),
        named(
            "claims_go_with_their_pods_or_their_set_as_the_policy_says",
            [
                SetOp::Create(SetSpec {
                    claims: true,
                    retention: Some(retention(false, true)),
                    ..ordered()
                }),
                SetOp::Scale(1),
                SetOp::Retention(retention(true, true)),
                SetOp::Scale(2),
                SetOp::Retention(retention(true, false)),
                SetOp::Scale(1),
                SetOp::Delete(Propagation::Background),
            ],
        ),
        named(
            "a_failed_pod_is_replaced_and_an_orphan_adopted",
            [
                SetOp::Create(parallel()),
                SetOp::Evict(1),
                SetOp::Disown(2),
                SetOp::Scale(2),
                SetOp::Reclaim(2),
                SetOp::Delete(Propagation::Orphan),
                SetOp::Create(SetSpec {
                    template: Template::V2,
                    strategy: Some(Strategy::OnDelete),
                    ..ordered()
                }),
                SetOp::DeletePod(1),
            ],
        ),
        named(
            "without_a_block_the_status_says_what_a_pod_comes_back_as",
            [
                SetOp::Create(SetSpec {
                    strategy: Some(Strategy::NoBlock),
                    ..ordered()
                }),
                SetOp::Break(Template::V2),
                SetOp::Template(Template::V2),
                SetOp::ForceDeletePod(0),
                SetOp::Template(Template::V3),
                SetOp::Heal(Template::V2),
            ],
        ),
        named(
            "a_set_that_is_deleted_waits_for_the_claim_of_a_pod_it_lost",
            [
                SetOp::Create(SetSpec {
                    replicas: 2,
                    claims: true,
                    retention: Some(retention(true, false)),
                    ..parallel()
                }),
                SetOp::Disown(0),
                SetOp::Delete(Propagation::Foreground),
                SetOp::Evict(0),
                SetOp::DeletePod(0),
            ],
        ),
        of_job(
            "a_job_pod_that_is_deleted_has_failed",
            [
                JobOp::Fate(Fate::RunOn),
                JobOp::Create(JobSpec {
                    parallelism: 3,
                    ..job()
                }),
                JobOp::DeletePod,
                JobOp::Fate(Fate::Succeed),
                JobOp::Suspend(true),
                JobOp::Suspend(false),
            ],
        ),
        of_job(
            "a_suspended_job_has_all_its_time_when_it_is_resumed",
            [
                JobOp::Fate(Fate::RunOn),
                JobOp::Create(JobSpec {
                    suspended: true,
                    deadline_seconds: Some(6),
                    ..job()
                }),
                JobOp::Suspend(false),
            ],
        ),
    ]
}

fn of_job<const N: usize>(name: &'static str, ops: [JobOp; N]) -> Named {
    Named {
        name,
        ops: ops.map(Op::Job).into(),
    }
}

fn job() -> JobSpec {
    JobSpec {
        completions: Some(3),
        parallelism: 2,
        backoff_limit: 3,
        restarts: false,
        indexed: false,
        suspended: false,
        deadline_seconds: None,
    }
}

fn named<const N: usize>(name: &'static str, ops: [SetOp; N]) -> Named {
    Named {
        name,
        ops: ops.map(Op::Set).into(),
    }
}

fn ordered() -> SetSpec {
    SetSpec {
        replicas: 3,
        parallel: false,
        strategy: None,
        start: 0,
        claims: false,
        retention: None,
        history_limit: None,
        template: Template::V1,
    }
}

fn parallel() -> SetSpec {
    SetSpec {
        parallel: true,
        ..ordered()
    }
}

fn retention(delete_when_deleted: bool, delete_when_scaled: bool) -> Retention {
    Retention {
        delete_when_deleted,
        delete_when_scaled,
    }
}
