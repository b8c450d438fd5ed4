//! Rolling update: the next outdated pods to delete.

use std::borrow::Cow;

use crate::json::Value;

use crate::status::Status;

use super::error::failure;
use super::object::{Metadata, Pod, Set};
use super::replicas::Replicas;
use super::round::Round;
use super::status::Tally;

/// How a cluster handles `maxUnavailable`. The gate MaxUnavailableStatefulSet depends on the version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxUnavailable {
    /// One pod at a time: 1.36, and 1.35 from .4 on.
    #[default]
    Off,
    /// As many at a time as the budget leaves after all unavailable pods: 1.35.0 to .3. A Parallel set with as many broken pods never
    /// recovers (k/k#137409).
    Budget,
    /// The same, but broken pods of a Parallel set are always replaced: 1.37.
    BudgetBesideBroken,
}

/// Deletes outdated pods from the highest ordinal down to the partition; they are recreated on the update revision.
pub(super) fn roll(round: &Round<'_>, replicas: &Replicas<'_>, tally: &mut Tally) -> Result<(), Status> {
    let from = round.set.rolling_update().map_or(0, |rolling| rolling.partition);
    let targets = (from.min(replicas.count())..replicas.count())
        .rev()
        .map(|index| replicas.at(round, index));
    match round.gates.max_unavailable {
        MaxUnavailable::Off => one_by_one(round, targets, tally),
        MaxUnavailable::Budget => within_budget(round, replicas, targets, tally),
        MaxUnavailable::BudgetBesideBroken if round.set.is_parallel() => {
            broken_first(round, replicas, &targets.collect::<Vec<_>>(), tally)
        }
        MaxUnavailable::BudgetBesideBroken => within_budget(round, replicas, targets, tally),
    }
}

/// The highest outdated pod, unless one above it is unavailable.
fn one_by_one<'p>(
    round: &Round<'_>,
    targets: impl Iterator<Item = Cow<'p, Pod>>,
    tally: &mut Tally,
) -> Result<(), Status> {
    for pod in targets {
        if is_outdated(round, &pod) {
            return delete(round, &pod, tally);
        }
        if round.is_unavailable(&pod) {
            return Ok(());
        }
    }
    Ok(())
}

/// As many as the budget leaves. Unavailable pods count everywhere, also below the partition.
fn within_budget<'p>(
    round: &Round<'_>,
    replicas: &Replicas<'_>,
    targets: impl Iterator<Item = Cow<'p, Pod>>,
    tally: &mut Tally,
) -> Result<(), Status> {
    let left = budget(round.set)?.saturating_sub(replicas.unavailable(round));
    if left == 0 {
        return Ok(());
    }
    for pod in targets.filter(|pod| is_outdated(round, pod)).take(left) {
        delete(round, &pod, tally)?;
    }
    Ok(())
}

fn broken_first(
    round: &Round<'_>,
    replicas: &Replicas<'_>,
    targets: &[Cow<'_, Pod>],
    tally: &mut Tally,
) -> Result<(), Status> {
    let left = budget(round.set)?.saturating_sub(replicas.unavailable(round));
    let outdated = || targets.iter().filter(|pod| is_outdated(round, pod));
    let broken = outdated().filter(|pod| !round.is_available(pod));
    let well = outdated().filter(|pod| round.is_available(pod)).take(left);
    for pod in broken.chain(well) {
        delete(round, pod, tally)?;
    }
    Ok(())
}

fn is_outdated(round: &Round<'_>, pod: &Pod) -> bool {
    pod.revision() != round.chosen.update.name() && !pod.is_terminating()
}

/// Every deletion counts down the current revision, whichever the pod was on. If it was on neither revision, as after a second change of
/// the template, the count becomes -1; the API server rejects such a status and the sync is retried, with the pod gone by then (k/k#75498).
fn delete(round: &Round<'_>, pod: &Pod, tally: &mut Tally) -> Result<(), Status> {
    round.delete(pod)?;
    tally.current -= 1;
    Ok(())
}

/// How many pods may be unavailable: a number, or a share of the replicas rounded down, and never less than 1.
fn budget(set: &Set) -> Result<usize, Status> {
    let Some(rolling) = set.rolling_update() else {
        return Ok(1);
    };
    let share = |text: &str| {
        Some(
            text.strip_suffix('%')?
                .parse::<usize>()
                .ok()?
                .saturating_mul(set.replicas())
                / 100,
        )
    };
    let scaled = match rolling.max_unavailable {
        Value::Null => Some(1),
        Value::String(text) => share(text),
        number => number.as_i64().map(|number| usize::try_from(number).unwrap_or(0)),
    };
    match scaled {
        Some(scaled) => Ok(scaled.max(1)),
        None => Err(failure(format!(
            "spec.updateStrategy.rollingUpdate.maxUnavailable of StatefulSet {}: {} is neither a number nor a percentage",
            set.name(),
            rolling.max_unavailable
        ))),
    }
}
