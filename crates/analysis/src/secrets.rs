//! Reads keys from Secrets of the run's namespace, by name when needed, without caching.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use stateward_client::{InvalidName, ObjectName, Objects};

use crate::ProviderError;

/// The maximum length of a secret: every encoding of it is kept for redaction.
pub const LONGEST_SECRET: usize = 16 * 1024;

/// The data of a Secret, by key.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// Why a Secret cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SecretsError(pub String);

/// Reads Secrets.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// Reads a Secret; `None` if it does not exist.
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, SecretsError>;
}

/// Secrets of a cluster: one GET each, without lists, watches or caches.
#[derive(Clone)]
pub struct KubeSecrets(pub Client);

#[async_trait]
impl Secrets for KubeSecrets {
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, SecretsError> {
        let invalid = |error: InvalidName| SecretsError(error.to_string());
        let namespace = ObjectName::new(namespace).map_err(invalid)?;
        let name = ObjectName::new(name).map_err(invalid)?;
        let secrets = Objects::<Secret>::namespaced(&self.0, &namespace);
        let secret = secrets.get(&name).await.map_err(|error| match error {
            // The server's reason; other errors may quote the response.
            kube::Error::Api(status) => SecretsError(format!("{} ({})", status.reason, status.code)),
            _ => SecretsError("the API server did not answer".to_owned()),
        })?;
        Ok(secret.map(|secret| {
            let data = secret.data.unwrap_or_default();
            data.into_iter().map(|(key, value)| (key, value.0)).collect()
        }))
    }
}

impl fmt::Debug for KubeSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KubeSecrets")
    }
}

/// Secrets in a map, by namespace and name.
#[derive(Clone, Default)]
pub struct MapSecrets(BTreeMap<(String, String), SecretData>);

impl MapSecrets {
    /// Adds a Secret.
    pub fn with(mut self, namespace: &str, name: &str, data: &[(&str, &str)]) -> Self {
        let data = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        self.0
            .insert((namespace.to_owned(), name.to_owned()), data.collect());
        self
    }
}

#[async_trait]
impl Secrets for MapSecrets {
    async fn get(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, SecretsError> {
        Ok(self.0.get(&(namespace.to_owned(), name.to_owned())).cloned())
    }
}

impl fmt::Debug for MapSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Whether this is a DNS subdomain, as Kubernetes requires.
fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<u8>| byte.is_some_and(inner);
    (1..=253).contains(&name.len())
        && ends(name.bytes().next())
        && ends(name.bytes().last())
        && name
            .bytes()
            .all(|byte| inner(byte) || matches!(byte, b'-' | b'.'))
        && !name.contains("..")
}

/// A Secret that was read for a provider.
pub(crate) struct Keys {
    namespace: String,
    name: String,
    data: SecretData,
}

impl Keys {
    /// Reads the Secret of a provider. Invalid names are rejected: `../../other/secrets/x` would be another path at the API server.
    pub(crate) async fn read(
        secrets: &dyn Secrets,
        provider: &'static str,
        namespace: &str,
        name: &str,
    ) -> Result<Self, ProviderError> {
        if !is_name(name) {
            let problem =
                format!("{name:?} is not the name of a secret: lower case letters, digits, - and .");
            return Err(ProviderError::bad_field(format!("provider.{provider}"), problem));
        }
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        match secrets.get(&namespace, &name).await {
            Ok(Some(data)) => Ok(Self {
                namespace,
                name,
                data,
            }),
            Ok(None) => Err(ProviderError::SecretMissing {
                namespace,
                name,
                provider,
            }),
            Err(SecretsError(why)) => Err(ProviderError::SecretUnreadable { namespace, name, why }),
        }
    }

    /// The value of a required key.
    pub(crate) fn need(&self, key: &str) -> Result<&str, ProviderError> {
        self.find(key).ok_or_else(|| ProviderError::SecretKeyMissing {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            key: key.to_owned(),
        })
    }

    /// The value of an optional key, of at most [`LONGEST_SECRET`] bytes, without a trailing newline, which editors add.
    pub(crate) fn find(&self, key: &str) -> Option<&str> {
        let bytes = self.data.get(key).filter(|bytes| bytes.len() <= LONGEST_SECRET)?;
        let text = std::str::from_utf8(bytes).ok()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// The name of a key, for messages about its value.
    pub(crate) fn field(&self, key: &str) -> String {
        format!("secret {}/{} key {key}", self.namespace, self.name)
    }
}
