//! Named sequences with a watch.

use serde_json::json;

use super::cases::{covered, get, make, ready};
use super::kinds::{BUDGET, CONFIG_MAP, Kind};
use super::request::{Request, Step};

fn watch(kind: Kind, version: &str) -> Step {
    Step::Watch(
        Request::new("GET", kind.collection())
            .query("watch", "1")
            .query("labelSelector", "sequence=«ns»")
            .query("resourceVersion", version),
    )
}

fn label(kind: Kind, name: &str, tier: &str) -> Step {
    let labels = json!({"metadata": {"labels": {"tier": tier}}});
    Step::Send(
        Request::new("PATCH", kind.item(name))
            .about(kind.key(name))
            .content_type("application/merge-patch+json")
            .json(labels),
    )
}

fn send(request: Request) -> Step {
    Step::Send(request)
}

pub(super) fn a_watch_from_zero_begins_with_what_is_there() -> Vec<Step> {
    vec![
        send(make(CONFIG_MAP, "b")),
        send(make(CONFIG_MAP, "a")),
        send(Request::new("GET", CONFIG_MAP.collection())),
        watch(CONFIG_MAP, "0"),
        label(CONFIG_MAP, "b", "1"),
        send(Request::new("DELETE", CONFIG_MAP.item("a"))),
        Step::Events(make(CONFIG_MAP, "marker")),
    ]
}

pub(super) fn a_watch_goes_on_from_its_version() -> Vec<Step> {
    vec![
        send(make(CONFIG_MAP, "a")),
        send(make(CONFIG_MAP, "b")),
        label(CONFIG_MAP, "a", "1"),
        send(Request::new("DELETE", CONFIG_MAP.item("b"))),
        watch(CONFIG_MAP, "«old-rv configmaps/a»"),
        label(CONFIG_MAP, "a", "2"),
        Step::Events(make(CONFIG_MAP, "marker")),
    ]
}

pub(super) fn a_budget_is_written_when_it_changes() -> Vec<Step> {
    let one = |pointer: &'static str, value: u32| send(get(BUDGET, "one").until(pointer, value));
    vec![
        watch(BUDGET, ""),
        send(make(BUDGET, "one")),
        send(covered("a")),
        one("/status/expectedPods", 1),
        send(ready("a")),
        one("/status/currentHealthy", 1),
        label(BUDGET, "one", "1"),
        Step::Events(make(BUDGET, "marker")),
    ]
}
