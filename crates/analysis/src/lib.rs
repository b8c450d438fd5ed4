//! The providers of metrics that are asked over HTTP.
//!
//! What flows in is a [`Question`]: a metric whose args are filled in, the namespace of its run and the time. What flows out is
//! core's [`Reply`](stateward_core::analysis::Reply) or an [`AskError`]. Nothing here judges an answer; that is core's.
//!
//! Whoever may write a template decides what the operator dials, so every connection goes through [`http`], which asks
//! [`Egress`] about every address, and no message, `Debug` output or log carries a secret, a header's value or a body.
//!
//! Keys come from Secrets of the run's own namespace and from nowhere else ([`Secrets`]). Argo Rollouts reads some of them from
//! its controller's namespace: copy those Secrets to where the runs are.

mod address;
mod ask;
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
mod said;
mod secrets;
mod skywalking;
#[cfg(feature = "testing")]
pub mod testing;
mod timing;
mod veil;
mod wavefront;
mod web;
mod workers;

pub use self::ask::{Ask, Question, Range};
pub use self::auth::AwsCredentials;
pub use self::error::AskError;
pub use self::limit::{NamespaceLimit, Permit};
pub use self::placement::{check_filled_args, check_secret_args};
pub use self::providers::Providers;
pub use self::secrets::{KubeSecrets, LONGEST_SECRET, MapSecrets, SecretData, Secrets, SecretsError};
pub use self::veil::Veil;
pub use self::workers::Workers;
pub use stateward_egress::{Cidr, Destination, Egress, Refusals};
