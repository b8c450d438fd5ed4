//! A patch that cannot be applied, with the answer the real server gives.

use crate::json::json;

use crate::status::Status;

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum PatchError {
    /// 400: the patch is not a patch.
    #[error("{0}")]
    BadRequest(String),
    /// 413: too many operations.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// 422: the patch does not fit the object. The client never sees why; the text is for us.
    #[error("{0}")]
    DoesNotApply(String),
    /// 500 without a reason: upstream hands these errors on as they come.
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
