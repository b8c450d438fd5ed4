use super::*;
use rstest::rstest;

#[rstest]
#[case("db-7c9f-1-3fa9c1", "smoke", 1, "db-7c9f-1-3fa9c1-smoke-1")]
#[case("db-7c9f-1-3fa9c1", "smoke", 2, "db-7c9f-1-3fa9c1-smoke-2")]
fn a_job_is_named_after_its_measurement(
    #[case] run: &str,
    #[case] metric: &str,
    #[case] number: i32,
    #[case] expected: &str,
) {
    assert_eq!(name(run, metric, number), expected);
}

#[rstest]
#[case(json!({}))]
#[case(json!({"template": {"metadata": {"labels": {"app": "smoke"}}}}))]
#[case(json!({"template": {"metadata": null}}))]
#[case(json!({"template": "nonsense"}))]
#[case(json!({"template": {"metadata": {"labels": [1]}}}))]
fn a_job_of_any_shape_is_made_ours_without_a_panic(#[case] spec: Value) {
    let metric = json!({"name": "smoke", "provider": {"job": {"spec": spec}}});
    let run = AnalysisRun {
        metadata: kube::core::ObjectMeta {
            name: Some("run".into()),
            uid: Some("uid".into()),
            ..Default::default()
        },
        ..AnalysisRun::default()
    };
    let job = manifest(
        &run,
        &serde_json::from_value(metric).unwrap(),
        "it",
        AnalysisJobs::default(),
    );
    assert_eq!(job["metadata"]["labels"][OF_RUN], "uid");
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    assert!(!labels.is_object() || labels[OF_RUN] == "uid", "{job}");
}

fn run() -> AnalysisRun {
    AnalysisRun {
        metadata: kube::core::ObjectMeta {
            name: Some("run".into()),
            namespace: Some("ns".into()),
            uid: Some("uid".into()),
            ..Default::default()
        },
        ..AnalysisRun::default()
    }
}

#[rstest]
#[case(json!({"template": {}}), 3600)]
#[case(json!({"template": {}, "ttlSecondsAfterFinished": 60}), 60)]
fn a_job_goes_some_time_after_its_end(#[case] spec: Value, #[case] expected: i64) {
    let metric = json!({"name": "smoke", "provider": {"job": {"spec": spec}}});
    let job = manifest(
        &run(),
        &serde_json::from_value(metric).unwrap(),
        "it",
        AnalysisJobs::default(),
    );
    assert_eq!(job["spec"]["ttlSecondsAfterFinished"], expected);
}

/// A client whose requests are answered by `answer`, and the requests that it received.
fn client(answer: impl Fn(&str) -> String + Clone + Send + 'static) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = asked.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let uri = request.uri().to_string();
        let body = answer(&uri);
        noted.lock().push(format!("{} {uri}", request.method()));
        future::ready(Ok::<_, std::convert::Infallible>(http::Response::new(
            kube::client::Body::from(body.into_bytes()),
        )))
    });
    (Client::new(service, "ns"), asked)
}

fn measurement(begun: Timestamp) -> Measurement {
    Measurement {
        phase: Phase::Running,
        started_at: Some(begun),
        metadata: [(JOB_NAME.to_owned(), "it".to_owned())].into(),
        ..Measurement::default()
    }
}

fn job(run: &str, status: Value) -> Job {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "it", "namespace": "ns", "uid": "job", "labels": {OF_RUN: run},
            "ownerReferences": [{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "name": "run", "uid": run, "controller": true,
            }],
        },
        "status": status,
    });
    serde_json::from_value(job).unwrap()
}

