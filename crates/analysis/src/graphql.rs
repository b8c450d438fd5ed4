//! GraphQL responses: data, or errors with messages.

use serde::Deserialize;
use serde_json::Value;

use crate::json;
use crate::said::shown;
use crate::{ProviderError, Redactor};

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

/// Extracts the data. The message of the first error is redacted.
pub(crate) fn data(origin: &str, body: &[u8], redactor: &Redactor) -> Result<Value, ProviderError> {
    let answer: Answer = json::read(body, json::DOCUMENT)
        .map_err(|unread| unread.of(origin, "GraphQL's JSON with data or errors"))?;
    match answer.errors.unwrap_or_default().first() {
        Some(trouble) => Err(ProviderError::QueryFailed {
            origin: origin.to_owned(),
            said: shown(&trouble.message, redactor),
        }),
        None => Ok(answer.data),
    }
}
