//! `stateward operator` as in production: a separate process with the shipped permissions, killed at the worst moments, on a real control
//! plane.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stateward_analysis::testing::{Exporter, RealPrometheus};
use stateward_kubelet::{Behaviour, Match};
use stateward_scenarios::harness::{Cluster, Failure, Outcome, Rollout, Set, operator_kubeconfig};
use stateward_scenarios::scenarios;
use stateward_scenarios::simulation::Watched;
use tempfile::TempDir;
use tokio::time::sleep;

scenarios![
    rollouts_go_on_where_they_were,
    aborts_end_with_every_pod_back,
    versions_that_crash_are_taken_back,
    jobs_that_judge_versions_are_run_once_and_heard,
    no_pod_goes_without_its_checks,
    a_leader_that_is_killed_is_succeeded,
    a_leader_that_is_told_to_stop_hands_over,
    a_leader_that_restarts_in_its_pod_takes_its_own_lease_back,
    two_operators_of_the_same_namespaces_never_both_lead_whatever_their_leases,
    an_operator_outside_a_pod_makes_way_for_the_deployed_one,
    two_processes_of_one_pod_do_not_both_lead,
    every_line_about_a_rollout_names_it,
    the_namespaces_it_is_given_are_looked_after_and_no_others,
];

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::harness::run(all())
}

/// How many times each scenario kills the operator.
const KILLS: u32 = 20;

/// The maximum lifetime of an operator, except the last: enough to make progress now and then.
const LONGEST_LIFE: Duration = Duration::from_secs(2);

/// Invariants 2 and 11: no gate is skipped, nothing is released early, and every rollout ends.
async fn rollouts_go_on_where_they_were(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut mortal = Mortal::start(cluster)?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([
        {"setWeight": 20}, {"pause": {"duration": 1}}, {"setWeight": 40}, {"setWeight": 60}, {"pause": {"duration": 1}},
    ]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let watched = Watched::start(cluster).await?;
    let since = cluster.pod_changes();
    let mut version = 1;
    while mortal.kills < KILLS {
        version += 1;
        let version = format!("v{version}");
        db.set_image(&version).await?;
        mortal
            .dies_again_and_again(async {
                db.expect_images([version.as_str(); 5]).await?;
                rollout.expect_phase("Successful").await.map(drop)
            })
            .await?;
    }
    db.expect_no_move().await?;
    db.expect_one_down_at_most(since)?;
    watched.expect_unbroken(cluster).await
}

/// Invariants 9 and 19: an interrupted abort resumes, and replaces one pod at a time.
async fn aborts_end_with_every_pod_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut mortal = Mortal::start(cluster)?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 80}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let watched = Watched::start(cluster).await?;
    let since = cluster.pod_changes();
    let mut version = 1;
    while mortal.kills < KILLS {
        version += 1;
        db.set_image(&format!("v{version}")).await?;
        mortal
            .dies_again_and_again(async {
                rollout.expect_step(1, "Paused").await?;
                rollout.abort().await?;
                returned(&db, &rollout).await
            })
            .await?;
    }
    db.expect_rest(["v1"; 5]).await?;
    db.expect_one_down_at_most(since)?;
    watched.expect_unbroken(cluster).await
}

async fn versions_that_crash_are_taken_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut mortal = Mortal::start(cluster)?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}, {"setWeight": 67}]))
        .spec(json!({"progressDeadlineSeconds": 3, "progressDeadlineAbort": true}))
        .start()
        .await?;
    let watched = Watched::start(cluster).await?;
    let mut version = 1;
    while mortal.kills < KILLS {
        version += 1;
        let image = format!("v{version}");
        let broken = Match::image(format!("example.com/db:{image}"));
        cluster.pods().program(broken, Behaviour::crash_loop());
        db.set_image(&image).await?;
        mortal.dies_again_and_again(returned(&db, &rollout)).await?;
    }
    db.expect_rest(["v1"; 3]).await?;
    watched.expect_unbroken(cluster).await
}

