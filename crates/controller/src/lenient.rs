//! One object that cannot be read concerns nobody but itself.
//!
//! A list is read as a whole, so a single object with a number that is too large would hide all the others. The server may let
//! one through: the definitions may be somebody else's, and not everything can be said in a schema.

use std::borrow::Cow;

use futures::{Stream, StreamExt, future};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object, or what can be said of one that cannot be read.
#[derive(Clone, Debug)]
pub(crate) enum Lenient<K> {
    /// It.
    Read(K),
    /// Its metadata, and why the rest cannot be read.
    Unread(Box<ObjectMeta>, String),
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Value::deserialize(deserializer)?;
        Ok(match K::deserialize(&json) {
            Ok(object) => Self::Read(object),
            Err(error) => Self::Unread(Box::new(metadata(&json)), error.to_string()),
        })
    }
}

/// As much of the metadata as there is.
fn metadata(object: &Value) -> ObjectMeta {
    let metadata = &object["metadata"];
    ObjectMeta::deserialize(metadata).unwrap_or_else(|_| {
        let text = |field: &str| metadata[field].as_str().map(str::to_owned);
        ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        }
    })
}

impl<K: Resource<DynamicType = ()>> Resource for Lenient<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind(dynamic: &()) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &()) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &()) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &()) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Read(object) => object.meta(),
            Self::Unread(metadata, _) => metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Read(object) => object.meta_mut(),
            Self::Unread(metadata, _) => metadata,
        }
    }
}

impl<K> Lenient<K> {
    /// The object, or what is made of one that cannot be read.
    pub(crate) fn or_else(self, make: impl FnOnce(ObjectMeta, String) -> K) -> K {
        match self {
            Self::Read(object) => object,
            Self::Unread(metadata, why) => make(*metadata, why),
        }
    }
}

/// What is made of an event's object.
pub(crate) fn map<K, T>(event: watcher::Event<K>, make: impl FnOnce(K) -> T) -> watcher::Event<T> {
    match event {
        watcher::Event::Apply(object) => watcher::Event::Apply(make(object)),
        watcher::Event::Delete(object) => watcher::Event::Delete(make(object)),
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitApply(object) => watcher::Event::InitApply(make(object)),
        watcher::Event::InitDone => watcher::Event::InitDone,
    }
}

/// A watch without what cannot be read, which is handed to `unread` with the reason. One that could be read before stays as it was.
pub(crate) fn readable<K>(
    watch: impl Stream<Item = watcher::Result<watcher::Event<Lenient<K>>>>,
    mut unread: impl FnMut(K, &str),
) -> impl Stream<Item = watcher::Result<watcher::Event<K>>>
where
    K: Resource<DynamicType = ()> + Default,
{
    watch.filter_map(move |told| {
        future::ready(match told {
            Ok(
                watcher::Event::Apply(Lenient::Unread(metadata, why))
                | watcher::Event::InitApply(Lenient::Unread(metadata, why)),
            ) => {
                unread(bare(*metadata), &why);
                None
            }
            Ok(event) => Some(Ok(map(event, |object| {
                object.or_else(|metadata, _| bare(metadata))
            }))),
            Err(error) => Some(Err(error)),
        })
    })
}

/// To be named or forgotten, an object needs no more than its metadata.
fn bare<K: Resource<DynamicType = ()> + Default>(metadata: ObjectMeta) -> K {
    let mut object = K::default();
    *object.meta_mut() = metadata;
    object
}

/// `AnalysisRun prod/db`: for those who look for it.
pub(crate) fn told<K: Resource<DynamicType = ()>>(object: &K, why: &str) {
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
    use serde_json::json;
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

    fn list() -> Vec<Lenient<RolloutPlugin>> {
        let list = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPluginList", "metadata": {"resourceVersion": "9"},
            "items": [object("a", 1), object("b", 3_000_000_000), object("c", 2)],
        });
        let list: ObjectList<Lenient<RolloutPlugin>> = serde_json::from_value(list).unwrap();
        list.items
    }

    #[test]
    fn one_object_that_cannot_be_read_hides_no_other() {
        let names: Vec<_> = list().iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let unread = list().into_iter().filter_map(|object| match object {
            Lenient::Read(_) => None,
            Lenient::Unread(metadata, why) => Some((metadata.uid.unwrap(), why)),
        });
        let unread: Vec<_> = unread.collect();
        assert_eq!(unread.len(), 1, "{unread:?}");
        assert_eq!(unread[0].0, "b");
        assert!(unread[0].1.contains("3000000000"), "{}", unread[0].1);
    }

    #[tokio::test]
    async fn a_watch_passes_over_what_cannot_be_read_and_tells_that_it_is_gone() {
        let bad = list().remove(1);
        let events = list().into_iter().map(watcher::Event::InitApply);
        let events = events.chain([watcher::Event::Apply(bad.clone()), watcher::Event::Delete(bad)]);
        let mut unread = Vec::new();
        let watch = futures::stream::iter(events.map(Ok));
        let told: Vec<_> = readable(watch, |object, _| unread.push(object.name_any()))
            .collect()
            .await;
        assert_eq!(unread, ["b", "b"]);
        let told: Vec<_> = told
            .into_iter()
            .map(|told| match told.unwrap() {
                watcher::Event::InitApply(object) => format!("+{}", object.name_any()),
                watcher::Event::Delete(object) => format!("-{}", object.uid().unwrap()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, ["+a", "+c", "-b"]);
    }
}
