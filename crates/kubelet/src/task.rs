//! One pod's next request: compares its life with the state on the API server.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::adopt::adopt;
use crate::api::Key;
use crate::behaviour::Course;
use crate::hash::hash;
use crate::life::{Life, Moment, Stage, after};
use crate::node::Nodes;
use crate::object::Object;
use crate::pod::{Place, Pod, Wanted};
use crate::request::Request;
use crate::rules::Rules;
use crate::scheduler;
use crate::status::{PodStatus, status, unschedulable};

/// A claim may lag briefly behind its pod in the watches; only a lasting state gets a condition.
const WORTH_TELLING: std::time::Duration = std::time::Duration::from_secs(1);

/// A pod, its life, and its last written status.
pub(crate) struct Task {
    pub(crate) pod: Pod,
    life: Life,
    /// A hash of the last written status.
    written: Option<u64>,
    known: Option<Known>,
    /// The status of the request in flight, if it writes one, and its hash.
    under_way: Option<Option<(u64, PodStatus)>>,
    /// A hash of the inputs of a status, and one of the status made from them.
    shown: Option<(u64, u64)>,
    /// The node of a binding that the watch has not shown yet.
    pub(crate) bound_to: Option<String>,
    /// Deleted for good; only another client's finalizer keeps it.
    pub(crate) deleted: bool,
    /// The version of the last write; no decision uses an older view.
    answered: u64,
    /// The version in which another client last overwrote our status.
    contradicted: u64,
    failures: u32,
    not_before: Option<Timestamp>,
    pub(crate) timer: Option<Timestamp>,
    /// The claim that the pod waits for.
    pub(crate) waits_for: Option<Key>,
}

/// The last written status; the next write sends only the changes.
struct Known {
    status: PodStatus,
    /// A hash of it as the watch showed it. Later events have the same hash unless another client has written.
    shown: Option<u64>,
}

/// The inputs of a pod's next request besides the pod.
pub(crate) struct Surroundings<'a> {
    pub(crate) nodes: &'a Nodes,
    pub(crate) rules: &'a Rules,
    pub(crate) claims: Option<&'a BTreeMap<Key, bool>>,
    pub(crate) seed: u64,
}

