//! Secrets and ServiceAccounts.

use crate::json::Value;
use base64::Engine;

use super::fields::{copy, each, fill_text, made, set, text, unset};

pub(super) fn default_secret(object: &mut Value) {
    fill_text(object, "type", "Opaque");
    // Plain text goes into the data and is not stored.
    let Some(Value::Object(plain)) = unset(object, "stringData") else {
        return;
    };
    let Some(data) = made(object, "data").filter(|_| !plain.is_empty()) else {
        return;
    };
    for (key, value) in plain {
        let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
        set(data, &key, encoded);
    }
}

pub(super) fn prepare_update_secret(old: &Value, new: &mut Value) {
    if text(new, "type").is_empty() {
        copy(old, new, "type");
    }
}

/// Of a reference to a secret only its name is stored.
pub(super) fn prepare_service_account(object: &mut Value) {
    for secret in each(object, "secrets") {
        if let Value::Object(fields) = secret {
            fields.retain(|name, _| name == "name");
        }
    }
}
