//! Rollouts in progress.

use super::*;

fn under_way_status() -> Value {
    json!({
        "observedGeneration": 1, "phase": "Paused", "currentStepIndex": 1, "currentStepHash": "h",
        "currentStepStartedAt": "2026-01-01T00:00:30Z", "controllerPause": true,
        "pauseConditions": [{"reason": "CanaryPauseStep", "startTime": "2026-01-01T00:00:30Z"}],
        "stableRevision": "db-1", "stableTemplateHash": "t", "updatedRevision": "db-2",
    })
}

/// A rollout on a cluster, at the pause of its second step for 30 seconds.
fn under_way() -> Subject {
    let mut standing = four_steps();
    standing["status"] = under_way_status();
    let mut present = set(5);
    present["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:3.0");
    present["spec"]["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 4}});
    let mut subject = Subject::default();
    subject.add_rollout(standing);
    subject.add_stable_template(set(5)["spec"]["template"].clone());
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

/// The same, with a file that has this image.
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
        shown.contains("the template of the set takes the place"),
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
    let commands: Vec<_> = preview
        .people
        .iter()
        .map(|person| person.command.as_str())
        .collect();
    assert_eq!(
        commands,
        ["stateward promote db"],
        "its revision is not known yet"
    );
    let supposed = played(&under_way_and_asked_for("db:4.0"), &["pod=4:crash"]).unwrap();
    assert_eq!(
        (supposed.outcome, runs(&supposed, 4)),
        (
            Outcome::RolledBack,
            vec![Version::Replaced, Version::New, Version::Stable]
        )
    );
}

/// The operator has not observed it: the status is about the previous one.
#[test]
fn a_template_that_has_overtaken_the_status_begins_at_the_first_step() {
    let mut subject = under_way();
    let mut present = set(5);
    present["metadata"]["generation"] = json!(3);
    present["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:4.0");
    present["status"] = json!({"observedGeneration": 3, "updateRevision": "db-3"});
    subject.add_present_set(present.clone());
    let preview = played(&subject, &[]).unwrap();
    let shown = text(&preview, PLAIN).join("\n");
    assert!(
        shown.contains("no operator has looked at the template"),
        "{shown}"
    );
    // It was released: Kubernetes did not wait.
    assert_eq!(runs(&preview, 4), [Version::New], "{shown}");
    assert_eq!(runs(&preview, 3), [Version::Stable, Version::New], "{shown}");
    assert_eq!(preview.people[0].command, "stateward promote db", "{shown}");

    let mut back = present.clone();
    back["spec"]["template"] = set(5)["spec"]["template"].clone();
    subject.add_present_set(back);
    let preview = played(&subject, &[]).unwrap();
    let shown = text(&preview, PLAIN).join("\n");
    assert_eq!(
        (preview.outcome, preview.most_unavailable),
        (Outcome::RolledBack, 0),
        "{shown}"
    );

    let mut resting = four_steps();
    resting["status"] = json!({
        "observedGeneration": 1, "phase": "Successful", "stableRevision": "db-1", "stableTemplateHash": "t",
        "updatedRevision": "db-1",
    });
    let mut subject = Subject::default();
    subject.add_rollout(resting);
    subject.add_stable_template(set(5)["spec"]["template"].clone());
    subject.add_present_set(present);
    let preview = played(&subject, &[]).unwrap();
    let shown = text(&preview, PLAIN).join("\n");
    assert!(!shown.contains("is like the present one"), "{shown}");
    assert_eq!(preview.outcome, Outcome::Successful, "{shown}");
}

/// Its checks have failed as often as allowed.
#[test]
fn a_gate_that_stands_failed_needs_somebody() {
    let mut standing = phased(json!({"initialDelaySeconds": 0, "periodSeconds": 10, "successThreshold": 1}));
    standing["status"] = json!({
        "observedGeneration": 1, "phase": "Failed", "currentStepIndex": 2, "currentStepHash": "h",
        "currentStepStartedAt": "2026-01-01T00:00:30Z", "controllerPause": true,
        "pauseConditions": [{"reason": "ChecksFailed", "startTime": "2026-01-01T00:00:50Z"}],
        "stableRevision": "db-1", "stableTemplateHash": "t", "updatedRevision": "db-2",
    });
    let mut present = set(3);
    present["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:3.0");
    let mut subject = Subject::default();
    subject.add_rollout(standing.clone());
    subject.add_stable_template(set(3)["spec"]["template"].clone());
    subject.add_present_set(present);
    let preview = played(&subject, &[]).unwrap();
    let shown = text(&preview, PLAIN).join("\n");
    let commands: Vec<_> = preview
        .people
        .iter()
        .map(|person| person.command.as_str())
        .collect();
    assert_eq!(commands, ["stateward retry db --revision db-2"], "{shown}");
    assert_eq!(preview.outcome, Outcome::Successful, "{shown}");
    assert!(shown.contains("the gate before pod db-0"), "{shown}");
    let late = played(&subject, &["people=10m"]).unwrap();
    assert_eq!(late.waited_for_people_seconds, 600.0);
    assert_eq!(
        played(&subject, &["people=never"]).unwrap().outcome,
        Outcome::Waiting
    );
    standing["status"]["restart"] = json!(true);
    subject.add_rollout(standing);
    assert_eq!(played(&subject, &[]).unwrap().people, [], "it was said already");
}

/// A user gave it while the operator was down.
#[test]
fn a_command_that_waits_is_taken_first() {
    let mut standing = four_steps();
    standing["status"] = under_way_status();
    standing["status"]["abort"] = json!(true);
    let mut subject = under_way();
    subject.add_rollout(standing);
    let preview = played(&subject, &[]).unwrap();
    let shown = text(&preview, PLAIN).join("\n");
    assert!(shown.contains("abort was asked for"), "{shown}");
    assert_eq!(
        (preview.outcome, preview.people.len()),
        (Outcome::RolledBack, 0),
        "{shown}"
    );
}

/// Rolled-back pods count once they have been Ready for long enough, as in a rollout.
#[test]
fn a_return_takes_as_long_as_its_pods_need_to_count() {
    let mut slow = set(3);
    slow["spec"]["minReadySeconds"] = json!(60);
    let took = |set: Value| {
        let preview = preview(vec![set, four_steps()], &["abort@step2"]);
        assert_eq!(preview.outcome, Outcome::RolledBack);
        preview.duration_seconds
    };
    let longer = took(slow) - took(set(3));
    assert!(longer >= 120.0, "one way and the other, not {longer}");
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

/// It is at its second step.
#[test]
fn what_is_over_cannot_be_supposed() {
    assert_eq!(
        played(&under_way(), &["abort@step1"]).unwrap_err(),
        "--what-if abort@step1: step 1 is over; rolloutplugin/db stands at step 2"
    );
}
