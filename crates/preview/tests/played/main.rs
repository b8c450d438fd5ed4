//! Previews of rollouts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what a test cannot set up fails it"
)]

mod pictures;
mod supposed;
mod under_way;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};
use stateward_preview::{Happening, Look, Outcome, Preview, Subject, Version, play, svg, text};

const PLAIN: Look = Look {
    colour: false,
    ascii: true,
    width: 72,
};

fn set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": "db:2.0"}]},
            },
        },
    })
}

fn rollout(steps: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin", "metadata": {"name": "db"},
        "spec": {
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "plugin": {"name": "statefulset"},
            "progressDeadlineAbort": true,
            "strategy": {"canary": {"steps": steps}},
        },
    })
}

fn four_steps() -> Value {
    rollout(json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {"duration": "5m"}}]))
}

/// Three successful measurements, ten seconds apart, of a metric that requires a Secret.
fn template() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "errors"},
        "spec": {
            "args": [{"name": "token", "valueFrom": {"secretKeyRef": {"name": "api", "key": "token"}}}],
            "metrics": [{
                "name": "errors", "interval": "10s", "count": 3,
                "successCondition": "result < 0.01",
                "provider": {"web": {
                    "url": "https://example.com",
                    "headers": [{"key": "Authorization", "value": "{{args.token}}"}],
                }},
            }],
        },
    })
}

/// A weight, then an analysis.
fn analysed() -> Vec<Value> {
    let steps = json!([{"setWeight": 20}, {"analysis": {"templates": [{"templateName": "errors"}]}}]);
    vec![set(3), rollout(steps), template()]
}

fn phased(check: Value) -> Value {
    let mut check = check;
    check["query"] = json!({"expr": "up == 0", "url": "prom:9090", "secretRef": "prom"});
    json!({
        "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout", "metadata": {"name": "db"},
        "spec": {"targetRef": "db", "check": check},
    })
}

fn subject(objects: Vec<Value>) -> Subject {
    let mut subject = Subject::default();
    subject.add_manifests(objects).unwrap();
    subject
}

fn played(subject: &Subject, what_ifs: &[&str]) -> Result<Preview, String> {
    let what_ifs: Vec<_> = what_ifs.iter().map(|what_if| what_if.parse().unwrap()).collect();
    let pace = subject.pace(Some(Duration::from_secs(10)), None);
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    play(subject, &what_ifs, pace, now, "stateward").map_err(|error| error.to_string())
}

fn preview(objects: Vec<Value>, what_ifs: &[&str]) -> Preview {
    played(&subject(objects), what_ifs).unwrap()
}

fn new(pods: &[u32]) -> Vec<(String, Version)> {
    pods.iter()
        .map(|ordinal| (format!("db-{ordinal}"), Version::New))
        .collect()
}

