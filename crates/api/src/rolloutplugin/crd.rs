//! The CustomResourceDefinition: the types' schema, plus what attributes cannot express.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

use super::RolloutPlugin;
use crate::schema::{at, column, rule, served, wide_column};

/// The definition to apply to a cluster.
pub fn definition() -> CustomResourceDefinition {
    served(RolloutPlugin::crd(), &columns(), |schema| {
        let steps = at(schema, &["spec", "strategy", "canary", "steps"]);
        if let Some(JSONSchemaPropsOrArray::Schema(step)) = steps.and_then(|steps| steps.items.as_mut()) {
            step.x_kubernetes_validations = rule(
                "[has(self.setWeight), has(self.pause), has(self.analysis)].filter(x, x).size() == 1",
                "a step has exactly one of setWeight, pause and analysis",
            );
        }
    })
}

fn columns() -> Vec<CustomResourceColumnDefinition> {
    vec![
        column("Status", "string", ".status.phase"),
        column("Reason", "string", ".status.reason"),
        column("Step", "string", ".status.step"),
        column("Replicas", "integer", ".status.replicas"),
        column("Updated", "integer", ".status.updatedReplicas"),
        column("Ready", "integer", ".status.readyReplicas"),
        column("Age", "date", ".metadata.creationTimestamp"),
        wide_column("Workload", "string", ".spec.workloadRef.name"),
        wide_column("Plugin", "string", ".spec.plugin.name"),
        wide_column("Stable", "string", ".status.stableRevision"),
        wide_column("Message", "string", ".status.message"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_says_what_a_step_may_have() {
        let mut definition = definition();
        let schema = definition.spec.versions[0].schema.as_mut().unwrap();
        let steps = at(
            schema.open_api_v3_schema.as_mut().unwrap(),
            &["spec", "strategy", "canary", "steps"],
        );
        let Some(JSONSchemaPropsOrArray::Schema(step)) = &steps.unwrap().items else {
            panic!("steps have one schema");
        };
        assert_eq!(step.x_kubernetes_validations.as_ref().map(Vec::len), Some(1));
        let weight = &step.properties.as_ref().unwrap()["setWeight"];
        assert_eq!((weight.minimum, weight.maximum), (Some(0.0), Some(100.0)));
    }
}