impl Task {
    pub(crate) fn new(object: &Object, pod: Pod, now: Timestamp) -> Self {
        let adopted = adopt(object, &pod, now);
        let host_ip = object
            .status
            .as_ref()
            .and_then(|status| status.host_ip.as_deref())
            .unwrap_or_default();
        Self {
            // What was restored from the status need not be written again.
            written: adopted.as_ref().map(|life| hash(&status(&pod, life, host_ip))),
            life: adopted.unwrap_or_else(|| Life::new(&pod, now)),
            pod,
            known: None,
            under_way: None,
            shown: None,
            bound_to: None,
            deleted: false,
            answered: 0,
            contradicted: 0,
            failures: 0,
            not_before: None,
            timer: None,
            waits_for: None,
        }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// The request in flight succeeded.
    pub(crate) fn succeeded(&mut self) {
        if let Some((written, status)) = self.under_way.take().flatten() {
            self.written = Some(written);
            self.known = Some(Known { status, shown: None });
        }
        self.failures = 0;
        self.not_before = None;
    }

    /// The write has this version.
    pub(crate) fn answered(&mut self, version: u64) {
        self.answered = self.answered.max(version);
        self.recognise();
    }

    /// Records the current state of the pod.
    pub(crate) fn see(&mut self, pod: Pod) {
        self.pod = pod;
        self.recognise();
    }

    /// The response to a write and its watch event come in either order.
    fn recognise(&mut self) {
        if self.pod.version == self.answered
            && let Some(known) = &mut self.known
        {
            known.shown = Some(self.pod.seen.hash);
        }
    }

    /// The request in flight failed, as far as known.
    pub(crate) fn failed(&mut self, not_before: Timestamp) {
        self.under_way = None;
        self.known = None;
        self.failures += 1;
        self.not_before = Some(not_before);
    }

    /// The next request, if any, and when to visit the pod again.
    pub(crate) fn next(
        &mut self,
        around: &Surroundings,
        now: Timestamp,
    ) -> (Option<Request>, Option<Timestamp>) {
        if self.under_way.is_some() {
            // The response triggers the next visit.
            return (None, None);
        }
        if let Some(time) = self.not_before.filter(|time| now < *time) {
            return (None, Some(time));
        }
        if self.pod.version < self.answered {
            // The watch has not shown the write yet.
            return (None, None);
        }
        let (request, wake) = match &self.pod.place {
            Place::On(node) => match around.nodes.get(node).filter(|node| node.is_live()) {
                Some(node) => self.next_on_node(&node.ip, around, now),
                None => (None, None),
            },
            Place::Wanted(wanted) => {
                let wanted = wanted.clone();
                self.next_unplaced(&wanted, around, now)
            }
        };
        (request.map(|request| self.sent(request)), wake)
    }

    /// Records a request that is sent now. Of a status, only changes are sent, as a kubelet does.
    fn sent(&mut self, request: Request) -> Request {
        let Request::Status(status) = request else {
            self.under_way = Some(None);
            return request;
        };
        let hash = match (&self.pod.place, self.shown) {
            (Place::On(_), Some((_, shown))) => shown,
            _ => hash(&status),
        };
        let is_there = |known: &Known| known.shown == Some(self.pod.seen.hash);
        let sent = match self.known.take().filter(is_there) {
            Some(known) => status.since(&known.status),
            None => status.clone(),
        };
        self.under_way = Some(Some((hash, status)));
        // The observed generation is sent along with a status but is no reason to write one.
        Request::Status(sent.observing(self.pod.generation))
    }

    fn next_on_node(
        &mut self,
        host_ip: &str,
        around: &Surroundings,
        now: Timestamp,
    ) -> (Option<Request>, Option<Timestamp>) {
        if matches!(self.pod.seen.phase.as_str(), "Succeeded" | "Failed") {
            // Other clients may end a pod too, and an ended pod stays ended.
            self.life.end(&self.pod.seen.phase, now);
        }
        let part = around.rules.part(&self.pod);
        let wake = self.life.advance(&Moment {
            pod: &self.pod,
            part: &part,
            seed: around.seed,
            now,
        });

        let (shown, mut wanted) = self.shown(host_ip);
        let mut unwritten = self.written != Some(shown);
        if !unwritten && self.is_contradicted() {
            self.contradicted = self.pod.version;
            self.life.ready.since = now;
            (_, wanted) = self.shown(host_ip);
            unwritten = true;
        }
        let request = if self.deleted {
            None
        } else if unwritten {
            let make = || status(&self.pod, &self.life, host_ip);
            Some(Request::Status(wanted.unwrap_or_else(make)))
        } else if self.pod.deleting.is_some() && matches!(self.life.stage, Stage::Ended(_)) {
            Some(Request::Delete)
        } else {
            None
        };
        (request, wake)
    }

    /// A hash of the status for the pod's current life, and the status if it had to be built: on most visits the life has not changed.
    fn shown(&mut self, host_ip: &str) -> (u64, Option<PodStatus>) {
        let Pod {
            key,
            uid,
            inits,
            containers,
            seen,
            ..
        } = &self.pod;
        let told = hash(&(key, uid, inits, containers, seen.scheduled, &self.life, host_ip));
        match self.shown {
            Some((known, shown)) if known == told => (shown, None),
            _ => {
                let status = status(&self.pod, &self.life, host_ip);
                let shown = hash(&status);
                self.shown = Some((told, shown));
                (shown, Some(status))
            }
        }
    }

    /// A node controller may mark a pod unready while its node is unreachable. One write corrects each such write: if it has no effect,
    /// another would have none either.
    fn is_contradicted(&self) -> bool {
        let Pod { seen, version, .. } = &self.pod;
        seen.ready.is_some_and(|ready| ready != self.life.ready.on) && *version > self.contradicted
    }

    fn next_unplaced(
        &mut self,
        wanted: &Wanted,
        around: &Surroundings,
        now: Timestamp,
    ) -> (Option<Request>, Option<Timestamp>) {
        let Stage::Unscheduled { since } = self.life.stage else {
            return (None, None);
        };
        // Before the first complete list of claims it is unknown which are bound.
        let Some(claims) = around.claims else {
            return (None, None);
        };
        if self.bound_to.is_some() || self.pod.deleting.is_some() || wanted.gated {
            return (None, None);
        }
        let part = around.rules.part(&self.pod);
        let moment = Moment {
            pod: &self.pod,
            part: &part,
            seed: around.seed,
            now,
        };
        let time = after(since, moment.vary("schedule", 0, part.behaviour.schedule));
        if now < time {
            return (None, Some(time));
        }

        let claim_key = |name: &String| Key {
            namespace: self.pod.key.namespace.clone(),
            name: name.clone(),
        };
        let unbound = wanted
            .claims
            .iter()
            .map(claim_key)
            .find(|claim| claims.get(claim) != Some(&true));
        let message = if part.behaviour.course == Course::Unschedulable {
            format!(
                "0/{} nodes are available: programmed to be unschedulable.",
                around.nodes.len()
            )
        } else if let Some(claim) = unbound {
            let message = match claims.get(&claim) {
                Some(_) => "pod has unbound immediate PersistentVolumeClaims".to_owned(),
                None => format!("persistentvolumeclaim \"{}\" not found", claim.name),
            };
            self.waits_for = Some(claim);
            let tell = after(time, WORTH_TELLING);
            if now < tell {
                return (None, Some(tell));
            }
            message
        } else if let Some(node) = scheduler::choose(&self.pod, wanted, around.nodes, around.seed) {
            return (
                Some(Request::Bind {
                    node: node.to_owned(),
                }),
                None,
            );
        } else {
            let tell = after(time, WORTH_TELLING);
            if now < tell {
                return (None, Some(tell));
            }
            format!("0/{} nodes are available.", around.nodes.len())
        };
        let since = self
            .pod
            .seen
            .scheduled
            .filter(|(on, _)| !on)
            .map_or(now, |(_, since)| since);
        let condition = unschedulable(&message, since);
        let unwritten = self.written != Some(hash(&condition));
        (unwritten.then_some(Request::Status(condition)), None)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::behaviour::Behaviour;
    use crate::node::fixtures::live;
    use crate::pod::fixtures::{parse, set_pod_json};
    use crate::rules::{Behaviours, Match};

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    /// One task, and a simulated API server.
    struct Stand {
        object: Value,
        task: Task,
        nodes: Nodes,
        behaviours: Behaviours,
        claims: BTreeMap<Key, bool>,
        now: Timestamp,
    }

    impl Stand {
        fn of(object: Value) -> Self {
            let pod = parse(object.clone());
            let behaviours = Behaviours::default();
            behaviours.program(Match::any(), Behaviour::default().jitter(0.0));
            Self {
                task: Task::new(&pod, Pod::of(&pod), START),
                object,
                nodes: live(["node-a"]),
                behaviours,
                claims: BTreeMap::new(),
                now: START,
            }
        }

        fn unscheduled() -> Self {
            Self::unscheduled_with(|_| {})
        }

        fn unscheduled_with(change: impl FnOnce(&mut Value)) -> Self {
            let mut object = set_pod_json("db", 0);
            object["spec"]["nodeName"] = Value::Null;
            object["spec"]["volumes"] =
                json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data-db-0" } }]);
            change(&mut object);
            Self::of(object)
        }

        fn claim() -> Key {
            Key {
                namespace: "ns".into(),
                name: "data-db-0".into(),
            }
        }

        fn next(&mut self) -> (Option<Request>, Option<Timestamp>) {
            let rules = self.behaviours.subscribe().borrow().clone();
            let around = Surroundings {
                nodes: &self.nodes,
                rules: &rules,
                claims: Some(&self.claims),
                seed: 0,
            };
            self.task.next(&around, self.now)
        }

        fn wait(&mut self, time: Duration) -> &mut Self {
            self.now = after(self.now, time);
            self
        }

        fn change(&mut self, change: impl FnOnce(&mut Value)) {
            change(&mut self.object);
            let version = self.task.pod.version + 1;
            self.object["metadata"]["resourceVersion"] = version.to_string().into();
            self.task.see(Pod::of(&parse(self.object.clone())));
        }

        /// Executes requests until there are none; returns the phases they wrote.
        fn settle(&mut self) -> Vec<String> {
            std::iter::from_fn(|| self.step()).collect()
        }

        /// Executes the next request, once it is due, and returns its name.
        fn step(&mut self) -> Option<String> {
            loop {
                match self.next() {
                    (Some(Request::Status(status)), _) => {
                        self.task.succeeded();
                        self.task.answered(self.task.pod.version + 1);
                        let now = self.now;
                        self.wait(Duration::from_secs(1));
                        assert!(matches!(self.next(), (None, None)), "the write is not seen yet");
                        self.now = now;
                        self.change(|object| merge(&mut object["status"], &json!(status)));
                        let phase = self.object["status"]["phase"].as_str();
                        return Some(phase.unwrap_or("unschedulable").to_owned());
                    }
                    (Some(Request::Bind { node }), _) => {
                        self.task.succeeded();
                        let done = format!("bind to {node}");
                        self.change(|object| object["spec"]["nodeName"] = node.into());
                        return Some(done);
                    }
                    (Some(Request::Delete), _) => {
                        self.task.succeeded();
                        self.task.deleted = true;
                        return Some("delete".into());
                    }
                    (None, Some(time)) => self.now = time,
                    (None, None) => return None,
                }
            }
        }
    }

    /// Like a strategic merge.
    fn merge(status: &mut Value, patch: &Value) {
        for (field, value) in patch.as_object().unwrap() {
            match (field.as_str(), status[field].as_array_mut()) {
                ("conditions", Some(known)) => {
                    for condition in value.as_array().unwrap() {
                        known.retain(|known| known["type"] != condition["type"]);
                        known.push(condition.clone());
                    }
                }
                _ => status[field] = value.clone(),
            }
        }
    }

    fn unprobed(object: &mut Value) {
        object["spec"]["containers"][0]["readinessProbe"] = Value::Null;
    }

    fn delete(object: &mut Value) {
        object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:30Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    }

    fn probe_of_the_second(object: &mut Value) {
        unprobed(object);
        object["spec"]["containers"][1]["startupProbe"] = json!({});
    }

    fn probe_of_a_sidecar(object: &mut Value) {
        unprobed(object);
        let sidecar = json!({ "name": "log", "restartPolicy": "Always", "readinessProbe": {} });
        object["spec"]["initContainers"] = json!([sidecar]);
    }

    #[rstest]
    #[case::of_the_first(|_: &mut Value| {}, [false, true])]
    #[case::of_the_second(probe_of_the_second, [true, false])]
    fn a_probed_container_is_ready_last(#[case] change: impl Fn(&mut Value), #[case] ready: [bool; 2]) {
        let mut stand = Stand::unscheduled_with(change);
        stand.claims.insert(Stand::claim(), true);
        let mut seen = Vec::new();
        while stand.step().is_some() {
            let containers = &stand.object["status"]["containerStatuses"];
            seen.push([0, 1].map(|index| containers[index]["ready"] == true));
        }
        assert_eq!(seen, [[false, false], [false, false], ready, [true, true]]);
    }

    #[rstest]
    #[case::probed(|_: &mut Value| {}, &["bind to node-a", "Pending", "Running", "Running"])]
    #[case::second_probed(probe_of_the_second, &["bind to node-a", "Pending", "Running", "Running"])]
    #[case::sidecar_probed(probe_of_a_sidecar, &["bind to node-a", "Pending", "Running", "Running"])]
    #[case::not_probed(unprobed, &["bind to node-a", "Pending", "Running"])]
    fn a_pod_is_bound_started_and_left_alone(#[case] change: impl Fn(&mut Value), #[case] requests: &[&str]) {
        let mut stand = Stand::unscheduled_with(change);
        stand.claims.insert(Stand::claim(), true);
        assert_eq!(stand.settle(), requests);
        assert_eq!(stand.wait(Duration::from_secs(3600)).settle(), [""; 0]);
    }

    #[test]
    fn a_pod_waits_for_its_claim_and_says_so_only_when_it_lasts() {
        let mut stand = Stand::unscheduled();
        stand.claims.insert(Stand::claim(), false);

        assert!(matches!(stand.next(), (None, Some(_))));
        assert_eq!(stand.task.waits_for, Some(Stand::claim()));
        assert_eq!(stand.wait(Duration::from_secs(1)).settle(), ["unschedulable"]);

        stand.claims.insert(Stand::claim(), true);
        assert_eq!(stand.settle()[0], "bind to node-a");
    }

    #[test]
    fn a_deleted_pod_ends_before_it_goes() {
        let mut stand = Stand::of(set_pod_json("db", 0));
        stand.settle();
        stand.change(delete);
        assert_eq!(stand.settle(), ["Succeeded", "delete"]);
    }

    fn fields(request: (Option<Request>, Option<Timestamp>)) -> Vec<String> {
        let (Some(Request::Status(status)), _) = request else {
            panic!("no status is written")
        };
        json!(status).as_object().unwrap().keys().cloned().collect()
    }

    #[rstest]
    #[case::as_it_was(|_: &mut Value| {}, &["conditions", "containerStatuses", "observedGeneration", "phase"])]
    #[case::another_phase(|object: &mut Value| object["status"]["phase"] = "Pending".into(), WHOLE)]
    #[case::another_address(|object: &mut Value| object["status"]["podIP"] = "10.9.9.9".into(), WHOLE)]
    #[case::no_conditions(|object: &mut Value| object["status"]["conditions"] = json!([]), WHOLE)]
    fn what_was_written_and_is_still_there_is_not_written_again(
        #[case] change: impl Fn(&mut Value),
        #[case] written: &[&str],
    ) {
        let mut stand = Stand::of(set_pod_json("db", 0));
        stand.settle();
        stand.change(|object| {
            delete(object);
            change(object);
        });
        assert!(stand.next().0.is_none(), "its containers stop");
        stand.wait(Duration::from_secs(60));
        assert_eq!(fields(stand.next()), written);
        // It is unknown whether the request took effect.
        stand.task.failed(stand.now);
        assert_eq!(fields(stand.next()), WHOLE);
    }

    const WHOLE: &[&str] = &[
        "conditions",
        "containerStatuses",
        "hostIP",
        "hostIPs",
        "observedGeneration",
        "phase",
        "podIP",
        "podIPs",
        "startTime",
    ];

    #[test]
    fn a_pod_on_a_vanished_node_freezes() {
        let mut stand = Stand::of(set_pod_json("db", 0));
        stand.settle();
        stand.nodes.clear();
        stand.change(delete);
        assert_eq!(stand.wait(Duration::from_secs(3600)).settle(), [""; 0]);

        stand.nodes = live(["node-a"]);
        assert_eq!(stand.settle(), ["Succeeded", "delete"]);
    }

    #[test]
    fn a_foreign_verdict_on_readiness_is_answered_once() {
        let mut stand = Stand::of(set_pod_json("db", 0));
        stand.settle();
        let call_unready = |object: &mut Value| {
            for condition in object["status"]["conditions"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                if condition["type"] == "Ready" {
                    condition["status"] = "False".into();
                }
            }
        };
        stand.change(call_unready);
        assert_eq!(stand.settle(), ["Running"]);

        stand.change(call_unready);
        assert!(matches!(stand.next(), (Some(Request::Status(_)), _)));
        stand.task.succeeded();
        assert!(
            matches!(stand.next(), (None, None)),
            "the write had no effect and must not be repeated"
        );
    }

    #[test]
    fn a_pod_that_somebody_else_has_failed_stays_failed() {
        let mut stand = Stand::of(set_pod_json("db", 0));
        stand.settle();
        stand.change(|object| object["status"]["phase"] = "Failed".into());
        assert_eq!(stand.settle(), ["Failed"]);
    }

    #[test]
    fn a_failed_request_is_made_again_later() {
        let mut stand = Stand::of(set_pod_json("db", 0));
        assert!(matches!(stand.next(), (Some(Request::Status(_)), _)));
        assert!(matches!(stand.next(), (None, None)), "one request at a time");
        let later = after(stand.now, Duration::from_secs(1));
        stand.task.failed(later);
        assert!(matches!(stand.next(), (None, Some(time)) if time == later));
        stand.now = later;
        assert!(matches!(stand.next(), (Some(Request::Status(_)), _)));
    }

    #[test]
    fn a_new_generation_alone_is_no_reason_to_write() {
        let mut stand = Stand::of(set_pod_json("db", 0));
        stand.settle();
        stand.change(|object| object["metadata"]["generation"] = 2.into());
        assert_eq!(stand.settle(), [""; 0]);
    }
}