#[test]
fn a_rollout_is_told_step_by_step_and_pod_by_pod() {
    let preview = preview(vec![set(5), four_steps()], &[]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(
        told,
        "\
rolloutplugin/db rolls statefulset/db (5 pods) through 4 steps
  a pod is Ready 10s after it is made (as asked for) and gone 2s after it is asked to stop
  every pod runs an earlier version of the same shape

       0s  step 1 of 4: 20 %
       0s    partition 5 to 4
      12s    db-4 is Ready on the new version
      12s  step 2 of 4: pause until promoted
      12s    waits for a person: stateward promote db
      12s    > stateward promote db
      12s  step 3 of 4: 60 %
      12s    partition 4 to 2
      24s    db-3 is Ready on the new version
      36s    db-2 is Ready on the new version
      36s  step 4 of 4: pause 5m
    5m36s  all steps are done, the remaining pods follow
    5m36s    partition 2 to 0
    5m48s    db-1 is Ready on the new version
       6m    db-0 is Ready on the new version
       6m    partition 0 to 5: no pod moves any more
       6m  ends: every pod runs the new version

  step  1      2,3           4                       rest
  db-0  ----------------------------------------------------.++++++####
  db-1  ---------------------------------------------.++++++###########
  db-2  --------------.++++++##########################################
  db-3  -------.++++++#################################################
  db-4  .++++++########################################################
        - stable   # new   + starting   . stopping   x unwell
        long waits are shortened

outcome      Successful
duration     6m, and the time that people take
unavailable  1 of 5 pods at most
people       step 2: stateward promote db"
    );
    assert_eq!(preview.partitions(), [4, 2, 0, 5]);
    assert_eq!(preview.readied(), new(&[4, 3, 2, 1, 0]));
}

#[rstest]
#[case::a_new_version_that_crashes("image=crash", Outcome::RolledBack, 16.4, 1)]
#[case::a_pod_that_is_never_ready("pod=2:never-ready", Outcome::RolledBack, 660.0, 1)]
#[case::a_pod_that_takes_its_time("pod=3:ready-after=1m", Outcome::Successful, 410.0, 1)]
#[case::an_image_that_is_not_there("image=no-image", Outcome::RolledBack, 13.0, 1)]
#[case::an_operator_that_is_away("operator-down=5m", Outcome::Successful, 660.0, 1)]
#[case::people_who_take_an_hour("people=1h", Outcome::Successful, 3960.0, 1)]
#[case::nobody_comes("people=never", Outcome::Waiting, 12.0, 1)]
#[case::somebody_aborts("abort@step3", Outcome::RolledBack, 36.0, 1)]
fn what_is_supposed_happens(
    #[case] what_if: &str,
    #[case] outcome: Outcome,
    #[case] seconds: f64,
    #[case] unavailable: u32,
) {
    let preview = preview(vec![set(5), four_steps()], &[what_if]);
    assert_eq!(
        (
            preview.outcome,
            preview.duration_seconds,
            preview.most_unavailable
        ),
        (outcome, seconds, unavailable),
        "{}",
        text(&preview, PLAIN).join("\n")
    );
    assert_eq!(preview.what_if, [what_if]);
}

/// The stable pods are available at the beginning, however long a pod takes.
#[rstest]
#[case(60)]
#[case(3600)]
fn a_pod_counts_when_it_was_ready_for_as_long_as_the_set_asks(#[case] min_ready: u32) {
    let mut set = set(3);
    set["spec"]["minReadySeconds"] = json!(min_ready);
    let mut rollout = rollout(json!([{"setWeight": 40}]));
    rollout["spec"]["progressDeadlineSeconds"] = json!(7200);
    let preview = preview(vec![set, rollout], &[]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(
        (preview.outcome, preview.most_unavailable),
        (Outcome::Successful, 1),
        "{told}"
    );
    assert_eq!(
        preview.duration_seconds,
        3.0 * (12.0 + f64::from(min_ready)),
        "{told}"
    );
}

#[test]
fn a_set_that_is_scaled_in_the_middle_takes_the_new_pods_along() {
    let preview = preview(vec![set(5), four_steps()], &["scale=7@step2"]);
    assert!(
        preview
            .entries
            .iter()
            .any(|entry| entry.what == Happening::Scaled { from: 5, to: 7 })
    );
    assert_eq!((preview.outcome, preview.pods.len()), (Outcome::Successful, 7));
    assert_eq!(
        preview.most_unavailable, 1,
        "pods that are yet to come are missed by nobody"
    );
}

/// The version is replaced: the stable template takes its place.
#[test]
fn a_set_that_is_scaled_to_zero_is_not_rolled() {
    let preview = preview(vec![set(5), four_steps()], &["scale=0@step2"]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(preview.outcome, Outcome::RolledBack, "{told}");
    for piece in [
        "goes back: scaled to zero, and the template gives way to the stable one",
        "ends: there are no pods; those to come would run the stable version",
    ] {
        assert!(told.contains(piece), "{piece} is not in {told}");
    }
}

#[rstest]
#[case::people_who_take_hours("people=3h", Outcome::Successful, 3.0 * 3600.0 + 360.0)]
#[case::people_who_take_weeks("people=700h", Outcome::Successful, 700.0 * 3600.0 + 360.0)]
#[case::an_operator_that_is_away_for_hours("operator-down=3h", Outcome::Successful, 3.0 * 3600.0 + 360.0)]
#[case::an_operator_that_is_away_for_days("operator-down=200h@step3", Outcome::Successful, 200.0 * 3600.0 + 336.0)]
fn what_takes_long_is_waited_for(#[case] what_if: &str, #[case] outcome: Outcome, #[case] seconds: f64) {
    let preview = preview(vec![set(5), four_steps()], &[what_if]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(
        (preview.outcome, preview.duration_seconds),
        (outcome, seconds),
        "{told}"
    );
}

#[test]
fn a_pause_of_weeks_is_played_to_its_end() {
    let steps = json!([{"setWeight": 20}, {"pause": {"duration": "700h"}}]);
    let preview = preview(vec![set(2), rollout(steps)], &[]);
    assert_eq!(
        (preview.outcome, preview.duration_seconds),
        (Outcome::Successful, 700.0 * 3600.0 + 24.0)
    );
}

/// No operator has observed the change yet.
#[test]
fn an_operator_that_is_away_from_the_beginning_releases_nothing() {
    let preview = preview(vec![set(5), four_steps()], &["operator-down=5m"]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(
        preview.entries[0].what,
        Happening::Done {
            what_if: "operator-down=5m".into()
        },
        "{told}"
    );
    let first = preview
        .entries
        .iter()
        .find(|entry| matches!(entry.what, Happening::Step { .. }));
    assert_eq!(first.unwrap().at, 300.0, "{told}");
}

/// An inconclusive metric requires a user's decision.
#[rstest]
#[case::in_a_step(
    json!({"steps": [{"setWeight": 20}, {"analysis": {"templates": [{"templateName": "errors"}]}}]}),
    Some(2)
)]
#[case::beside_the_steps(
    json!({
        "steps": [{"setWeight": 20}, {"pause": {"duration": "10m"}}],
        "analysis": {"templates": [{"templateName": "errors"}]},
    }),
    Some(2)
)]
fn no_verdict_takes_a_person(#[case] canary: Value, #[case] step: Option<usize>) {
    let mut rollout = rollout(json!([]));
    rollout["spec"]["strategy"]["canary"] = canary;
    let mut template = template();
    template["spec"]["metrics"][0]["initialDelay"] = json!("1m");
    let objects = vec![set(3), rollout, template];
    let answered = preview(objects.clone(), &["metric=errors:inconclusive", "people=3h"]);
    let told = text(&answered, PLAIN).join("\n");
    assert_eq!(answered.outcome, Outcome::Successful, "{told}");
    let needed: Vec<_> = answered
        .people
        .iter()
        .map(|person| (person.step, &*person.command))
        .collect();
    assert_eq!(needed, [(step, "stateward promote db")], "{told}");
    assert_eq!(answered.waited_for_people_seconds, 3.0 * 3600.0, "{told}");
    let alone = preview(objects, &["metric=errors:inconclusive", "people=never"]);
    assert_eq!((alone.outcome, alone.people.len()), (Outcome::Waiting, 1));
}

/// The deadline does not wait for users, and their answer counts after it.
#[test]
fn whoever_comes_after_the_deadline_is_heard() {
    let mut rollout = rollout(json!([{"setWeight": 20}]));
    rollout["spec"]["strategy"]["canary"]["analysis"] = json!({"templates": [{"templateName": "errors"}]});
    rollout["spec"]["progressDeadlineAbort"] = json!(false);
    let objects = vec![set(3), rollout, template()];
    let late = preview(objects.clone(), &["metric=inconclusive", "people=20m"]);
    assert_eq!(
        late.outcome,
        Outcome::Successful,
        "{}",
        text(&late, PLAIN).join("\n")
    );
    let never = preview(objects, &["metric=inconclusive", "people=never"]);
    assert_eq!(never.outcome, Outcome::Held, "{}", text(&never, PLAIN).join("\n"));
}

/// A background analysis continues as long as no user acts.
#[test]
fn nobody_comes_however_often_is_measured() {
    let mut rollout = four_steps();
    rollout["spec"]["strategy"]["canary"]["analysis"] = json!({"templates": [{"templateName": "errors"}]});
    let mut template = template();
    template["spec"]["metrics"][0]
        .as_object_mut()
        .unwrap()
        .remove("count");
    template["spec"]["metrics"][0]["interval"] = json!("5m");
    let preview = preview(vec![set(5), rollout, template], &["people=never"]);
    assert_eq!(
        preview.outcome,
        Outcome::Waiting,
        "{}",
        text(&preview, PLAIN).join("\n")
    );
}

#[test]
fn a_set_without_pods_has_nothing_to_take_steps_for() {
    let preview = preview(vec![set(0), four_steps()], &[]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(preview.outcome, Outcome::Successful, "{told}");
    assert!(
        told.contains("there are no pods; those to come would run the new version"),
        "{told}"
    );
}

#[test]
fn pods_may_have_to_be_ready_for_hours() {
    let mut set = set(3);
    set["spec"]["minReadySeconds"] = json!(3 * 3600);
    let mut rollout = four_steps();
    rollout["spec"]["progressDeadlineSeconds"] = json!(24 * 3600);
    let preview = preview(vec![set, rollout], &[]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(preview.outcome, Outcome::Successful, "{told}");
    assert!(preview.duration_seconds > 9.0 * 3600.0, "{told}");
}

#[test]
fn what_it_does_not_come_to_is_said() {
    let preview = preview(vec![set(3), four_steps()], &["image=crash", "scale=7@step3"]);
    let told = text(&preview, PLAIN).join("\n");
    assert_eq!(preview.outcome, Outcome::RolledBack, "{told}");
    assert!(told.contains("\n  it does not come to scale=7@step3\n"), "{told}");
}

/// A limit is not a wait: it is often set very high.
#[test]
fn a_deadline_of_years_is_no_reason_to_refuse() {
    let mut rollout = four_steps();
    rollout["spec"]["progressDeadlineSeconds"] = json!(i32::MAX);
    let good = preview(vec![set(2), rollout], &[]);
    assert_eq!(good.outcome, Outcome::Successful);
}

#[test]
fn what_is_said_of_one_holds_whatever_is_said_of_all() {
    let objects = || vec![set(3), rollout(json!([{"setWeight": 40}]))];
    for what_ifs in [
        ["pod=2:ready-after=1m", "image=crash"],
        ["image=crash", "pod=2:ready-after=1m"],
    ] {
        let preview = preview(objects(), &what_ifs);
        assert_eq!(
            preview.readied()[0],
            ("db-2".to_owned(), Version::New),
            "{what_ifs:?}"
        );
        assert_eq!(preview.outcome, Outcome::RolledBack, "{what_ifs:?}");
    }
}

#[test]
fn several_things_can_go_wrong_at_once() {
    let preview = preview(
        vec![set(5), four_steps()],
        &["operator-down=20m@step3", "pod=2:crash", "people=10m"],
    );
    // The operator observed it only once it was running again.
    let back = preview
        .entries
        .iter()
        .find(|entry| matches!(entry.what, Happening::Returns { .. }));
    assert!(
        back.unwrap().at >= 30.0 * 60.0,
        "{}",
        text(&preview, PLAIN).join("\n")
    );
    assert_eq!(preview.outcome, Outcome::RolledBack);
}

#[test]
fn analysis_takes_its_time_and_asks_nobody() {
    let steps = json!([{"setWeight": 20}, {"analysis": {"templates": [{"templateName": "errors"}]}}]);
    let objects = vec![set(3), rollout(steps), template()];
    let good = preview(objects.clone(), &[]);
    // One pod, three measurements ten seconds apart, two pods.
    assert_eq!((good.outcome, good.duration_seconds), (Outcome::Successful, 56.0));
    let bad = preview(objects.clone(), &["metric=fails@step2"]);
    assert_eq!((bad.outcome, bad.duration_seconds), (Outcome::RolledBack, 24.0));
    let silent = preview(objects, &["metric=errors:silent"]);
    assert_ne!(silent.outcome, Outcome::Successful, "no answer is no success");
}

#[test]
fn a_job_is_run_and_may_fail() {
    let job = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ClusterAnalysisTemplate", "metadata": {"name": "smoke"},
        "spec": {"metrics": [{"name": "smoke", "provider": {"job": {"spec": {
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "t", "image": "t:1"}]}},
        }}}}]},
    });
    let steps = json!([
        {"setWeight": 50},
        {"analysis": {"templates": [{"templateName": "smoke", "clusterScope": true}]}},
    ]);
    let objects = vec![set(2), rollout(steps), job];
    assert_eq!(preview(objects.clone(), &[]).outcome, Outcome::Successful);
    assert_eq!(
        preview(objects.clone(), &["metric=fails"]).outcome,
        Outcome::RolledBack
    );
    assert_eq!(
        preview(objects, &["metric=smoke:fails"]).outcome,
        Outcome::RolledBack
    );
}

