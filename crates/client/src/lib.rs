//! Requests for Kubernetes objects, by validated names and with limits on the responses.
//!
//! [`kube::Api`] puts a name into the path of a request as it is, so a name such as `../../other/secrets/password`, which a tenant
//! can write into any field that names an object, would leave the namespace. [`Objects`] offers the same requests by
//! [`ObjectName`], which rejects such a string. In the crates that work with users' objects, `clippy.toml` disallows the methods of
//! `Api` that take a plain string.
//!
//! Objects are written by tenants, so their size in memory is limited before they are built ([`json`]), and one that fails to
//! deserialize does not hide the others of a list or a watch ([`DeserializeGuard`]).

mod deserialize_guard;
pub mod json;
mod managed_fields;
mod whoami;

use std::fmt::Debug;

use kube::api::{
    DeleteParams, GetParams, ListParams, LogParams, ObjectList, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::{ClusterResourceScope, NamespaceResourceScope, Request};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
pub use stateward_api::{InvalidName, ObjectName};

pub use self::deserialize_guard::{DeserializeGuard, JSON_OBJECT, MAX_VALUES};
pub use self::whoami::whoami;

/// How many objects a page of a list has. A whole page is in memory, and each object of a tenant may be as large as the API server
/// allows.
pub const PAGE: u32 = 10;

/// The objects of one kind, in one namespace or cluster-wide.
#[derive(Clone, Debug)]
pub struct Objects<K>(Api<K>);

/// For the CLI, whose namespace is chosen by its user.
impl<K> From<Api<K>> for Objects<K> {
    fn from(api: Api<K>) -> Self {
        Self(api)
    }
}

impl<K: Resource> Objects<K> {
    /// The objects of a namespace.
    pub fn namespaced(client: &Client, namespace: &ObjectName) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Self(Api::namespaced(client.clone(), namespace.as_str()))
    }

    /// The objects of a namespace, of a kind that is known only at run time.
    pub fn namespaced_with(client: &Client, namespace: &ObjectName, kind: &K::DynamicType) -> Self
    where
        K: Resource<Scope = kube::core::DynamicResourceScope>,
    {
        Self(Api::namespaced_with(client.clone(), namespace.as_str(), kind))
    }

    /// The objects of the namespace of `object`.
    pub fn in_namespace_of<O: Resource>(client: &Client, object: &O) -> Result<Self, InvalidName>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        let namespace = ObjectName::new(object.meta().namespace.as_deref().unwrap_or_default())?;
        Ok(Self::namespaced(client, &namespace))
    }

    /// The objects of a cluster-scoped kind.
    pub fn of_cluster(client: &Client) -> Self
    where
        K: Resource<Scope = ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Self(Api::all(client.clone()))
    }

    /// For lists and watches, which take no name.
    pub fn api(&self) -> &Api<K> {
        &self.0
    }
}

