//! `promote`, `abort`, `retry`, `pause`, `resume` and `status`: their effects.

use std::time::Duration;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::json;
use stateward_cli::Exit;
use stateward_kubelet::Behaviour;

use crate::world::{Fate, World};

#[tokio::test(start_paused = true)]
async fn a_rollout_is_seen_promoted_and_seen_to_its_end() {
    let world = World::with_operator().await;
    assert_eq!(world.run("status db").await.exit, Exit::Done);
    world.image("v2").await;
    world.until("Paused").await;

    let said = world.run("status db").await;
    assert_eq!(said.exit, Exit::Paused);
    assert!(
        said.out
            .starts_with("db: Paused: step 2 of 4: paused; go on with: "),
        "{said:?}"
    );
    let table = world.run("get").await;
    let row: Vec<_> = table.out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..7], ["db", "Paused", "-", "2/4", "20%", "5", "1"]);
    let tree = world.run("get rp/db").await;
    assert!(tree.out.contains("▶ pause until promoted"), "{}", tree.out);
    assert!(
        tree.out.contains("statefulset/db   partition 4, 5 of 5 ready"),
        "{}",
        tree.out
    );
    assert_eq!(tree.out.matches("stable   Ready").count(), 4, "{}", tree.out);
    assert_eq!(tree.out.matches("new      Ready").count(), 1, "{}", tree.out);

    let promoted = world.run("promote db").await;
    assert_eq!(promoted.exit, Exit::Done, "{promoted:?}");
    assert_eq!(
        promoted.out,
        "rolloutplugin.argoproj.io/db promoted by somebody\n"
    );
    assert!(
        promoted
            .talk
            .contains("db leaves the pause of step 2 of 4; step 3 of 4 is next: 60% to "),
        "{promoted:?}"
    );
    // The second pause ends after five minutes.
    let ended = world.run("status db --watch --timeout 1h").await;
    assert_eq!(ended.exit, Exit::Done, "{ended:?}");
    assert!(
        ended
            .out
            .lines()
            .last()
            .unwrap()
            .starts_with("db: Successful: every pod runs ")
    );
}

#[tokio::test(start_paused = true)]
async fn promote_full_skips_every_step() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let promoted = world.run("promote db --full").await;
    assert_eq!(promoted.exit, Exit::Done, "{promoted:?}");
    assert_eq!(
        promoted.out,
        "rolloutplugin.argoproj.io/db fully promoted by somebody\n"
    );
    assert_eq!(world.run("status db -w").await.exit, Exit::Done);
}

/// No suggestion makes it worse, and no unfinished step is shown as finished.
#[tokio::test(start_paused = true)]
async fn a_broken_version_is_promoted_fully_by_force_only() {
    let world = World::with_operator().await;
    world.spec(json!({"brokenPods": "Hold"})).await;
    world.program("db:v2", Behaviour::crash_loop());
    world.image("v2").await;
    world.until("Failed").await;
    let before = world.version().await;
    let promoted = world.run("promote db").await;
    assert_eq!(promoted.exit, Exit::Error, "{promoted:?}");
    assert!(
        promoted.talk.contains("pod db-4 is broken on ") && promoted.talk.contains("abort db"),
        "{promoted:?}"
    );
    assert!(!promoted.talk.contains("--full"), "{promoted:?}");
    let full = world.run("promote db --full").await;
    assert_eq!(full.exit, Exit::Error, "{full:?}");
    assert!(full.talk.contains("promote db --full --force"), "{full:?}");
    assert_eq!(world.version().await, before);
    assert_snapshot!(
        world
            .transcript(&["promote db --full --force", "get db", "status db", "history db"])
            .await
    );
}

