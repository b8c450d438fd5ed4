//! A PhasedRollout without `successOn`: the default depends on who managed the object before, which no manifest shows.

use stateward_api::phasedrollout::PEER_FINALIZER;

use super::neighbours::is_left_to_kubernetes;
use super::{Document, Finding, Severity};

/// A note that `spec.check.successOn` is missing, with the consequences.
pub(super) fn finding(document: &Document) -> Option<Finding> {
    let value = &document.value;
    let check = &value["spec"]["check"];
    let asks = document.text("/kind") == "PhasedRollout" && check.is_object();
    if !asks || !check["successOn"].is_null() || is_left_to_kubernetes(document) {
        return None;
    }
    let mut finalizers = value["metadata"]["finalizers"].as_array().into_iter().flatten();
    let is_taken_over =
        finalizers.any(|finalizer| finalizer == PEER_FINALIZER) || value["status"]["takenOver"] == true;
    let message = if is_taken_over {
        "is missing: on this object returned data is a success, because sts-plus-operator has managed it (its finalizer \
         sts.plus/finalizer, or status.takenOver); on a new object no data is; write Data or NoData"
    } else {
        "is missing: no data is a success, but on an object that sts-plus-operator has managed (its finalizer sts.plus/finalizer, or \
         status.takenOver) returned data is; write NoData or Data"
    };
    Some(document.finding(Severity::Warning, "spec.check.successOn", message))
}