/// Rule 17 and invariants 46 and 47: a Job is created once per measurement, and its result decides about the revision.
async fn jobs_that_judge_versions_are_run_once_and_heard(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut mortal = Mortal::start(cluster)?;
    let pod = json!({
        "restartPolicy": "Never", "schedulerName": "stateward", "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "check", "image": "smoke"}],
    });
    let smoke = json!({"name": "smoke", "provider": {"job": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}}});
    cluster
        .create(
            "analysistemplates",
            "checks",
            json!({"spec": {"metrics": [smoke]}}),
        )
        .await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let analysis = json!({"analysis": {"templates": [{"templateName": "checks"}]}});
    let steps = json!([{"setWeight": 34}, analysis, {"setWeight": 67}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let watched = Watched::start(cluster).await?;
    let (mut version, mut stable) = (1, "v1".to_owned());
    while mortal.kills < KILLS {
        version += 1;
        let good = version % 2 == 0;
        let ends = Behaviour::exits(if good { 0 } else { 3 }, Duration::from_secs(1));
        cluster.pods().program(Match::image("smoke"), ends);
        let image = format!("v{version}");
        db.set_image(&image).await?;
        if good {
            let rolled = async {
                db.expect_images([image.as_str(); 3]).await?;
                rollout.expect_phase("Successful").await.map(drop)
            };
            mortal.dies_again_and_again(rolled).await?;
            stable = image;
        } else {
            mortal.dies_again_and_again(returned(&db, &rollout)).await?;
        }
    }
    db.expect_rest([stable.as_str(); 3]).await?;
    let again = cluster.names("jobs").await?;
    let again: Vec<_> = again.iter().filter(|name| !name.ends_with("-smoke-1")).collect();
    if !again.is_empty() {
        return Err(cluster.unmet("one Job for each run", format!("{again:?}")));
    }
    watched.expect_unbroken(cluster).await
}

/// Invariant 48: between two pods a real Prometheus was queried often enough, however many answers were lost.
async fn no_pod_goes_without_its_checks(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut mortal = Mortal::start(cluster)?;
    let exporter = Exporter::start().await?;
    exporter.set("errors 0\n");
    let started = RealPrometheus::start(&exporter).await;
    let Some(prometheus) = started.map_err(std::io::Error::other)? else {
        return Err(Failure::NotHere("there is no prometheus in PATH".into()));
    };
    prometheus.has("errors").await.map_err(std::io::Error::other)?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let query = "errors > 0";
    let check = json!({
        "initialDelaySeconds": 0, "periodSeconds": 1, "successThreshold": 2,
        "query": {"expr": query, "url": prometheus.address()},
    });
    let rollout = cluster.phased("db").check(check).start().await?;
    let watched = Watched::start(cluster).await?;
    let since = cluster.pod_changes();
    let mut version = 1;
    while mortal.kills < KILLS {
        version += 1;
        let image = format!("v{version}");
        let before = prometheus.asked(query).len();
        db.set_image(&image).await?;
        let rolled = async {
            db.expect_images([image.as_str(); 2]).await?;
            rollout.expect_phase("Updated").await.map(drop)
        };
        mortal.dies_again_and_again(rolled).await?;
        let asked = prometheus.asked(query).len() - before;
        cluster.expect(&format!("six checks at least, not {asked}"), asked >= 6)?;
    }
    db.expect_one_down_at_most(since)?;
    watched.expect_unbroken(cluster).await
}

/// Waits until the revision is rejected and every pod is rolled back.
async fn returned(db: &Set<'_>, rollout: &Rollout<'_>) -> Outcome {
    let asked = db.expect_observed().await?;
    let asked = asked.status.and_then(|status| status.update_revision);
    rollout
        .eventually(format!("{asked:?} is given up"), |status| {
            if status.aborted_revision == asked && status.message.contains("every pod is back") {
                Ok(())
            } else {
                Err(String::new())
            }
        })
        .await
}

async fn a_leader_that_is_killed_is_succeeded(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let candidate = || Process::candidate(cluster, "3s");
    let mut first = candidate()?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let watched = Watched::start(cluster).await?;
    for version in ["v2", "v3", "v4"] {
        let second = candidate()?;
        db.set_image(version).await?;
        first.kill()?;
        // Only a leader gets this far.
        rollout.expect_step(1, "Paused").await?;
        rollout.promote().await?;
        db.expect_images([version; 3]).await?;
        rollout.expect_phase("Successful").await?;
        first = second;
    }
    watched.expect_unbroken(cluster).await
}

/// The test does not wait ten minutes: the Lease must have been released.
async fn a_leader_that_is_told_to_stop_hands_over(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut first = Process::candidate(cluster, "10m")?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let _second = Process::candidate(cluster, "10m")?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    first.stop(cluster)?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v2"; 3]).await
}

/// The test does not wait ten minutes here either: the container of a killed pod restarts.
async fn a_leader_that_restarts_in_its_pod_takes_its_own_lease_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut operator = Process::in_pod(cluster)?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    for version in ["v2", "v3"] {
        operator.kill()?;
        db.set_image(version).await?;
        operator = Process::in_pod(cluster)?;
        rollout.expect_step(1, "Paused").await?;
        rollout.promote().await?;
        db.expect_images([version; 3]).await?;
        rollout.expect_phase("Successful").await?;
    }
    Ok(())
}