/// S002: a gate before each pod and after the last.
#[test]
fn a_phased_rollout_is_played_with_its_checks() {
    let check = json!({"initialDelaySeconds": 30, "periodSeconds": 30, "successThreshold": 3, "maxTries": 5});
    let good = preview(vec![set(3), phased(check.clone())], &[]);
    // Four gates of 30 s and twice 30 s, three pods of 12 s.
    assert_eq!(
        (good.outcome, good.duration_seconds),
        (Outcome::Successful, 4.0 * 90.0 + 36.0)
    );
    assert_eq!(good.readied(), new(&[2, 1, 0]));
    assert_eq!(good.most_unavailable, 1);
    let held = preview(vec![set(3), phased(check)], &["metric=fails@step3"]);
    assert_eq!(held.outcome, Outcome::Held, "{}", text(&held, PLAIN).join("\n"));
    assert_eq!(held.readied(), new(&[2]));
}

#[test]
fn a_phased_rollout_that_skips_its_checks_is_kubernetes_own() {
    let mut rollout = phased(json!({}));
    rollout["spec"]["skipCheck"] = json!(true);
    let preview = self::preview(vec![set(3), rollout.clone()], &[]);
    assert_eq!(
        (preview.outcome, preview.duration_seconds),
        (Outcome::Successful, 36.0)
    );
    let scaled = self::preview(vec![set(3), rollout], &["scale=4"]);
    assert_eq!((scaled.outcome, scaled.pods.len()), (Outcome::Successful, 4));
}