impl<K> Objects<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    /// One object, if it exists.
    pub async fn get(&self, name: &ObjectName) -> kube::Result<Option<K>> {
        let request = self.request().get(name.as_str(), &GetParams::default());
        match self.send(request).await {
            Ok(object) => Ok(Some(object)),
            // A kind that is not served is a 404 too, without that reason.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One object, if it exists, by a list of one: that needs no permission beyond those of a watch.
    pub async fn find(&self, name: &ObjectName) -> kube::Result<Option<K>> {
        let only = ListParams::default().fields(&format!("metadata.name={name}"));
        Ok(self.list(&only).await?.into_iter().next())
    }

    /// The objects that match. An object that fails to deserialize is an error that names it.
    pub async fn list(&self, params: &ListParams) -> kube::Result<Vec<K>> {
        let listed = self.list_guarded(params).await?;
        let valid = |object| match object {
            DeserializeGuard::Valid(object) => Ok(object),
            DeserializeGuard::Invalid(metadata, why) => {
                let name = metadata.name.unwrap_or_default();
                Err(invalid(format!("{name} cannot be read: {why}")))
            }
        };
        listed.into_iter().map(valid).collect()
    }

    /// The objects that match, including those that fail to deserialize.
    pub async fn list_guarded(&self, params: &ListParams) -> kube::Result<Vec<DeserializeGuard<K>>> {
        Ok(self.list_page(params).await?.items)
    }

    /// The objects that match and that `wanted` accepts. Reads page by page, because the others may be large and numerous. Skips
    /// objects that fail to deserialize.
    pub async fn list_wanted(
        &self,
        params: &ListParams,
        mut wanted: impl FnMut(&K) -> bool,
    ) -> kube::Result<Vec<K>> {
        const FEW: u32 = 2;
        let mut found = Vec::new();
        let mut params = params.clone().limit(FEW);
        loop {
            let page = self.list_page(&params).await?;
            let valid = page.items.into_iter().filter_map(|object| match object {
                DeserializeGuard::Valid(object) => Some(object),
                DeserializeGuard::Invalid(..) => None,
            });
            found.extend(valid.filter(|object| wanted(object)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    async fn list_page(&self, params: &ListParams) -> kube::Result<ObjectList<DeserializeGuard<K>>> {
        let request = self.request().list(params).map_err(kube::Error::BuildRequest)?;
        let text = self.client().request_text(request).await?;
        serde_json::from_str(&text).map_err(kube::Error::SerdeError)
    }

    /// Creates an object. Its name is in the body, where the API server validates it.
    pub async fn create(&self, object: &K) -> kube::Result<K>
    where
        K: Serialize,
    {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        self.send(self.request().create(&PostParams::default(), body))
            .await
    }

    /// Patches an object.
    pub async fn patch<P: Serialize + Debug>(
        &self,
        name: &ObjectName,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        self.send(self.request().patch(name.as_str(), params, patch))
            .await
    }

    /// Patches the status of an object.
    pub async fn patch_status<P: Serialize + Debug>(
        &self,
        name: &ObjectName,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let request = self.request();
        let request = request.patch_subresource("status", name.as_str(), params, patch);
        self.send(request).await
    }

    /// Deletes the object with this UID, and its dependents in the background. Returns whether it existed.
    pub async fn delete(&self, name: &ObjectName, uid: Option<String>) -> kube::Result<bool> {
        let preconditions = Preconditions {
            uid,
            resource_version: None,
        };
        self.delete_if(name, preconditions).await
    }

    /// Deletes the object if the preconditions hold, and its dependents in the background. Returns whether it existed.
    pub async fn delete_if(&self, name: &ObjectName, preconditions: Preconditions) -> kube::Result<bool> {
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::background()
        };
        let request = self.request().delete(name.as_str(), &params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        // The response is the object, or a status; neither is needed.
        match self.client().request_text(request).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates a subresource, such as an eviction.
    pub async fn create_subresource(
        &self,
        subresource: &'static str,
        name: &ObjectName,
        body: &Value,
    ) -> kube::Result<Value> {
        let params = PostParams::default();
        let created = self
            .0
            .create_subresource(subresource, name.as_str(), &params, body);
        created.await
    }

    /// The log of a pod.
    pub async fn logs(&self, name: &ObjectName, params: &LogParams) -> kube::Result<String>
    where
        K: kube::api::Log,
    {
        self.0.logs(name.as_str(), params).await
    }

    /// The names of the field managers that own the field at this path of `fieldsV1`, such as `f:spec`, `f:replicas`.
    pub async fn managers_of(&self, name: &ObjectName, path: &[&str]) -> kube::Result<Vec<String>> {
        let request = self.request().get(name.as_str(), &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = self.client().request_text(request).await?;
        managed_fields::managers_of(&text, path).map_err(kube::Error::SerdeError)
    }

    fn request(&self) -> Request {
        Request::new(self.0.resource_url())
    }

    fn client(&self) -> Client {
        self.0.clone().into_client()
    }

    /// Sends a request whose response is one object. [`Client::request`] has no limits, and logs a whole response that it cannot read.
    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> kube::Result<K> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = self.client().request_text(request).await?;
        deserialize_guard::read(&text).map_err(invalid)
    }
}

fn invalid(why: String) -> kube::Error {
    kube::Error::SerdeError(serde::de::Error::custom(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;
    use serde_json::json;

    /// Objects that are not wanted are dropped page by page, and invalid ones are skipped.
    #[tokio::test]
    async fn of_many_large_objects_only_the_wanted_are_kept() {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = asked.clone();
        let server = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let uri = request.uri().to_string();
            let item = |name: &str, data: Value| json!({"metadata": {"name": name}, "data": data});
            let (items, token) = if uri.contains("continue=2") {
                ([item("c", json!({"of": "us"})), item("d", json!({}))], "")
            } else {
                ([item("a", json!({"of": "us"})), item("b", json!(3))], "2")
            };
            noted.lock().unwrap().push(uri);
            let list = json!({
                "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": token}, "items": items,
            });
            let body = kube::client::Body::from(list.to_string().into_bytes());
            std::future::ready(Ok::<_, Infallible>(http::Response::new(body)))
        });
        let objects =
            Objects::<ConfigMap>::namespaced(&Client::new(server, "ns"), &ObjectName::new("ns").unwrap());
        let ours = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data.contains_key("of"));
        let found = objects
            .list_wanted(&ListParams::default().labels("l=1"), ours)
            .await
            .unwrap();
        let names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["a", "c"]);
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 2, "{asked:?}");
        let limited = |uri: &String| uri.contains("limit=2") && uri.contains("labelSelector=l%3D1");
        assert!(asked.iter().all(limited), "{asked:?}");
    }
}
