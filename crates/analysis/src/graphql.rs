//! What GraphQL answers: data, or errors with messages.

use serde::Deserialize;
use serde_json::Value;

use crate::AskError;
use crate::json;
use crate::said::shown;

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

/// The data. The message of the first error is shown without `secrets`.
pub(crate) fn data(origin: &str, body: &[u8], secrets: &[&str]) -> Result<Value, AskError> {
    let answer: Answer = json::read(body, json::DOCUMENT)
        .map_err(|unread| unread.of(origin, "GraphQL's JSON with data or errors"))?;
    match answer.errors.unwrap_or_default().first() {
        Some(trouble) => Err(AskError::QueryFailed {
            origin: origin.to_owned(),
            said: shown(&trouble.message, secrets),
        }),
        None => Ok(answer.data),
    }
}
