//! The custom resources: their types, their schemas, and what makes a spec valid.
//!
//! Schemas are generated from the types (`cargo xtask generate crds`) and carry what a server can check by itself. What it
//! cannot is checked here once more from the start, because an object may have come in before its schema did: `problems`
//! names the field, the value and what is allowed. No IO, no clock.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub mod analysis;
pub mod duration;
mod names;
pub mod phasedrollout;
mod problem;
pub mod rollout;
pub mod rolloutplugin;
mod schema;

pub use self::problem::Problem;

/// The definitions of everything that is served, to apply to a cluster.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let analysis = analysis::definitions();
    [rolloutplugin::definition(), phasedrollout::definition()]
        .into_iter()
        .chain(analysis)
        .collect()
}
