//! The CustomResourceDefinitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::{AnalysisRun, AnalysisTemplate, ClusterAnalysisTemplate};
use crate::schema::{column, wide_column};

/// The definitions to apply to a cluster.
pub fn definitions() -> [CustomResourceDefinition; 3] {
    let age = || column("Age", "date", ".metadata.creationTimestamp");
    let mut run = AnalysisRun::crd();
    for version in &mut run.spec.versions {
        // No status subresource, like Argo's definition: see the module's doc.
        version.subresources = None;
        version.additional_printer_columns = Some(vec![
            column("Status", "string", ".status.phase"),
            age(),
            wide_column("Message", "string", ".status.message"),
        ]);
    }
    let mut templates = [AnalysisTemplate::crd(), ClusterAnalysisTemplate::crd()];
    for version in templates.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        version.additional_printer_columns = Some(vec![age()]);
    }
    let [template, cluster_template] = templates;
    let mut all = [template, cluster_template, run];
    for definition in &mut all {
        definition.spec.names.categories = Some(vec!["stateward".into()]);
    }
    all
}
