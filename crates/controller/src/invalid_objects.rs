//! Watches that skip objects that fail to deserialize, and report each of them.

use futures::{Stream, StreamExt, future};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use stateward_client::DeserializeGuard;

/// Converts the object of an event.
pub(crate) fn map<K, T>(event: watcher::Event<K>, make: impl FnOnce(K) -> T) -> watcher::Event<T> {
    match event {
        watcher::Event::Apply(object) => watcher::Event::Apply(make(object)),
        watcher::Event::Delete(object) => watcher::Event::Delete(make(object)),
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitApply(object) => watcher::Event::InitApply(make(object)),
        watcher::Event::InitDone => watcher::Event::InitDone,
    }
}

/// A watch without invalid objects, which are passed to `invalid` with the reason. An object that was valid before keeps its last state.
pub(crate) fn valid<K>(
    watch: impl Stream<Item = watcher::Result<watcher::Event<DeserializeGuard<K>>>>,
    mut invalid: impl FnMut(K, &str),
) -> impl Stream<Item = watcher::Result<watcher::Event<K>>>
where
    K: Resource<DynamicType = ()> + Default,
{
    watch.filter_map(move |event| {
        future::ready(match event {
            Ok(
                watcher::Event::Apply(DeserializeGuard::Invalid(metadata, why))
                | watcher::Event::InitApply(DeserializeGuard::Invalid(metadata, why)),
            ) => {
                invalid(bare(*metadata), &why);
                None
            }
            Ok(event) => Some(Ok(map(event, |object| {
                object.unwrap_or_else(|metadata, _| bare(metadata))
            }))),
            Err(error) => Some(Err(error)),
        })
    })
}

/// An object with metadata only, which is enough to name or to forget it.
fn bare<K: Resource<DynamicType = ()> + Default>(metadata: ObjectMeta) -> K {
    let mut object = K::default();
    *object.meta_mut() = metadata;
    object
}

/// Logs the object, and why it is ignored.
pub(crate) fn log<K: Resource<DynamicType = ()>>(object: &K, why: &str) {
    tracing::warn!(
        kind = %K::kind(&()),
        namespace = object.namespace().unwrap_or_default(),
        object = object.name_any(),
        why,
        "an object cannot be read"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::ObjectList;
    use serde_json::{Value, json};
    use stateward_api::rolloutplugin::RolloutPlugin;

    fn object(name: &str, duration: i64) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
            "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "7"},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name},
                "plugin": {"name": "statefulset"},
                "strategy": {"canary": {"steps": [{"pause": {"duration": duration}}]}},
            },
        })
    }

    fn list() -> Vec<DeserializeGuard<RolloutPlugin>> {
        let list = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPluginList", "metadata": {"resourceVersion": "9"},
            "items": [object("a", 1), object("b", 3_000_000_000), object("c", 2)],
        });
        let list: ObjectList<DeserializeGuard<RolloutPlugin>> = serde_json::from_value(list).unwrap();
        list.items
    }

    #[tokio::test]
    async fn a_watch_ignores_invalid_objects_until_they_are_deleted() {
        let bad = list().remove(1);
        let events = list().into_iter().map(watcher::Event::InitApply);
        let events = events.chain([watcher::Event::Apply(bad.clone()), watcher::Event::Delete(bad)]);
        let mut invalid = Vec::new();
        let watch = futures::stream::iter(events.map(Ok));
        let seen: Vec<_> = valid(watch, |object, _| invalid.push(object.name_any()))
            .collect()
            .await;
        assert_eq!(invalid, ["b", "b"]);
        let seen: Vec<_> = seen
            .into_iter()
            .map(|event| match event.unwrap() {
                watcher::Event::InitApply(object) => format!("+{}", object.name_any()),
                watcher::Event::Delete(object) => format!("-{}", object.uid().unwrap()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seen, ["+a", "+c", "-b"]);
    }
}