/// The last lines of the last pod's log, redacted and cut at the start, reading no more than needed.
#[tokio::test]
async fn the_end_of_a_failed_jobs_log_is_redacted_and_kept_out_of_the_message() {
    let long = "ä".repeat(log::SHOWN);
    let log = format!("{long}\npassword=hunter2\nno route to host\n");
    let pod = |name: &str, time: &str, job: &str| {
        let owner =
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": "it", "uid": job, "controller": true});
        json!({"metadata": {"name": name, "creationTimestamp": time, "ownerReferences": [owner]}})
    };
    let pods = json!({
        "apiVersion": "v1", "kind": "PodList", "metadata": {},
        "items": [
            pod("it-b", "2026-01-01T00:00:09Z", "job"),
            pod("it-a", "2026-01-01T00:00:01Z", "job"),
            pod("forged", "2026-01-01T00:00:10Z", "another"),
        ],
    });
    let (client, asked) = client(move |uri| {
        if uri.contains("/log") {
            log.clone()
        } else {
            pods.to_string()
        }
    });
    let jobs = Jobs::new(client);
    let failed =
        json!({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]});
    jobs.lock()
        .jobs
        .insert(("ns".into(), "it".into()), seen(&job("uid", failed)));
    let now = Timestamp::UNIX_EPOCH;
    let Course::Done(done) = jobs.look(&run(), &measurement(now), now).await.unwrap() else {
        panic!("it is over");
    };
    assert_eq!(done.phase, Phase::Failed);
    // The message goes into events.
    assert_eq!(done.message, "Job it failed: BackoffLimitExceeded");
    let tail = &done.metadata[LOG_TAIL];
    assert!(tail.ends_with("ä | password=***** | no route to host"), "{tail}");
    assert_eq!(tail.chars().count(), log::SHOWN);
    let asked = asked.lock();
    let log = asked.iter().find(|asked| asked.contains("/log")).unwrap();
    assert!(log.contains("/pods/it-b/log"), "{log}");
    assert!(
        log.contains("tailLines=5") && log.contains("limitBytes=16384"),
        "{log}"
    );
}

#[rstest]
#[case::of_another_run("another", "there is another of that name")]
#[case::gone("", "was deleted before it was done")]
#[tokio::test]
async fn a_job_of_that_name_that_is_not_the_runs_is_not_believed(#[case] there: &str, #[case] words: &str) {
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let theirs = job("another", complete);
    let items: Vec<_> = Some(theirs.clone())
        .filter(|_| !there.is_empty())
        .into_iter()
        .collect();
    let list = json!({"apiVersion": "batch/v1", "kind": "JobList", "metadata": {}, "items": items});
    let (client, _) = client(move |_| list.to_string());
    let jobs = Jobs::new(client);
    jobs.lock().jobs.insert(("ns".into(), "it".into()), seen(&theirs));
    let now = Timestamp::UNIX_EPOCH;
    let Course::Lost(lost) = jobs.look(&run(), &measurement(now), now).await.unwrap() else {
        panic!("it is lost");
    };
    assert_eq!(lost.phase, Phase::Error);
    assert!(lost.message.contains(words), "{}", lost.message);
}

#[rstest]
#[case::no_pod(json!({"startTime": "2026-01-01T00:00:00Z"}), None, "has no pod: a quota")]
#[case::no_place(json!({"active": 1}), Some(Trouble::Unscheduled("0/3 nodes".into())), "has no place to run: 0/3 nodes")]
#[case::all_well(json!({"active": 1}), None, "")]
#[case::between_two_tries(json!({"failed": 1}), None, "")]
#[tokio::test]
async fn a_job_that_waits_says_what_for_after_a_moment(
    #[case] status: Value,
    #[case] trouble: Option<Trouble>,
    #[case] expected: &str,
) {
    let (client, _) = client(|_| String::new());
    let jobs = Jobs::new(client);
    let here = ("ns".to_owned(), "it".to_owned());
    jobs.lock().jobs.insert(here, seen(&job("uid", status)));
    let here = ("ns".to_owned(), "job".to_owned());
    jobs.lock().pods.extend(trouble.map(|trouble| (here, trouble)));
    let begun = Timestamp::UNIX_EPOCH;
    let Course::UnderWay(Err(later)) = jobs.look(&run(), &measurement(begun), begun).await.unwrap() else {
        panic!("told too soon");
    };
    let Course::UnderWay(Ok(words)) = jobs.look(&run(), &measurement(begun), later).await.unwrap() else {
        panic!("not told");
    };
    assert!(words.contains(expected), "{words}");
    assert_eq!(words.is_empty(), expected.is_empty(), "{words}");
}

/// The creator of an object writes its `OwnerReferences` and labels.
#[rstest]
#[case::of_the_run(json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "name": "run", "uid": "uid", "controller": true}]), true)]
#[case::by_its_label_alone(json!([]), false)]
#[case::not_controlled(json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "name": "run", "uid": "uid"}]), false)]
#[case::of_another_kind(json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "run", "uid": "uid", "controller": true}]), false)]
#[case::of_another_group(json!([{"apiVersion": "example.com/v1", "kind": "AnalysisRun", "name": "run", "uid": "uid", "controller": true}]), false)]
fn a_job_is_of_the_run_that_controls_it(#[case] owners: Value, #[case] expected: bool) {
    let mut forged = json!(job("uid", json!({})));
    forged["metadata"]["ownerReferences"] = owners;
    let forged: Job = serde_json::from_value(forged).unwrap();
    assert_eq!(is_of(&forged, &run()), expected);
    assert_eq!(seen(&forged).run.is_some(), expected);
}