#[rstest]
#[case("scale=4@step1", "there are no steps")]
#[case("metric=fails", "phasedrollout/db asks for no analysis")]
#[case("abort", "there is nothing to abort")]
fn what_kubernetes_rolls_by_itself_has_no_steps(#[case] what_if: &str, #[case] why: &str) {
    let mut rollout = phased(json!({}));
    rollout["spec"]["skipCheck"] = json!(true);
    let refused = played(&subject(vec![set(3), rollout]), &[what_if]).unwrap_err();
    assert!(refused.ends_with(why), "{refused}");
}

#[test]
fn a_file_is_played_against_what_the_cluster_has() {
    let mut present = set(4);
    present["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:1.0");
    let mut to_be = set(4);
    to_be["spec"].as_object_mut().unwrap().remove("replicas");
    let mut subject = subject(vec![to_be.clone(), four_steps()]);
    subject.add_present_set(present.clone());
    let preview = played(&subject, &[]).unwrap();
    assert_eq!((preview.replicas, preview.outcome), (4, Outcome::Successful));
    // Applying the same again changes nothing.
    to_be["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:1.0");
    let mut again = self::subject(vec![to_be, four_steps()]);
    again.add_present_set(present);
    assert_eq!(
        played(&again, &[]).unwrap_err(),
        "the pods of StatefulSet db run what it asks for already; nothing would be rolled"
    );
}