/// The operator refuses what the command line cannot see, with a message that can be pasted.
#[tokio::test(start_paused = true)]
async fn a_skip_past_a_pod_that_is_not_ready_is_refused() {
    let world = World::with_operator().await;
    world.program("db:v2", Behaviour::never_ready());
    world.image("v2").await;
    world.until("Progressing").await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_snapshot!(
        world
            .transcript(&[
                "promote db",
                "skip db --dry-run=client",
                "skip db",
                "get db",
                "skip db",
                "skip db --revision db-0",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_watched_until_every_pod_is_back_and_can_be_retried() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let aborted = world.run("abort db").await;
    assert_eq!(
        (aborted.exit, aborted.out.as_str()),
        (Exit::Done, "rolloutplugin.argoproj.io/db aborted by somebody\n")
    );
    let ended = world.run("status db --watch").await;
    assert_eq!(ended.exit, Exit::Failed, "{ended:?}");
    assert!(
        ended.out.lines().last().unwrap().contains("every pod is back"),
        "{ended:?}"
    );

    let retried = world.run("retry db").await;
    assert_eq!(
        (retried.exit, retried.out.as_str()),
        (Exit::Done, "rolloutplugin.argoproj.io/db retried by somebody\n")
    );
    world.until("Paused").await;
}

#[tokio::test(start_paused = true)]
async fn pause_and_resume_hold_and_release() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let paused = world.run("pause db").await;
    assert_eq!(
        (paused.exit, paused.out.as_str()),
        (Exit::Done, "rolloutplugin.argoproj.io/db paused by somebody\n")
    );
    let full = world.run("promote db --full").await;
    assert_eq!(full.exit, Exit::Error);
    let resumed = world.run("resume db").await;
    assert_eq!(
        (resumed.exit, resumed.out.as_str()),
        (Exit::Done, "rolloutplugin.argoproj.io/db resumed by somebody\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_workload_is_frozen_before_it_is_changed() {
    let world = World::with_operator().await;
    let paused = world.run("pause db").await;
    assert_eq!(
        (paused.exit, paused.out.as_str()),
        (Exit::Done, "rolloutplugin.argoproj.io/db paused by somebody\n")
    );
    assert_eq!(
        paused.talk,
        "db rolls nothing now; its next rollout will stand at its start until: stateward resume db\n"
    );
    world.image("v2").await;
    world.until("Paused").await;
    let tree = world.run("get db").await;
    assert_eq!(tree.out.matches("stable   Ready").count(), 5, "{}", tree.out);
    let resumed = world.run("resume db").await;
    assert_eq!(resumed.exit, Exit::Done, "{resumed:?}");
    world.until("Progressing").await;
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let world = World::with_operator().await;
    let before = world.version().await;
    for verb in ["promote", "promote --full", "abort", "retry", "resume"] {
        let said = world.run(&format!("{verb} db")).await;
        assert_eq!(
            (said.exit, said.out.as_str()),
            (Exit::Error, ""),
            "{verb}: {said:?}"
        );
        assert!(said.talk.contains("rolloutplugin db "), "{verb}: {said:?}");
    }
    assert_eq!(world.version().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_not_the_one_is_refused() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let before = world.version().await;
    let said = world.run("promote db --revision db-other").await;
    assert_eq!(said.exit, Exit::Error);
    assert!(
        said.talk.contains("not at db-other; nothing was changed"),
        "{said:?}"
    );
    assert_eq!(world.version().await, before);
}

/// Each rollout has its own revisions: a command for one must not act on another, nor be ignored.
#[tokio::test(start_paused = true)]
async fn a_revision_is_of_one_rollout() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let before = world.version().await;
    for verb in [
        "promote",
        "abort",
        "pause",
        "undo",
        "restart",
        "set image db=db:v3",
    ] {
        let said = world.run(&format!("{verb} db nobody --revision db-other")).await;
        assert_eq!(
            (said.exit, said.talk.as_str()),
            (
                Exit::Error,
                "--revision is of one rollout; name one; nothing was changed"
            ),
            "{verb}"
        );
    }
    assert_eq!(world.version().await, before);
}

#[tokio::test(start_paused = true)]
async fn one_of_several_that_is_not_there_is_not_found() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    for verb in [
        "get",
        "explain",
        "history",
        "undo --dry-run=client",
        "set image db=db:v3 --dry-run=client",
        "pause --dry-run=client",
        "abort --dry-run=client",
    ] {
        let said = world.run(&format!("{verb} db nobody")).await;
        assert_eq!(said.exit, Exit::NotFound, "{verb}: {said:?}");
        assert!(
            said.talk
                .contains("rollout nobody is not there in namespace default"),
            "{verb}: {said:?}"
        );
    }
    for verb in [
        "status",
        "explain",
        "history",
        "undo",
        "restart",
        "abort",
        "set image db=db:v3",
    ] {
        let said = world.run(&format!("{verb} -l app=nobody")).await;
        assert_eq!(said.exit, Exit::NotFound, "{verb}: {said:?}");
    }
}

/// They run concurrently: events are printed as they happen, and it ends with the last rollout.
#[tokio::test(start_paused = true)]
async fn several_are_watched_at_the_same_time() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.phase_web().await;
    let late = world.run("status db web nobody --watch --timeout 1h").await;
    assert_eq!(late.exit, Exit::NotFound, "{late:?}");
    assert!(
        late.talk.contains("rolloutplugin db has not ended within 3600s"),
        "{late:?}"
    );
    let last = late.out.lines().last().unwrap();
    assert!(last.starts_with("web: "), "{last}");
    assert!(
        late.out.lines().any(|line| line.starts_with("db: Paused")),
        "{late:?}"
    );
    let late = world.run("status db web sts/db --watch --timeout 1h").await;
    assert_eq!(late.exit, Exit::Failed, "{late:?}");
    assert_eq!(late.out.matches("db: Paused").count(), 1, "{late:?}");
    world.run("abort db").await;
    let ended = world.run("status web db --watch").await;
    assert_eq!((ended.exit, ended.talk.as_str()), (Exit::Failed, ""), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found() {
    let world = World::with_operator().await;
    for verb in ["get", "status", "promote", "abort", "status --watch"] {
        let said = world.run(&format!("{verb} nobody")).await;
        assert_eq!(said.exit, Exit::NotFound, "{verb}: {said:?}");
        assert!(
            said.talk.contains(
                "rollout nobody is not there in namespace default; see what is with: stateward get -A"
            ),
            "{verb}: {said:?}"
        );
    }
    let said = world.run("get -n elsewhere").await;
    assert_eq!((said.exit, said.out.as_str()), (Exit::Done, ""));
    assert_eq!(said.talk, "no rollouts found in namespace elsewhere\n");
}

#[tokio::test(start_paused = true)]
async fn without_an_operator_it_says_that_nobody_answers() {
    let mut world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.stop_operator();
    let said = world.run("abort db").await;
    assert_eq!(said.exit, Exit::Timeout, "{said:?}");
    assert!(
        said.talk
            .contains("no operator has answered within 10s; is one running?"),
        "{said:?}"
    );
    let said = world.run("promote db --timeout 0").await;
    assert_eq!(said.exit, Exit::Done, "{said:?}");
    let again = world.run("promote db").await;
    assert!(again.talk.contains("was promoted already"), "{again:?}");
    assert_eq!(again.exit, Exit::Error);
}

/// Like a pipeline in which a user promotes: it continues when the first pods are updated and Ready.
#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_until_the_phase_that_a_pipeline_waits_for() {
    let mut world = World::with_operator().await;
    let past = world.run("status db --watch --until=Paused").await;
    assert_eq!(past.exit, Exit::Error, "{past:?}");
    assert_eq!(
        past.talk,
        "rolloutplugin db is Successful and will not be Paused before its next rollout"
    );
    let line = "status db --watch --until=paused --timeout 1h";
    world.image("v2").await;
    let paused = world.run(line).await;
    assert_eq!(
        (paused.exit, paused.talk.as_str()),
        (Exit::Done, ""),
        "{paused:?}"
    );
    assert!(
        paused
            .out
            .lines()
            .last()
            .unwrap()
            .starts_with("db: Paused: step 2 of 4")
    );

    // The pause of the previous revision is not that of the next.
    world.image("v3").await;
    let paused = world.run(line).await;
    assert_eq!(paused.exit, Exit::Done, "{paused:?}");
    let revision = world
        .run("get db -o jsonpath={.status.updatedRevision}")
        .await
        .out;
    let last = paused.out.lines().last().unwrap();
    assert!(last.ends_with(&revision), "{last}");
    assert_eq!(paused.out.matches("db: Paused").count(), 1, "{paused:?}");

    world.run("promote db --full").await;
    let done = world.run("status db --watch --until Healthy --timeout 1h").await;
    assert_eq!(done.exit, Exit::Done, "{done:?}");

    world.stop_operator();
    world.image("v4").await;
    for phase in ["Successful", "Progressing"] {
        let line = format!("status db --watch --until={phase} --timeout 1m");
        let late = world.run(&line).await;
        assert_eq!(late.exit, Exit::Timeout, "{late:?}");
        assert!(
            late.talk
                .contains(&format!("rolloutplugin db was not {phase} within 60s")),
            "{late:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_for_a_phase_ends_where_the_rollout_fails() {
    let world = World::with_operator().await;
    world.program("db:v2", Behaviour::crash_loop());
    world.image("v2").await;
    let failed = world.run("status db --watch --until=Paused --timeout 1h").await;
    assert_eq!(failed.exit, Exit::Failed, "{failed:?}");
    let unknown = world.run("status db --watch --until=Degraded").await;
    assert_eq!(unknown.exit, Exit::Error, "{unknown:?}");
    assert!(
        unknown
            .talk
            .contains("[possible values: Progressing, Paused, Successful, Failed]"),
        "{unknown:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_reason_is_printed_once_while_it_stays_the_same() {
    let world = World::with_operator().await;
    world.phase_web().await;
    let watched = world.run("status web --watch --timeout 1h").await;
    let reason = "http://127.0.0.1:9090: the connection was closed before the answer was complete";
    assert_eq!(watched.out.matches(reason).count(), 1, "{}", watched.out);
    let last = watched.out.lines().last().unwrap();
    assert!(
        last.starts_with(
            "web: Failed (ChecksFailed): pod 1 of 2: the gate before pod web-1 failed: 2 of 2 in a row"
        ) && last.contains("did not succeed, the last: …; check again with: stateward retry web"),
        "{last}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_takes_too_long_times_out() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let said = world.run("status db --watch --timeout 30s").await;
    assert_eq!(said.exit, Exit::Timeout);
    assert!(
        said.talk.contains("rolloutplugin db has not ended within 30s"),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_template_that_was_just_changed_never_passes_for_rolled_out() {
    let world = World::with_operator().await;
    world.image("v2").await;
    // Immediately: the operator may not have seen the change yet.
    let said = world.run("status db").await;
    assert!(matches!(said.exit, Exit::Progressing | Exit::Paused), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn machines_get_the_whole_object() {
    let world = World::with_operator().await;
    let json: serde_json::Value = serde_json::from_str(&world.run("get db -o json").await.out).unwrap();
    assert!(json["status"]["stableTemplateCopy"].is_string(), "{json}");
    assert_eq!(json["metadata"]["managedFields"], serde_json::Value::Null);
    let list: serde_json::Value = serde_json::from_str(&world.run("get -A -o json").await.out).unwrap();
    assert_eq!(
        (list["kind"].as_str(), list["items"].as_array().unwrap().len()),
        (Some("List"), 1)
    );
    let yaml = world.run("get db -o yaml").await.out;
    assert!(yaml.contains("kind: RolloutPlugin\n"), "{yaml}");
    assert_eq!(
        world.run("get -o name").await.out,
        "rolloutplugin.argoproj.io/db\n"
    );
    assert!(
        world
            .run("get -A -o wide")
            .await
            .out
            .starts_with("NAMESPACE   NAME")
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_the_definition_says_what_to_install() {
    let world = World::bare();
    for verb in ["get", "get db", "status db", "abort db"] {
        let said = world.run(verb).await;
        assert_eq!(said.exit, Exit::Error, "{verb}: {said:?}");
        assert!(
            said.talk.contains("the cluster knows no rollouts of ours"),
            "{verb}: {said:?}"
        );
    }
}

/// Its checks cannot run, because queries to that address are refused.
#[tokio::test(start_paused = true)]
async fn a_phased_rollout_is_seen_and_steered_as_any_other() {
    let world = World::with_operator().await;
    world.phase_web().await;
    let said = world.run("status phased/web --watch --timeout 1h").await;
    assert_eq!(said.exit, Exit::Failed, "{said:?}");
    let line = said.out.lines().last().unwrap();
    assert!(
        line.starts_with(
            "web: Failed (ChecksFailed): pod 1 of 2: the gate before pod web-1 failed: 2 of 2 in a row did not succeed"
        ),
        "{line}"
    );
    let table = world.run("get").await;
    assert!(table.out.contains("rolloutplugin/db"), "{}", table.out);
    let row = table
        .out
        .lines()
        .find(|line| line.starts_with("phasedrollout/web"))
        .unwrap();
    let row: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        row[..7],
        [
            "phasedrollout/web",
            "Failed",
            "ChecksFailed",
            "1/2",
            "0%",
            "2",
            "0"
        ]
    );
    let tree = world.run("get web").await;
    assert!(
        tree.out
            .contains("ChecksFailed   0 of 1 in a row, 2 failed in all, 0 tries left"),
        "{}",
        tree.out
    );
    assert!(
        tree.out.contains("statefulset/web   partition 2, 2 of 2 ready"),
        "{}",
        tree.out
    );
    assert_eq!(
        world.run("get web -o name").await.out,
        "phasedrollout.sts.plus/web\n"
    );

    let retried = world.run("retry web").await;
    assert_eq!(
        (retried.exit, retried.out.as_str()),
        (Exit::Done, "phasedrollout.sts.plus/web retried by somebody\n"),
        "{retried:?}"
    );
    assert!(
        retried
            .talk
            .contains("web makes the checks before pod 1 of 2 again"),
        "{retried:?}"
    );
    assert_eq!(
        world.run("status web --watch --timeout 1h").await.exit,
        Exit::Failed
    );

    let promoted = world.run("promote web").await;
    assert_eq!(promoted.exit, Exit::Done, "{promoted:?}");
    assert!(
        promoted
            .talk
            .contains("web skips the rest of the checks before pod 1 of 2; pod 1 of 2 is next to run "),
        "{promoted:?}"
    );
    let said = world.run("status web --watch --timeout 1h").await;
    assert!(said.out.contains("the gate before pod web-0 failed"), "{said:?}");

    let paused = world.run("pause web").await;
    assert_eq!(
        paused.out, "phasedrollout.sts.plus/web paused by somebody\n",
        "{paused:?}"
    );
    assert_eq!(world.run("status web").await.exit, Exit::Paused);
    assert_eq!(world.run("resume web").await.exit, Exit::Done);
    let aborted = world.run("abort web").await;
    assert_eq!(aborted.exit, Exit::Done, "{aborted:?}");
    let said = world.run("status web --watch --timeout 1h").await;
    assert!(
        said.out.contains("every pod is back on the stable version"),
        "{said:?}"
    );
}

/// Also after scaling up, where pod 1 stays updated and the pods above it are replaced before pod 0, and after a skipped gate.
#[tokio::test(start_paused = true)]
async fn the_message_and_the_tree_name_the_same_gate() {
    let world = World::with_operator().await;
    world.phase_web().await;
    let gates = [
        (2, "pod 1 of 2", "web-1", "promote web"),
        (2, "pod 2 of 2", "web-0", "get web"),
        (4, "pod 2 of 4", "web-3", "skip web"),
        (4, "pod 3 of 4", "web-2", "promote web"),
        (4, "pod 4 of 4", "web-0", "promote web"),
    ];
    for (replicas, place, pod, next) in gates {
        world.scale("web", replicas).await;
        let message = format!("  {place}: the gate before pod {pod} failed");
        let mut shown = String::new();
        for _ in 0..20 {
            world.run("status web --watch --timeout 1h").await;
            shown = world.run("get web").await.out;
            if shown.contains(&message) {
                break;
            }
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        assert!(shown.contains(&message), "{message}: {shown}");
        let tree = format!("▶ gate before pod {pod}, for ");
        assert!(shown.contains(&tree), "{tree}: {shown}");
        assert_eq!(world.run(next).await.exit, Exit::Done);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_covers_every_request() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let mut seen = String::new();
    for (method, line) in [
        (http::Method::GET, "status db --watch --timeout 2s"),
        (http::Method::GET, "promote db --timeout 2s"),
        (http::Method::PATCH, "promote db --timeout 2s"),
        (http::Method::PATCH, "abort db nobody --timeout 2s"),
    ] {
        let said = world.run_while(method.clone(), Fate::Unanswered, line).await;
        seen.push_str(&format!("{method} is never answered\n{}", said.shown(line)));
    }
    assert_snapshot!(seen);
}

/// A command that was printed for one revision and pasted minutes later applies to that revision only.
#[rstest]
#[case("status db", "promote")]
#[case("get db", "promote")]
#[case("get db -o wide", "promote")]
#[case("explain db", "promote")]
#[case("explain db", "abort")]
#[tokio::test(start_paused = true)]
async fn what_was_printed_for_one_version_is_refused_for_the_next(#[case] look: &str, #[case] verb: &str) {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let seen = world.run(look).await.out;
    let from = seen.find(&format!("stateward {verb} db")).unwrap();
    let printed = seen[from..].split(['\n', ':', ',']).next().unwrap().trim();
    let pasted = printed.strip_prefix("stateward ").unwrap();
    world.image("v3").await;
    world.until("Progressing").await;
    world.until("Paused").await;
    let before = world.version().await;
    let said = world.run(pasted).await;
    assert_eq!(said.exit, Exit::Error, "{pasted}: {said:?}");
    assert!(said.talk.contains("; nothing was changed"), "{said:?}");
    assert_eq!(world.version().await, before);
}

/// The status describes an older revision than the StatefulSet's, and no operator is there to refuse.
#[tokio::test(start_paused = true)]
async fn what_is_meant_for_a_version_that_was_overtaken_is_refused() {
    let mut world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.stop_operator();
    world.image("v3").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let before = world.version().await;
    let mut seen = String::new();
    for line in [
        "promote db",
        "promote db --dry-run=client",
        "promote db --full",
        "abort db",
        "retry db",
        "pause db --revision db-545b4548c",
    ] {
        seen.push_str(&world.run(line).await.shown(line));
    }
    assert_eq!(world.version().await, before);
    assert_snapshot!(seen);
}

/// A command or a template change that may or may not have been made.
#[tokio::test(start_paused = true)]
async fn what_was_asked_for_and_not_answered_is_not_known() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let mut seen = String::new();
    for (fate, line) in [
        (Fate::Broken, "promote db"),
        (Fate::GivenUp, "abort db"),
        (Fate::GivenUp, "abort db --dry-run=server"),
        (Fate::Broken, "set image db db=db:v3"),
        (Fate::GivenUp, "undo db"),
        (Fate::Broken, "undo db --dry-run=server"),
    ] {
        let said = world.run_while(http::Method::PATCH, fate, line).await;
        seen.push_str(&format!("PATCH is {fate:?}\n{}", said.shown(line)));
    }
    assert_snapshot!(seen);
}

/// Without read access to the StatefulSet, it is unknown whether the operator has seen its latest template.
#[tokio::test(start_paused = true)]
async fn a_set_that_cannot_be_read_is_never_a_success() {
    let mut world = World::with_operator().await;
    world.stop_operator();
    world.image("v2").await;
    let forbidden = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "statefulsets.apps \"db\" is forbidden: somebody may not", "details": {"name": "db"}}"#;
    let lines = ["status db", "status db --watch", "get db", "explain db"];
    assert_snapshot!(
        world
            .transcript_where("statefulsets", (403, forbidden), &lines)
            .await
    );
}

/// Every command with its output.
#[tokio::test(start_paused = true)]
async fn every_command_has_its_transcript() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let mut seen = String::new();
    for line in [
        "pause db --dry-run=server",
        "pause db",
        "promote db",
        "resume db",
        "abort db --dry-run=client",
        "abort db --revision db-0",
        "abort db",
        "status db --watch",
        "retry db",
        "promote db --full",
        "status db --watch",
        "promote db",
        "retry db",
        "resume db",
        "undo db --dry-run=server",
        "top",
    ] {
        seen.push_str(&world.run(line).await.shown(line));
    }
    assert_snapshot!(seen);
}
