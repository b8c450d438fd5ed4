//! `stateward plan` as a user runs it.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use rstest::rstest;
use tempfile::TempDir;

const ROLLOUT: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: RolloutPlugin
metadata: {name: db, namespace: prod}
spec:
  workloadRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}
  plugin: {name: statefulset}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
";

const SET: &str = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: 'db:2'}]}
";

fn files() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("rollout.yaml"), ROLLOUT).unwrap();
    fs::write(dir.path().join("set.yaml"), SET).unwrap();
    fs::write(dir.path().join("broken.yaml"), "a: [").unwrap();
    let twice = SET.replace("{name: db}", "{name: db, name: web}");
    fs::write(dir.path().join("twice.yaml"), twice).unwrap();
    let weight = |value: &str| ROLLOUT.replace("setWeight: 50", &format!("setWeight: {value}"));
    fs::write(dir.path().join("text.yaml"), weight("'50'")).unwrap();
    fs::write(dir.path().join("range.yaml"), weight("150")).unwrap();
    dir
}

fn plan(dir: &TempDir, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .arg("plan")
        .args(arguments)
        .current_dir(dir.path())
        .env_remove("KUBECONFIG")
        .env("HOME", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    (
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

/// It works without any cluster.
#[test]
fn files_are_played_without_any_cluster() {
    let dir = files();
    let ended = plan(&dir, &["rollout.yaml", "set.yaml", "--ready-after", "10s"], "");
    let (out, talk) = texts(&ended);
    assert_eq!((ended.status.code(), talk.as_str()), (Some(0), ""), "{out}");
    assert!(!out.contains('\x1b'), "{out}");
    assert!(
        out.ends_with(
            "outcome      Successful\nduration     24s, and the time that people take\n\
             unavailable  1 of 2 pods at most\npeople       step 2: stateward -n prod promote db\n"
        ),
        "{out}"
    );
}

#[test]
fn machines_and_eyes_get_their_own_forms() {
    let dir = files();
    let both = format!("{ROLLOUT}---\n{SET}");
    let (out, talk) = texts(&plan(
        &dir,
        &["-", "-o", "json", "--what-if", "image=crash"],
        &both,
    ));
    let read: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {talk}"));
    assert_eq!(
        (&read["outcome"], &read["whatIf"][0]),
        (&"Held".into(), &"image=crash".into())
    );
    assert_eq!(read["people"][0]["command"], "stateward -n prod abort db");
    let (picture, _) = texts(&plan(
        &dir,
        &["-f", "rollout.yaml", "-f", "set.yaml", "-o", "svg"],
        "",
    ));
    assert!(
        picture.starts_with("<svg ") && picture.contains(">db-1</text>"),
        "{picture}"
    );
}

/// A full disk is an error; a closed pipe is not.
#[rstest]
#[case::a_full_disk(
    "/dev/full",
    Some(1),
    "stateward: cannot write to standard output: No space left on device"
)]
#[case::nobody("/dev/null", Some(0), "")]
fn what_cannot_be_written_is_no_success(#[case] to: &str, #[case] code: Option<i32>, #[case] why: &str) {
    let dir = files();
    let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["plan", "rollout.yaml", "set.yaml"])
        .current_dir(dir.path())
        .stdout(fs::File::create(to).unwrap())
        .output()
        .unwrap();
    let (_, talk) = texts(&ended);
    assert_eq!(ended.status.code(), code, "{talk}");
    assert!(talk.starts_with(why), "{talk}");
}

#[test]
fn a_reader_who_has_seen_enough_is_no_failure() {
    let dir = files();
    let mut child = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["plan", "rollout.yaml", "set.yaml"])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), texts(&ended).1.as_str()), (Some(0), ""));
}

/// The picture of the README.
#[test]
fn the_committed_picture_is_what_plan_draws() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let sample = format!("{docs}/samples/db.yaml");
    let (drawn, talk) = texts(&plan(&files(), &[&sample, "-o", "svg"], ""));
    let committed = fs::read_to_string(format!("{docs}/images/plan.svg")).unwrap_or_default();
    assert!(
        drawn == committed,
        "docs/images/plan.svg is stale; make it again with: cargo xtask generate picture{talk}"
    );
}

#[rstest]
#[case::no_file(&["none.yaml"], "stateward: cannot read none.yaml: ")]
#[case::no_such_path(&["./none"], "stateward: there is no file ./none\n")]
#[case::a_directory(&["."], "stateward: . is a directory; name the files in it\n")]
#[case::two_names(&["db", "web"], "stateward: there is no file db; plan takes files, or the NAME of one rollout\n")]
#[case::neither_a_name_nor_a_file(&["none/db"], "stateward: \"none\" is not a kind of rollout")]
#[case::not_yaml(&["broken.yaml"], "stateward: broken.yaml:1: unclosed bracket '['")]
#[case::twice(&["twice.yaml"], "stateward: twice.yaml:3: duplicate key \"name\"\n")]
#[case::a_text_for_a_number(
    &["text.yaml", "set.yaml"],
    "stateward: text.yaml:7: spec.strategy.canary.steps[0].setWeight: \"50\" is not an integer\n"
)]
#[case::out_of_range(
    &["range.yaml", "set.yaml"],
    "stateward: range.yaml:7: spec.strategy.canary.steps[0].setWeight: 150 is not between 0 and 100\n"
)]
#[case::a_metric_that_is_not_there(
    &["rollout.yaml", "set.yaml", "--what-if", "metric=fails"],
    "stateward: --what-if metric=fails: rolloutplugin/db asks for no analysis\n"
)]
#[case::half_of_it(&["rollout.yaml"], "stateward: rolloutplugin/db needs StatefulSet db, which was not given")]
#[case::the_other_half(&["set.yaml"], "stateward: there is no RolloutPlugin and no PhasedRollout among what was given")]
#[case::no_cluster(&["db", "--kubeconfig", "none"], "stateward: no cluster to talk to: ")]
#[case::nothing(&[], "error: the following required arguments were not provided:\n  <FILE|NAME>...")]
#[case::no_such_wonder(
    &["rollout.yaml", "set.yaml", "--what-if", "scale=7@step9"],
    "stateward: --what-if scale=7@step9: there is no step 9; rolloutplugin/db has 2"
)]
fn what_cannot_be_played_is_refused(#[case] arguments: &[&str], #[case] why: &str) {
    let ended = plan(&files(), arguments, "");
    let (out, talk) = texts(&ended);
    assert_eq!((ended.status.code(), out.as_str()), (Some(1), ""), "{talk}");
    assert!(talk.starts_with(why), "{talk}");
}
