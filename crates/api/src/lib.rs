//! The custom resources: types, schemas and validation.
//!
//! Schemas are generated from the types (`cargo xtask generate crds`) and contain what an API server can check by itself. `problems`
//! checks all rules, because an object may be older than its schema, and names the field, the value and what is allowed. No IO, no
//! clock.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub mod analysis;
pub mod duration;
pub mod names;
pub mod phasedrollout;
mod problem;
pub mod rollout;
pub mod rolloutplugin;
mod schema;

pub use self::names::{InvalidName, ObjectName};
pub use self::problem::Problem;

/// All served definitions, to apply to a cluster. Parsed from the generated files, because generating them takes longer than a plan.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    #[derive(serde::Deserialize)]
    struct List {
        items: Vec<CustomResourceDefinition>,
    }

    let made: Result<List, _> = serde_json::from_str(include_str!("../data/definitions.json"));
    made.map_or_else(|_| made_definitions(), |list| list.items)
}

/// The same definitions, generated from the types.
pub fn made_definitions() -> Vec<CustomResourceDefinition> {
    let analysis = analysis::definitions();
    [rolloutplugin::definition(), phasedrollout::definition()]
        .into_iter()
        .chain(analysis)
        .map(schema::limited)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_that_are_read_are_those_of_the_types() {
        assert!(
            definitions() == made_definitions(),
            "crates/api/data/definitions.json is stale; make it again with: cargo xtask generate manifests"
        );
    }
}
