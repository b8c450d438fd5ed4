//! What GraphQL answers: data, or errors with messages.

use serde::Deserialize;
use serde_json::Value;

use crate::json;
use crate::said::shown;
use crate::{AskError, Veil};

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Value,
    #[serde(default)]
    errors: Option<Vec<Trouble>>,
}

#[derive(Deserialize)]
struct Trouble {
    #[serde(default)]
    message: String,
}

/// The data. The message of the first error is shown without what `veil` hides.
pub(crate) fn data(origin: &str, body: &[u8], veil: &Veil) -> Result<Value, AskError> {
    let answer: Answer = json::read(body, json::DOCUMENT)
        .map_err(|unread| unread.of(origin, "GraphQL's JSON with data or errors"))?;
    match answer.errors.unwrap_or_default().first() {
        Some(trouble) => Err(AskError::QueryFailed {
            origin: origin.to_owned(),
            said: shown(&trouble.message, veil),
        }),
        None => Ok(answer.data),
    }
}
