//! Errors of an apply, above all conflicts with other managers.

use crate::json::json;

use super::element::Element;
use super::managers::Id;
use crate::status::Status;

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conflict {
    /// `.spec.template.spec.containers[name="c"].image`
    pub(crate) field: String,
    /// `"kubectl-client-side-apply" using apps/v1`
    pub(crate) manager: String,
}

/// Why an apply was rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    #[error("{0}")]
    BadRequest(String),
    /// 500 without a reason: upstream returns these errors as they are.
    #[error("{0}")]
    Internal(String),
}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Self {
        let message = error.to_string();
        match error {
            ApplyError::BadRequest(_) => Self {
                code: 400,
                reason: "BadRequest",
                message,
                details: None,
                warnings: Vec::new(),
            },
            ApplyError::Internal(_) => Self {
                code: 500,
                reason: "",
                message,
                details: None,
                warnings: Vec::new(),
            },
            ApplyError::Conflicts(conflicts) => {
                let cause = |conflict: Conflict| {
                    let message = format!("conflict with {}", conflict.manager);
                    json!({"reason": "FieldManagerConflict", "message": message, "field": conflict.field})
                };
                let causes: Vec<_> = conflicts.into_iter().map(cause).collect();
                Self {
                    code: 409,
                    reason: "Conflict",
                    message,
                    details: Some(json!({"causes": causes})),
                    warnings: Vec::new(),
                }
            }
        }
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [Conflict { field, manager }] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {field}");
    }
    let mut lines = Vec::new();
    for (index, Conflict { field, manager }) in conflicts.iter().enumerate() {
        let is_first = index
            .checked_sub(1)
            .is_none_or(|before| conflicts[before].manager != *manager);
        if is_first {
            lines.push(format!("conflicts with {manager}:"));
        }
        lines.push(format!("- {field}"));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}

/// Paths that other managers own.
pub(super) type Found = Vec<(Id, Vec<Element>)>;

pub(super) fn conflicts(found: Found) -> ApplyError {
    let conflict = |(id, path): (Id, Vec<Element>)| Conflict {
        field: path.iter().map(Element::to_string).collect(),
        manager: id.to_string(),
    };
    ApplyError::Conflicts(found.into_iter().map(conflict).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of the real server for three conflicts with two managers.
    #[test]
    fn conflicts_are_listed_by_manager() {
        let conflict = |manager: &str, field: &str| Conflict {
            field: field.to_owned(),
            manager: manager.to_owned(),
        };
        let conflicts = [
            conflict("\"one\"", ".spec.replicas"),
            conflict("\"one\"", ".spec.template.spec.containers[name=\"a\"].image"),
            conflict(
                "\"upd\" using apps/v1",
                ".spec.template.spec.terminationGracePeriodSeconds",
            ),
        ];
        assert_eq!(
            ApplyError::Conflicts(conflicts.to_vec()).to_string(),
            "Apply failed with 3 conflicts: conflicts with \"one\":\n- .spec.replicas\n\
             - .spec.template.spec.containers[name=\"a\"].image\nconflicts with \"upd\" using apps/v1:\n\
             - .spec.template.spec.terminationGracePeriodSeconds"
        );
    }
}
