//! The metric providers with HTTP APIs.
//!
//! The input is a [`MetricQuery`]: a metric whose args are filled in, the namespace of its run and the time. The output is core's
//! [`Reply`](stateward_core::analysis::Reply) or a [`ProviderError`]. Judging answers is core's task.
//!
//! The author of a template decides what the operator connects to, so every connection goes through [`http`], which checks every address
//! with [`Egress`], and no message, `Debug` output or log contains a secret, a header value or a body.
//!
//! Keys are only read from Secrets of the run's namespace ([`Secrets`]). Argo Rollouts reads some of them from its controller's namespace:
//! copy those Secrets to the namespaces of the runs.

mod address;
mod auth;
mod datadog;
mod error;
mod graphite;
mod graphql;
pub mod http;
mod influxdb;
mod json;
mod limit;
mod new_relic;
mod placement;
mod prometheus;
mod providers;
mod query;
mod redactor;
mod said;
mod secrets;
mod skywalking;
#[cfg(feature = "testing")]
pub mod testing;
mod timing;
mod wavefront;
mod web;
mod workers;

pub use self::auth::AwsCredentials;
pub use self::error::ProviderError;
pub use self::limit::{NamespaceLimit, Permit};
pub use self::placement::{check_filled_args, check_secret_args};
pub use self::providers::Providers;
pub use self::query::{MetricProvider, MetricQuery, Range};
pub use self::redactor::Redactor;
pub use self::secrets::{KubeSecrets, LONGEST_SECRET, MapSecrets, SecretData, Secrets, SecretsError};
pub use self::workers::Workers;
pub use stateward_egress::{Cidr, Destination, Egress, Refusals};
