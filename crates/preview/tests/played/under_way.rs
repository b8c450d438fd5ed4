//! Rollouts that have begun already.

use super::*;

/// As a cluster has it: at the pause of its second step, for 30 seconds.
fn under_way() -> Subject {
    let mut standing = four_steps();
    standing["status"] = json!({
        "observedGeneration": 1, "phase": "Paused", "currentStepIndex": 1, "currentStepHash": "h",
        "currentStepStartedAt": "2026-01-01T00:00:30Z", "controllerPause": true,
        "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:00:30Z"}],
        "stableRevision": "db-1", "stableTemplateHash": "t", "updatedRevision": "db-2",
        "stableTemplate": set(5)["spec"]["template"],
    });
    let mut present = set(5);
    present["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:3.0");
    present["spec"]["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 4}});
    let mut subject = Subject::default();
    subject.add_rollout(standing);
    subject.add_present_set(present);
    subject
}

#[test]
fn a_rollout_under_way_is_played_from_where_it_stands() {
    let preview = played(&under_way(), &["pod=4:crash"]).unwrap();
    assert_eq!(
        preview.entries[0].what,
        Happening::Waits {
            command: "stateward promote db --revision db-2".into()
        },
        "{}",
        text(&preview, PLAIN).join("\n")
    );
    assert_eq!(
        preview.pods[4].spans[0].version,
        Version::New,
        "that pod was new before"
    );
    assert_eq!(preview.outcome, Outcome::RolledBack);
}

/// The same, with a file that asks for this image.
fn under_way_and_asked_for(image: &str) -> Subject {
    let mut to_be = set(5);
    to_be["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    let mut subject = under_way();
    subject.add_manifests(vec![to_be]).unwrap();
    subject
}

fn runs(preview: &Preview, pod: usize) -> Vec<Version> {
    let mut versions: Vec<_> = preview.pods[pod].spans.iter().map(|span| span.version).collect();
    versions.dedup();
    versions
}

#[test]
fn a_third_version_begins_at_the_first_step() {
    let preview = played(&under_way_and_asked_for("db:4.0"), &[]).unwrap();
    let shown = text(&preview, PLAIN).join("\n");
    assert!(
        shown.contains("the template that was given takes the place"),
        "{shown}"
    );
    let first = preview.entries.iter().find_map(|entry| match &entry.what {
        Happening::Step { step, .. } => Some(*step),
        _ => None,
    });
    assert_eq!(first, Some(1), "{shown}");
    assert_eq!(runs(&preview, 4), [Version::Replaced, Version::New], "{shown}");
    assert_eq!(runs(&preview, 0), [Version::Stable, Version::New], "{shown}");
    assert_eq!(preview.outcome, Outcome::Successful, "{shown}");
    assert!(shown.contains("replaced"), "{shown}");
    let supposed = played(&under_way_and_asked_for("db:4.0"), &["pod=4:crash"]).unwrap();
    assert_eq!(
        (supposed.outcome, runs(&supposed, 4)),
        (
            Outcome::RolledBack,
            vec![Version::Replaced, Version::New, Version::Stable]
        )
    );
}

#[test]
fn the_version_that_is_under_way_goes_on() {
    let preview = played(&under_way_and_asked_for("db:3.0"), &["pod=4:crash"]).unwrap();
    let as_it_stands = played(&under_way(), &["pod=4:crash"]).unwrap();
    assert_eq!(preview.entries, as_it_stands.entries);
}

#[test]
fn a_template_that_is_put_back_returns_every_pod() {
    let image = set(5)["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    let preview = played(&under_way_and_asked_for(image.as_str().unwrap()), &[]).unwrap();
    assert_eq!(preview.outcome, Outcome::RolledBack);
    assert_eq!(runs(&preview, 4), [Version::Replaced, Version::Stable]);
    assert_eq!(runs(&preview, 3), [Version::Stable]);
}

/// It stands at its second step.
#[test]
fn what_is_over_cannot_be_supposed() {
    assert_eq!(
        played(&under_way(), &["abort@step1"]).unwrap_err(),
        "--what-if abort@step1: step 1 is over; rolloutplugin/db stands at step 2"
    );
}
