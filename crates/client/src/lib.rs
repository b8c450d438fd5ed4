//! Requests for Kubernetes objects by names that were checked.
//!
//! [`kube::Api`] puts a name into the path of a request as it is, so a name such as `../../other/secrets/password`, which a tenant
//! can write into any field that names an object, would leave the namespace. [`Objects`] offers the same requests by
//! [`ObjectName`], which such a string cannot become.

use std::fmt::Debug;

use kube::api::{
    DeleteParams, ListParams, LogParams, ObjectList, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
pub use stateward_api::{InvalidName, ObjectName};

/// The objects of one kind, in one namespace or in none.
#[derive(Clone, Debug)]
pub struct Objects<K>(Api<K>);

/// For clients that ask for one namespace in many ways.
impl<K> From<Api<K>> for Objects<K> {
    fn from(api: Api<K>) -> Self {
        Self(api)
    }
}

impl<K: Resource> Objects<K> {
    /// Those of a namespace.
    pub fn namespaced(client: &Client, namespace: &ObjectName) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Self(Api::namespaced(client.clone(), namespace.as_str()))
    }

    /// Those of a namespace, of a kind that is known at run time.
    pub fn namespaced_with(client: &Client, namespace: &ObjectName, kind: &K::DynamicType) -> Self
    where
        K: Resource<Scope = kube::core::DynamicResourceScope>,
    {
        Self(Api::namespaced_with(client.clone(), namespace.as_str(), kind))
    }

    /// Those of the namespace that `object` is in.
    pub fn in_namespace_of<O: Resource>(client: &Client, object: &O) -> Result<Self, InvalidName>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        let namespace = ObjectName::new(object.meta().namespace.as_deref().unwrap_or_default())?;
        Ok(Self::namespaced(client, &namespace))
    }

    /// Those of a kind that has no namespaces.
    pub fn of_cluster(client: &Client) -> Self
    where
        K: Resource<Scope = ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Self(Api::all(client.clone()))
    }

    /// What lists and watches, which take no name.
    pub fn api(&self) -> &Api<K> {
        &self.0
    }
}

impl<K> Objects<K>
where
    K: Clone + DeserializeOwned + Debug,
{
    /// One object, if it is there.
    pub async fn get(&self, name: &ObjectName) -> kube::Result<Option<K>> {
        self.0.get_opt(name.as_str()).await
    }

    /// One object, if it is there, by a list of one: that needs no right that a watch does not need.
    pub async fn find(&self, name: &ObjectName) -> kube::Result<Option<K>> {
        let only = ListParams::default().fields(&format!("metadata.name={name}"));
        Ok(self.0.list(&only).await?.items.into_iter().next())
    }

    /// Those that match.
    pub async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<K>> {
        self.0.list(params).await
    }

    /// Creates an object. Its name is in the body, where the server checks it.
    pub async fn create(&self, object: &K) -> kube::Result<K>
    where
        K: Serialize,
    {
        self.0.create(&PostParams::default(), object).await
    }

    /// Changes an object.
    pub async fn patch<P: Serialize + Debug>(
        &self,
        name: &ObjectName,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        self.0.patch(name.as_str(), params, patch).await
    }

    /// Changes the status of an object.
    pub async fn patch_status<P: Serialize + Debug>(
        &self,
        name: &ObjectName,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        self.0.patch_status(name.as_str(), params, patch).await
    }

    /// Deletes the object of this UID, and what it owns after it. Whether it was there.
    pub async fn delete(&self, name: &ObjectName, uid: Option<String>) -> kube::Result<bool> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid,
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match self.0.delete(name.as_str(), &params).await {
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
}
