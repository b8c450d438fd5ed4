//! Events from controllers: a repeated event increases a count.

mod correlate;

use crate::json::{Value, json};
use parking_lot::Mutex;

use self::correlate::{Correlator, News};
use crate::access::EventKind;
use crate::object;
use crate::server::{Caller, Change, Server, Target, WriteOptions, seconds};

/// Remembers the recorded events.
pub(super) struct Recorder {
    /// The source of the events.
    component: &'static str,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    correlator: Correlator,
    /// Distinguishes events of the same moment.
    recorded: i128,
}

impl Recorder {
    pub(super) fn of(component: &'static str) -> Self {
        Self {
            component,
            memory: Mutex::default(),
        }
    }

    /// Records an event, increases its count, or drops it.
    pub(super) fn record(
        &self,
        server: &Server,
        caller: &Caller,
        about: &Value,
        kind: EventKind,
        reason: &str,
        message: &str,
    ) {
        let kind = match kind {
            EventKind::Normal => "Normal",
            EventKind::Warning => "Warning",
        };
        let component = self.component;
        let namespace = match object::namespace(about) {
            "" => "default",
            namespace => namespace,
        };
        let Some(resource) = server.registry.by_id("events") else {
            return;
        };
        let target = |name: &str| Target {
            resource: resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        };
        let options = WriteOptions::default();
        let now = seconds(server.now());
        let mut memory = self.memory.lock();
        memory.recorded += 1;
        let name = format!(
            "{}.{:016x}",
            object::name(about),
            server.now().as_nanosecond() + memory.recorded
        );
        let news = News {
            component,
            uid: object::uid(about),
            kind,
            reason,
            message,
        };
        let Some(telling) = memory.correlator.observe(news, name, server.now()) else {
            return;
        };
        if telling.count > 1 {
            let again = json!({"count": telling.count, "lastTimestamp": now, "message": telling.message});
            if server
                .modify(
                    &target(&telling.name),
                    Change::Strategic(&again),
                    &options,
                    caller,
                )
                .is_ok()
            {
                return;
            }
        }
        let event = json!({
            "metadata": {"name": telling.name, "namespace": namespace},
            "involvedObject": reference(about),
            "reason": reason, "message": telling.message, "type": kind, "count": telling.count,
            "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": component}, "reportingComponent": component, "reportingInstance": "",
        });
        // Events about an object whose namespace is being deleted are lost, as on a real cluster.
        let _ = server.create(&target(""), &event, &options, caller);
    }
}

fn reference(about: &Value) -> Value {
    let mut reference = json!({"kind": about["kind"], "apiVersion": about["apiVersion"]});
    for field in ["namespace", "name", "uid", "resourceVersion"] {
        if let Some(value) = about["metadata"].get(field) {
            reference[field] = value.clone();
        }
    }
    reference
}
