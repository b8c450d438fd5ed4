//! The pages of spec and status.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use stateward_core::event::EventReason;
use stateward_core::record::glossary;
use stateward_core::world::{Phase, Reason};

use super::{cell, fields};

/// The definitions of the rollout kinds.
fn rollouts() -> [CustomResourceDefinition; 2] {
    [
        stateward_api::rolloutplugin::definition(),
        stateward_api::phasedrollout::definition(),
    ]
}

fn part(definition: &CustomResourceDefinition, name: &str) -> JSONSchemaProps {
    let version = &definition.spec.versions[0];
    let schema = version.schema.as_ref().unwrap();
    let schema = schema.open_api_v3_schema.as_ref().unwrap();
    schema.properties.as_ref().unwrap()[name].clone()
}

fn resource(definition: &CustomResourceDefinition, name: &str) -> String {
    let part = part(definition, name);
    let spec = &definition.spec;
    let about = part.description.clone().unwrap_or_default();
    format!(
        "\n## {}\n\n`{}/{}`. {about}\n\n{}",
        spec.names.kind,
        spec.group,
        spec.versions[0].name,
        fields::tables(name, &part)
    )
}

/// `spec.md`
pub(super) fn spec() -> String {
    let mut page = String::from(
        "# Spec\n\nEvery field that a rollout can be asked for, from the definitions that `stateward install` prints. \
         [`lint`](verbs/lint.md) checks manifests against them, and against what a schema cannot say.\n",
    );
    for definition in rollouts() {
        page.push_str(&resource(&definition, "spec"));
    }
    page
}

/// `status.md`
pub(super) fn status() -> String {
    let mut page = String::from(
        "# Status\n\nWhere a rollout stands, field by field, from the definitions that `stateward install` prints; then its \
         conditions, their reasons and its events. [`explain`](verbs/explain.md) says it in words.\n",
    );
    for definition in rollouts() {
        page.push_str(&resource(&definition, "status"));
    }
    page.push_str(&conditions());
    page.push_str(&events());
    page
}

/// A way to reach each phase; several where a phase has several meanings.
const STANDS: [(&str, Phase, Reason); 8] = [
    ("pods are on their way", Phase::Progressing, Reason::Stepping),
    ("a pause stands", Phase::Paused, Reason::StepPaused),
    ("done", Phase::Successful, Reason::Stable),
    ("aborted, and pods return", Phase::Failed, Reason::Aborting),
    ("aborted, and every pod is back", Phase::Failed, Reason::Rejected),
    ("held with a broken pod", Phase::Failed, Reason::PodBroken),
    ("held without progress", Phase::Failed, Reason::DeadlineExceeded),
    (
        "the spec cannot be carried out",
        Phase::Failed,
        Reason::InvalidSpec,
    ),
];

fn conditions() -> String {
    let mut page = String::from(
        "\n## Conditions\n\nAll have the reason and the message of where the rollout stands; `lastTransitionTime` is when the \
         condition itself last changed.\n\n| condition | is `True` when |\n|---|---|\n",
    );
    for word in &glossary::CONDITIONS {
        page.push_str(&format!("| `{}` | {} |\n", word.word, cell(word.when)));
    }
    page.push_str(
        "\nA PhasedRollout has one more: `Updated` is `True` in the phase `Updated`, `False` in `Rolling`, `Paused` and `Failed`, \
         and `Unknown` in others; its reason is the phase.\n\n\
         | a rollout | has the phase | for the reason | and says `True` of |\n|---|---|---|---|\n",
    );
    for (stands, phase, reason) in STANDS {
        let said = glossary::true_conditions(phase, reason);
        let said: Vec<_> = said.iter().map(|condition| format!("`{condition}`")).collect();
        let why = glossary::reason(reason);
        page.push_str(&format!(
            "| {stands} | `{phase:?}` | `{why}` | {} |\n",
            said.join(", ")
        ));
    }
    page.push_str(
        "\nThe phases of a PhasedRollout have names of their own, which stand at its head above.\n\n## Reasons\n\n\
         `status.reason`, the column `REASON` and every condition have one of these. Of a PhasedRollout, `Rollout` stands where a \
         RolloutPlugin has `RolloutPlugin`. Urgent is what holds a rollout until a person \
         decides, most often with pods on a version that has failed; `stateward status -o json` says so with `urgent`.\n\n| reason | when | urgent |\n|---|---|---|\n",
    );
    for word in glossary::reasons() {
        let urgent = if word.urgent { "yes" } else { "no" };
        page.push_str(&format!("| `{}` | {} | {urgent} |\n", word.word, cell(word.when)));
    }
    page
}

fn events() -> String {
    let mut page = String::from(
        "\n## Events\n\nEach is told once, and the same at one step ten times in ten minutes at the most: of a pod that is Ready now \
         and then the log of the operator tells the rest. What a rollout gets stuck on is told too, as a warning with one of the reasons above; \
         that there is no workload yet is no warning.\n\n\
         | reason | type | when |\n|---|---|---|\n",
    );
    for event in EventReason::ALL {
        page.push_str(&format!(
            "| `{event}` | {} | {} |\n",
            event.event_type().as_str(),
            cell(event.description())
        ));
    }
    page
}
