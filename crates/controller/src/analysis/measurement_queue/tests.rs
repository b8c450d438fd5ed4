use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use stateward_analysis::http::Http;
use stateward_analysis::{Egress, MapSecrets, Providers, SecretsError};
use stateward_core::analysis::{Data, Reply};

/// A measurement that is answered at once, or never.
struct Ping {
    key: String,
    namespace: &'static str,
    index: usize,
    slow: bool,
    asked: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl MeasurementJob for Ping {
    type Object = AnalysisRun;
    type Answer = usize;

    fn object(&self) -> ObjectRef<AnalysisRun> {
        ObjectRef::new(&self.key).within(self.namespace)
    }

    fn key(&self) -> &str {
        &self.key
    }

    fn index(&self) -> usize {
        self.index
    }

    async fn run(&self, _: &Measurer) -> usize {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _dropped = Dropped(self.dropped.clone());
        if self.slow {
            std::future::pending::<()>().await;
        }
        self.index
    }

    fn answered_at(_: &usize) -> Option<Timestamp> {
        None
    }
}

fn measurer() -> Measurer {
    Measurer {
        provider: Arc::new(Providers::new(
            Http::new(Egress::default()),
            MapSecrets::default(),
        )),
        secrets: Arc::new(MapSecrets::default()),
        clock: Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0),
        workers: Workers::default(),
    }
}