#[test]
fn names_that_do_not_fit_are_cut_and_stay_apart() {
    let long = "a".repeat(80);
    let names = [
        name(&long, "smoke", 1),
        name(&long, "smoke", 2),
        name("db", "Smoke Test", 1),
        name("db", "smoke-test", 1),
        name("my.db", "smoke", 1),
    ];
    for (index, one) in names.iter().enumerate() {
        assert!(
            one.len() <= 63 && !one.contains('.') && !one.ends_with('-'),
            "{one}"
        );
        assert!(!names[..index].contains(one), "{one}");
    }
}

/// Starts a measurement whose Job has this pod; returns the measurement and the requests sent.
async fn started(allowed: AnalysisJobs, pod: Value) -> (Measurement, Vec<String>) {
    let metric = json!({"name": "smoke", "provider": {"job": {"spec": {"template": {"spec": pod}}}}});
    let created = job("uid", json!({}));
    let (client, asked) = client(move |_| json!(created).to_string());
    let jobs = Jobs::new(client).allowing(allowed);
    let metric = serde_json::from_value(metric).unwrap();
    let begun = jobs.start(&run(), &metric, None, Timestamp::UNIX_EPOCH).await;
    let asked = asked.lock().clone();
    (begun.unwrap(), asked)
}

#[rstest]
#[case::network(json!({"hostNetwork": true}), "spec.hostNetwork: true")]
#[case::pid(json!({"hostPID": true}), "spec.hostPID: true")]
#[case::ipc(json!({"hostIPC": true}), "spec.hostIPC: true")]
#[case::path(json!({"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}), "spec.volumes[0].hostPath: ")]
#[case::token(json!({"automountServiceAccountToken": true}), "spec.automountServiceAccountToken: true")]
#[case::init(json!({"initContainers": [{"name": "a", "securityContext": {"privileged": true}}]}), "spec.initContainers[0].securityContext.privileged: true")]
#[case::capability(json!({"containers": [{"name": "a", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}), "spec.containers[0].securityContext.capabilities.add[0]: \"SYS_ADMIN\"")]
#[tokio::test]
async fn a_job_that_asks_for_the_node_is_refused_and_never_sent(#[case] pod: Value, #[case] field: &str) {
    let mut whole = json!({"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"});
    whole
        .as_object_mut()
        .unwrap()
        .extend(pod.as_object().unwrap().clone());
    let (refused, asked) = started(AnalysisJobs::Restricted, whole.clone()).await;
    assert_eq!(refused.phase, Phase::Error);
    let expected = format!("provider.job.spec.template.{field}");
    assert!(refused.message.starts_with(&expected), "{}", refused.message);
    assert!(
        refused
            .message
            .ends_with("an operator with --analysis-jobs=any allows it"),
        "{}",
        refused.message
    );
    assert!(asked.is_empty(), "{asked:?}");
    let (begun, asked) = started(AnalysisJobs::Any, whole).await;
    assert_eq!((begun.phase, asked.len()), (Phase::Running, 1));
}

#[tokio::test]
async fn no_job_is_sent_where_they_are_off() {
    let (refused, asked) = started(AnalysisJobs::Off, json!({"containers": []})).await;
    assert_eq!(refused.phase, Phase::Error);
    assert!(
        refused.message.contains("--analysis-jobs=off"),
        "{}",
        refused.message
    );
    assert!(asked.is_empty(), "{asked:?}");
}

#[rstest]
#[case::unnamed(AnalysisJobs::Restricted, json!({}), Some(false))]
#[case::null(AnalysisJobs::Restricted, json!({"automountServiceAccountToken": null}), Some(false))]
#[case::empty_name(AnalysisJobs::Restricted, json!({"serviceAccountName": ""}), Some(false))]
#[case::named(AnalysisJobs::Restricted, json!({"serviceAccountName": "smoke"}), None)]
#[case::by_its_alias(AnalysisJobs::Restricted, json!({"serviceAccount": "smoke"}), None)]
#[case::any(AnalysisJobs::Any, json!({}), None)]
fn a_pod_has_the_token_of_a_service_account_only_where_it_names_one(
    #[case] allowed: AnalysisJobs,
    #[case] pod: Value,
    #[case] expected: Option<bool>,
) {
    let metric = json!({"name": "smoke", "provider": {"job": {"spec": {"template": {"spec": pod}}}}});
    let job = manifest(&run(), &serde_json::from_value(metric).unwrap(), "it", allowed);
    assert_eq!(
        job["spec"]["template"]["spec"]["automountServiceAccountToken"].as_bool(),
        expected
    );
}