#[rstest]
#[case::no_rollout(vec![set(5)], &[], "there is no RolloutPlugin and no PhasedRollout among what was given")]
#[case::no_set(vec![four_steps()], &[], "rolloutplugin/db needs StatefulSet db, which was not given; name its file as well")]
#[case::two_rollouts(vec![set(5), four_steps(), phased(json!({}))], &[], "there are two: RolloutPlugin db and PhasedRollout db")]
#[case::no_such_step(vec![set(5), four_steps()], &["scale=7@step9"], "--what-if scale=7@step9: there is no step 9; rolloutplugin/db has 4")]
#[case::no_such_pod(vec![set(5), four_steps()], &["pod=5:crash"], "--what-if pod=5:crash: there is no pod 5; the set has 0 to 4")]
#[case::no_analysis(vec![set(5), four_steps()], &["metric=fails"], "--what-if metric=fails: rolloutplugin/db asks for no analysis")]
#[case::no_such_metric(analysed(), &["metric=foo:fails"], "--what-if metric=foo:fails: there is no metric foo here; there is errors")]
#[case::no_such_metric_at_this_step(analysed(), &["metric=foo:fails@step2"], "--what-if metric=foo:fails@step2: there is no metric foo here; there is errors")]
#[case::no_analysis_at_this_step(analysed(), &["metric=fails@step1"], "--what-if metric=fails@step1: step 1 has no analysis, and none runs beside it; step 2 has")]
#[case::a_size_it_has(vec![set(5), four_steps()], &["scale=5@step2"], "--what-if scale=5@step2: the set has 5 already")]
#[case::people_in_two_minds(vec![set(5), four_steps()], &["people=1m", "people=never"], "--what-if people=never: --what-if people=1m says otherwise; leave one of them out")]
#[case::an_image_in_two_minds(vec![set(5), four_steps()], &["image=crash", "image=no-image"], "--what-if image=no-image: --what-if image=crash says otherwise")]
#[case::a_pod_in_two_minds(vec![set(5), four_steps()], &["pod=1:crash", "pod=1:never-ready"], "--what-if pod=1:never-ready: --what-if pod=1:crash says otherwise")]
#[case::a_size_in_two_minds(vec![set(5), four_steps()], &["scale=7", "scale=6@step1"], "--what-if scale=6@step1: --what-if scale=7 says otherwise")]
#[case::a_metric_in_two_minds(analysed(), &["metric=fails", "metric=silent"], "--what-if metric=silent: --what-if metric=fails says otherwise")]
#[case::more_pods_than_are_played(vec![set(2_147_483_647), four_steps()], &[], "StatefulSet db: spec.replicas: 2147483647 is more than the 500 pods that are simulated")]
#[case::more_pods_than_are_phased(vec![set(2_147_483_647), phased(json!({}))], &[], "StatefulSet db: spec.replicas: 2147483647 is more than the 500 pods")]
#[case::scaled_beyond_what_is_played(vec![set(5), four_steps()], &["scale=2147483647@step1"], "--what-if scale=2147483647@step1: 2147483647 is more than the 500 pods that are simulated")]
#[case::a_pause_of_years(
    vec![set(5), rollout(json!([{"setWeight": 20}, {"pause": {"duration": "9000h"}}]))],
    &[],
    "RolloutPlugin db: spec.strategy.canary.steps[1].pause.duration: 9000h is longer than 30 days (720h), the longest wait"
)]
#[case::people_who_take_years(vec![set(5), four_steps()], &["people=2000000h"], "--what-if people=2000000h: nothing is played for longer than 30 days (720h)")]
#[case::a_bad_step(
    vec![set(5), rollout(json!([{"setWeight": 140}]))],
    &[],
    "rolloutplugin/db would not be rolled: spec.strategy.canary.steps[0].setWeight: 140 is not between 0 and 100"
)]
#[case::a_bad_set(
    vec![{ let mut set = set(5); set["spec"]["template"]["metadata"]["labels"]["app"] = json!("web"); set }, four_steps()],
    &[],
    "StatefulSet db is refused: "
)]
#[case::a_set_that_cannot_be_rolled(
    vec![{ let mut set = set(5); set["spec"]["updateStrategy"] = json!({"type": "OnDelete"}); set }, four_steps()],
    &[],
    "rolloutplugin/db would not be rolled: "
)]
fn what_cannot_be_played_says_why(#[case] objects: Vec<Value>, #[case] what_ifs: &[&str], #[case] why: &str) {
    let mut subject = Subject::default();
    let refused = subject
        .add_manifests(objects)
        .map_err(|error| error.to_string())
        .and_then(|()| played(&subject, what_ifs));
    let refused = refused.unwrap_err();
    assert!(refused.starts_with(why), "{refused}");
}