/// For example an operator on a laptop, and the deployed one.
async fn two_operators_of_the_same_namespaces_never_both_lead_whatever_their_leases(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_definitions().await?;
    let first = Process::candidate(cluster, "15s")?;
    first.expect_line(cluster, "leads").await?;
    let ours = format!("--namespace={}", cluster.namespace());
    for namespaces in [&[ours.as_str(), "--namespace=another"][..], &[]] {
        let mut second = Process::with_another_lease(cluster, namespaces)?;
        second
            .expect_line(cluster, "another operator leads: operator ")
            .await?;
        second
            .expect_line(cluster, "stop that one, or give this one")
            .await?;
        second.expect_failure(cluster).await?;
    }
    let third = Process::with_another_lease(cluster, &["--namespace=another"])?;
    third.expect_line(cluster, "leads").await?;
    drop(first);
    // It was killed, which the other one detects itself.
    let second = Process::with_another_lease(cluster, &[ours.as_str()])?;
    second.expect_line(cluster, "leads").await
}

/// The deployed operator does not trust Leases of namespaces where tenants may write.
async fn an_operator_outside_a_pod_makes_way_for_the_deployed_one(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let name = format!("other-{}", cluster.namespace());
    let flags = [
        format!("--namespace={}", cluster.namespace()),
        "--lease-namespace=default".to_owned(),
        format!("--lease-name={name}"),
    ];
    let mut laptop = Process::start_with(cluster.kubeconfig(), &flags)?;
    laptop.expect_line(cluster, "leads").await?;
    let deployed = Process::candidate(cluster, "15s")?;
    deployed.expect_line(cluster, "leads").await?;
    laptop
        .expect_line(cluster, "another operator leads: operator ")
        .await?;
    laptop.expect_failure(cluster).await?;
    let leases = Api::<Lease>::namespaced(cluster.client(), "default");
    let deleted = leases.delete(&name, &DeleteParams::default()).await;
    deleted
        .map(drop)
        .map_err(|error| cluster.unmet("the lease is deleted", error.to_string()))
}

async fn two_processes_of_one_pod_do_not_both_lead(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let first = Process::in_pod(cluster)?;
    first.expect_line(cluster, "leads").await?;
    let second = Process::in_pod(cluster)?;
    second
        .expect_line(cluster, "another process holds the identity of this pod")
        .await?;
    second.expect_line(cluster, "stands by").await
}

async fn every_line_about_a_rollout_names_it(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let mut operator = Process::start(cluster, &["--leader-elect=false", "--log-format=json"])?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}]))
        .start()
        .await?;
    db.set_image("v2").await?;
    db.expect_images(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let revision = db.get().await?.status.and_then(|status| status.update_revision);
    operator.stop(cluster)?;
    let lines: Vec<Value> = operator
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into()))
        .collect();
    let message = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
    let acts = lines.iter().filter(|line| message(line).contains(": partition "));
    let about = |line: &&Value| {
        line["span"]["object"] == "db"
            && line["span"]["namespace"] == cluster.namespace()
            && line["span"]["revision"].is_string()
    };
    let (named, nameless): (Vec<_>, Vec<_>) = acts.partition(about);
    if !nameless.is_empty() {
        return Err(cluster.unmet("every line has a name and a revision", format!("{nameless:?}")));
    }
    if !named
        .iter()
        .any(|line| line["span"]["revision"].as_str() == revision.as_deref())
    {
        return Err(cluster.unmet(format!("a line about {revision:?}"), format!("{named:?}")));
    }
    let step = named.iter().any(|line| message(line) == "34 %: partition 3 -> 2");
    cluster.expect("a line says what a step does", step)?;
    // The log is for people: no debug output of a type, and the object once.
    let odd = |line: &&Value| message(line).contains("Release(") || line.to_string().contains("object.ref");
    match lines.iter().find(odd) {
        Some(line) => Err(cluster.unmet("plain lines", line.to_string())),
        None => Ok(()),
    }
}

async fn the_namespaces_it_is_given_are_looked_after_and_no_others(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let of = |namespaces: &[&str]| {
        let flags = namespaces.iter().map(|name| format!("--namespace={name}"));
        let flags: Vec<_> = flags.chain(["--leader-elect=false".into()]).collect();
        Process::start_with(cluster.kubeconfig(), &flags)
    };
    let mut several = of(&["default", cluster.namespace()])?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    several.stop(cluster)?;
    let _others = of(&["default", "kube-system"])?;
    rollout.promote().await?;
    db.expect_no_move().await?;
    db.expect_images(["v1", "v2"]).await?;
    let _ours = of(&[cluster.namespace()])?;
    db.expect_images(["v2"; 2]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}

/// An operator that is killed and restarted.
struct Mortal<'c> {
    cluster: &'c Cluster,
    life: Process,
    kills: u32,
}

impl<'c> Mortal<'c> {
    fn start(cluster: &'c Cluster) -> Outcome<Self> {
        Ok(Self {
            cluster,
            life: Self::life(cluster)?,
            kills: 0,
        })
    }

