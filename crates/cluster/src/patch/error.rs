//! Errors of a patch, with the real server's answers.

use crate::json::json;

use crate::status::Status;

/// Why a patch was rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum PatchError {
    /// 400: the patch is malformed.
    #[error("{0}")]
    BadRequest(String),
    /// 413: too many operations.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// 422: the patch does not fit the object. The client does not see this text.
    #[error("{0}")]
    DoesNotApply(String),
    /// 500 without a reason: upstream returns these errors as they are.
    #[error("{0}")]
    Internal(String),
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Self {
        let message = error.to_string();
        match error {
            PatchError::BadRequest(_) => Self {
                code: 400,
                reason: "BadRequest",
                message,
                details: None,
                warnings: Vec::new(),
            },
            PatchError::TooLarge(_) => Self {
                code: 413,
                reason: "RequestEntityTooLarge",
                message,
                details: None,
                warnings: Vec::new(),
            },
            PatchError::DoesNotApply(_) => Self {
                code: 422,
                reason: "Invalid",
                message: "the server rejected our request due to an error in our request".to_owned(),
                details: Some(json!({})),
                warnings: Vec::new(),
            },
            PatchError::Internal(_) => Self {
                code: 500,
                reason: "",
                message,
                details: None,
                warnings: Vec::new(),
            },
        }
    }
}