#[test]
fn the_same_is_played_the_same_way_again() {
    let once = preview(vec![set(5), four_steps()], &["pod=1:crash"]);
    assert_eq!(once, preview(vec![set(5), four_steps()], &["pod=1:crash"]));
}

/// Every path to a value, with list items as `[]`.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                paths(value, &format!("{path}{dot}{name}"), found);
            }
        }
        Value::Array(values) => {
            for value in values {
                paths(value, &format!("{path}[]"), found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

/// The names in backticks in each cell of the rows of a page's table.
fn rows(page: &str, head: &str) -> Vec<Vec<Vec<String>>> {
    let table = page.split_once(head).expect("the page has this table").1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        row.split('|')
            .skip(1)
            .map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect())
            .collect()
    })
    .collect()
}

#[test]
fn the_guide_names_every_field_and_every_entry() {
    let check = json!({"initialDelaySeconds": 30, "periodSeconds": 30, "successThreshold": 3, "maxTries": 5});
    let played = [
        preview(vec![set(5), four_steps()], &["scale=6@step2"]),
        preview(vec![set(2), four_steps()], &["image=crash"]),
        preview(analysed(), &[]),
        preview(vec![set(2), phased(check)], &["metric=fails@step3"]),
    ];
    let (mut fields, mut entries) = (BTreeSet::new(), BTreeMap::new());
    for preview in &played {
        let mut told = json!(preview);
        for entry in told["entries"].as_array_mut().unwrap() {
            let entry = entry.as_object_mut().unwrap();
            let what = entry["what"].as_str().unwrap().to_owned();
            let own = entry.keys().filter(|key| !matches!(key.as_str(), "at" | "what"));
            entries.insert(what, own.cloned().collect::<BTreeSet<_>>());
            entry.retain(|key, _| matches!(key.as_str(), "at" | "what"));
        }
        paths(&told, "", &mut fields);
    }
    let page = include_str!("../../../../docs/guides/plan.md");
    let named: BTreeSet<_> = rows(page, "| field | |")
        .into_iter()
        .map(|row| row[0][0].clone())
        .collect();
    assert_eq!(fields, named);
    let named: BTreeMap<_, BTreeSet<_>> = rows(page, "| entry | its fields | |")
        .into_iter()
        .map(|row| (row[0][0].clone(), row[1].iter().cloned().collect()))
        .collect();
    assert_eq!(entries, named);
}