    /// Without leader election: waiting for a dead leader's Lease would make the test too slow to be effective.
    fn life(cluster: &Cluster) -> Outcome<Process> {
        Process::start(cluster, &["--leader-elect=false", "--allow-egress=127.0.0.1"])
    }

    /// Kills it at random moments until the future completes.
    async fn dies_again_and_again(&mut self, comes_true: impl Future<Output = Outcome>) -> Outcome {
        let mut comes_true = std::pin::pin!(comes_true);
        loop {
            let life = LONGEST_LIFE.mul_f64(fastrand::f64());
            tokio::select! {
                outcome = &mut comes_true => {
                    return outcome.inspect_err(|_| eprintln!("the operator's last words:\n{}", self.life.log()));
                }
                () = sleep(life) => {}
            }
            self.cluster
                .note(&format!("the operator is killed after {life:?}"));
            self.life.kill()?;
            self.life = Self::life(self.cluster)?;
            self.kills += 1;
        }
    }
}

/// A running `stateward operator`. Killed when it is dropped.
struct Process {
    child: Child,
    log: PathBuf,
    _dir: TempDir,
}

impl Process {
    /// Starts an operator for the scenario's namespace, with the shipped permissions if there is a service account.
    fn start(cluster: &Cluster, arguments: &[&str]) -> Outcome<Self> {
        let shipped = operator_kubeconfig();
        let within_reach = cluster.kubeconfig();
        Self::start_with(
            within_reach.and(shipped.as_deref()).or(within_reach),
            &[&["--namespace", cluster.namespace()], arguments].concat(),
        )
    }

    /// Starts an operator with leader election, as if in its own pod: it ignores the Leases of scenarios in other namespaces. The shipped
    /// role covers one Lease, and scenarios need many.
    fn candidate(cluster: &Cluster, lease: &str) -> Outcome<Self> {
        let flags = [
            format!("--pod-uid={}-{}", cluster.namespace(), fastrand::u32(..)),
            format!("--namespace={}", cluster.namespace()),
            format!("--lease-namespace={}", cluster.namespace()),
            format!("--lease-duration={lease}"),
        ];
        Self::start_with(cluster.kubeconfig(), &flags)
    }

    /// Starts an operator like a pod's container, each time with the same UID.
    fn in_pod(cluster: &Cluster) -> Outcome<Self> {
        let namespace = cluster.namespace();
        let flags = [
            format!("--namespace={namespace}"),
            format!("--lease-namespace={namespace}"),
            "--lease-duration=10m".to_owned(),
            format!("--pod-uid={namespace}"),
        ];
        Self::start_with(cluster.kubeconfig(), &flags)
    }

    /// Starts an operator with another Lease than [`Self::candidate`], for these namespaces.
    fn with_another_lease(cluster: &Cluster, namespaces: &[&str]) -> Outcome<Self> {
        let mut flags = vec![
            format!("--lease-namespace={}", cluster.namespace()),
            format!("--lease-name=other-{}", fastrand::u32(..)),
        ];
        flags.extend(namespaces.iter().map(|flag| (*flag).to_owned()));
        Self::start_with(cluster.kubeconfig(), &flags)
    }

    /// Waits until it exits with an error.
    async fn expect_failure(&mut self, cluster: &Cluster) -> Outcome {
        for _ in 0..1200 {
            if let Some(status) = self.child.try_wait().ok().flatten() {
                return cluster.expect(&format!("it fails, not {status}"), !status.success());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(cluster.unmet("it ends by itself", self.log()))
    }

    async fn expect_line(&self, cluster: &Cluster, words: &str) -> Outcome {
        for _ in 0..1200 {
            if self.log().contains(words) {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(cluster.unmet(format!("{words:?} in the log"), self.log()))
    }

    fn start_with(kubeconfig: Option<&Path>, arguments: &[impl AsRef<OsStr>]) -> Outcome<Self> {
        let Some(kubeconfig) = kubeconfig else {
            return Err(Failure::NotHere(
                "a process cannot reach a cluster inside this one".into(),
            ));
        };
        let dir = tempfile::tempdir()?;
        let log = dir.path().join("operator.log");
        let child = Command::new(env!("CARGO_BIN_EXE_stateward"))
            .args(["operator", "--listen=127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .args(arguments)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        Ok(Self {
            child,
            log,
            _dir: dir,
        })
    }

    fn kill(&mut self) -> Outcome {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends it a signal to stop, and waits until it exits.
    fn stop(&mut self, cluster: &Cluster) -> Outcome {
        kill_process(Pid::from_child(&self.child), Signal::TERM).map_err(std::io::Error::from)?;
        let ended = self.child.wait()?;
        if ended.success() {
            Ok(())
        } else {
            Err(cluster.unmet("the operator ends well", format!("{ended}:\n{}", self.log())))
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.kill();
    }
}