/// The numbers of started and cancelled measurements, once everything has settled.
#[derive(Default)]
struct Counts {
    asked: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Counts {
    fn ping(&self, namespace: &'static str, key: &str, index: usize, slow: bool) -> Ping {
        Ping {
            key: key.to_owned(),
            namespace,
            index,
            slow,
            asked: self.asked.clone(),
            dropped: self.dropped.clone(),
        }
    }
}

/// Answers with the value that it is asked to compare with.
struct Echo;

#[async_trait]
impl MetricProvider for Echo {
    async fn query(&self, _: &MetricQuery<'_>) -> Result<Reply, ProviderError> {
        let said = serde_json::json!({"status": "ok", "header": "Basic b2s="});
        Ok(Reply {
            data: Data::Document(said),
            newest: None,
            series: None,
            notes: [("said".to_owned(), "ok".to_owned())].into(),
        })
    }
}

#[tokio::test]
async fn a_secret_is_judged_and_written_down_nowhere() {
    let metric = |operator: &str| {
        serde_json::json!({
            "name": "m", "successCondition": format!("result.status {operator} \"ok\""),
            "provider": {"web": {"url": "http://web", "headers": [{"key": "a", "value": "{{args.word}}"}]}},
        })
    };
    let word = serde_json::json!({"name": "word", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let measurer = Measurer {
        provider: Arc::new(Echo),
        secrets: Arc::new(MapSecrets::default().with("ns", "s", &[("k", "ok")])),
        ..measurer()
    };
    for (operator, expected) in [("==", Phase::Successful), ("!=", Phase::Failed)] {
        let job = MetricJob {
            run: ObjectRef::new("run").within("ns"),
            uid: "uid".into(),
            index: 0,
            metric: serde_json::from_value(metric(operator)).unwrap(),
            args: vec![serde_json::from_value(word.clone()).unwrap()],
        };
        let measurement = job.run(&measurer).await;
        assert_eq!(measurement.phase, expected, "{}", measurement.message);
        let written = serde_json::to_string(&measurement).unwrap();
        assert!(!written.contains("ok") && !written.contains("b2s"), "{written}");
    }
}

/// A job for a web metric with `patch` merged into it, and a secret argument `word`.
fn job(patch: serde_json::Value) -> MetricJob {
    let mut metric = serde_json::json!({
        "name": "m", "successCondition": "result.status == 'ok'", "provider": {"web": {"url": "http://web"}},
    });
    let fields = patch.as_object().unwrap().clone();
    metric.as_object_mut().unwrap().extend(fields);
    let word = serde_json::json!({"name": "word", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    MetricJob {
        run: ObjectRef::new("run").within("ns"),
        uid: "uid".into(),
        index: 0,
        metric: serde_json::from_value(metric).unwrap(),
        args: vec![serde_json::from_value(word).unwrap()],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_is_judged_by_the_workers_of_its_namespace_and_not_where_it_was_asked() {
    let measurer = Measurer {
        provider: Arc::new(Echo),
        ..measurer()
    };
    // Work of this namespace that does not end, until its workers are saturated.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = Arc::new(Mutex::new(ended));
    let (begun, mut begins) = mpsc::unbounded_channel();
    for _ in 0..10 {
        let (workers, ended, begun) = (measurer.workers.clone(), ended.clone(), begun.clone());
        tokio::spawn(async move {
            let work = move || {
                let _ = begun.send(());
                let _ = ended.lock().recv();
            };
            workers.run("ns", work).await;
        });
    }
    begins.recv().await.unwrap();
    begins.recv().await.unwrap();
    let waiting = tokio::spawn({
        let measurer = measurer.clone();
        async move { job(serde_json::json!({})).run(&measurer).await }
    });
    let elsewhere = MetricJob {
        run: ObjectRef::new("run").within("other"),
        ..job(serde_json::json!({}))
    };
    assert_eq!(elsewhere.run(&measurer).await.phase, Phase::Successful);
    assert!(!waiting.is_finished());
    drop(end);
    assert_eq!(waiting.await.unwrap().phase, Phase::Successful);
}

/// Secrets that this test must not read.
struct Unread;

#[async_trait]
impl Secrets for Unread {
    async fn get(&self, _: &str, _: &str) -> Result<Option<SecretData>, SecretsError> {
        panic!("a Secret is read")
    }
}

/// Counts the reads of Secrets.
struct Counted(MapSecrets, Arc<AtomicUsize>);

#[async_trait]
impl Secrets for Counted {
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, SecretsError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.get(namespace, name).await
    }
}

#[tokio::test]
async fn a_secret_that_stands_where_none_may_is_not_even_read() {
    let measurer = Measurer {
        provider: Arc::new(Echo),
        secrets: Arc::new(Unread),
        ..measurer()
    };
    let patches = [
        serde_json::json!({"successCondition": "result == '{{args.word}}'"}),
        serde_json::json!({"provider": {"web": {"url": "http://{{args.word}}/"}}}),
    ];
    for patch in patches {
        let measurement = job(patch).run(&measurer).await;
        assert_eq!(measurement.phase, Phase::Error);
        assert!(
            measurement.message.contains("{{args.word}} comes from a Secret"),
            "{}",
            measurement.message
        );
    }
}

#[tokio::test]
async fn a_secret_that_is_too_long_is_refused() {
    let long = "x".repeat(LONGEST_SECRET + 1);
    let measurer = Measurer {
        provider: Arc::new(Echo),
        secrets: Arc::new(MapSecrets::default().with("ns", "s", &[("k", &long)])),
        ..measurer()
    };
    let headers = serde_json::json!([{"key": "a", "value": "{{args.word}}"}]);
    let patch = serde_json::json!({"provider": {"web": {"url": "http://web", "headers": headers}}});
    let measurement = job(patch).run(&measurer).await;
    assert_eq!(
        measurement.message,
        "the key k of Secret s has 16385 bytes, more than 16384"
    );
}

async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_run_that_is_slow_holds_up_nobody_else_and_is_called_off() {
    let (measurement_queue, jobs) = MeasurementQueue::new();
    let (answered, mut turns) = mpsc::unbounded_channel();
    let running = measurement_queue.clone();
    let operator = tokio::spawn(async move { running.run(jobs, &measurer(), answered).await });
    let slow = Counts::default();
    for index in 0..1100 {
        measurement_queue.begin(slow.ping("a", "slow", index, true));
    }
    let quick = Counts::default();
    measurement_queue.begin(quick.ping("b", "quick", 0, false));
    settle().await;
    assert_eq!(turns.try_recv().unwrap().name, "quick");
    assert_eq!(slow.asked.load(Ordering::SeqCst), OF_ONE);
    assert!(measurement_queue.is_open("slow", 1099));
    measurement_queue.forget("slow");
    settle().await;
    assert_eq!(slow.dropped.load(Ordering::SeqCst), OF_ONE);
    assert_eq!(
        slow.asked.load(Ordering::SeqCst),
        OF_ONE,
        "the others are not asked any more"
    );
    assert!(turns.try_recv().is_err());
    operator.abort();
}

#[tokio::test]
async fn a_namespace_does_not_take_all_there_is() {
    let (measurement_queue, jobs) = MeasurementQueue::new();
    let (answered, mut turns) = mpsc::unbounded_channel();
    let running = measurement_queue.clone();
    let operator = tokio::spawn(async move { running.run(jobs, &measurer(), answered).await });
    let slow = Counts::default();
    for run in 0..300 {
        for index in 0..8 {
            measurement_queue.begin(slow.ping("a", &run.to_string(), index, true));
        }
    }
    let quick = Counts::default();
    measurement_queue.begin(quick.ping("b", "quick", 0, false));
    settle().await;
    assert_eq!(turns.try_recv().unwrap().name, "quick");
    assert_eq!(slow.asked.load(Ordering::SeqCst), OF_A_NAMESPACE);
    operator.abort();
}

#[tokio::test]
async fn what_was_called_off_and_asked_anew_has_one_answer() {
    let (measurement_queue, jobs) = MeasurementQueue::new();
    let (answered, mut turns) = mpsc::unbounded_channel();
    let counts = Counts::default();
    measurement_queue.begin(counts.ping("a", "run", 0, false));
    measurement_queue.forget("run");
    measurement_queue.begin(counts.ping("a", "run", 0, false));
    let running = measurement_queue.clone();
    let operator = tokio::spawn(async move { running.run(jobs, &measurer(), answered).await });
    settle().await;
    assert!(turns.try_recv().is_ok());
    assert!(turns.try_recv().is_err());
    let Answers::Here(answers) = measurement_queue.answers("run", Timestamp::UNIX_EPOCH) else {
        panic!("still waiting");
    };
    assert_eq!(answers, [(0, 0)]);
    operator.abort();
}

/// A metric whose headers take `count` values of 10 000 bytes from one Secret.
async fn with_secrets(count: usize) -> (Measurement, usize) {
    let long = "x".repeat(10_000);
    let (secrets, reads) = (
        MapSecrets::default().with("ns", "s", &[("k", &long)]),
        Arc::default(),
    );
    let measurer = Measurer {
        provider: Arc::new(Echo),
        secrets: Arc::new(Counted(secrets, Arc::clone(&reads))),
        ..measurer()
    };
    let headers: Vec<_> = (0..count)
        .map(|number| serde_json::json!({"key": "a", "value": format!("{{{{args.a{number}}}}}")}))
        .collect();
    let web = serde_json::json!({"web": {"url": "http://web", "headers": headers}});
    let mut job = job(serde_json::json!({ "provider": web }));
    let arg = |number| {
        let secret = serde_json::json!({"secretKeyRef": {"name": "s", "key": "k"}});
        serde_json::json!({"name": format!("a{number}"), "valueFrom": secret})
    };
    job.args = (0..count)
        .map(|number| serde_json::from_value(arg(number)).unwrap())
        .collect();
    (job.run(&measurer).await, reads.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_secret_is_read_once_and_all_of_a_metric_have_a_limit_together() {
    let (measurement, reads) = with_secrets(6).await;
    assert_eq!(
        (measurement.phase, reads),
        (Phase::Successful, 1),
        "{}",
        measurement.message
    );
    let (measurement, reads) = with_secrets(7).await;
    assert_eq!((measurement.phase, reads), (Phase::Error, 1));
    let words = "the values that the metric takes from Secrets have more than 65536 bytes together";
    assert_eq!(measurement.message, words);
}
