//! ConfigMaps and Secrets.

use crate::json::Value;
use base64::Engine;

use super::metadata;
use crate::builtin::fields::{entries, flag, has, same, text};
use crate::builtin::problems::{At, IMMUTABLE, Problems};
use crate::names;

/// The limit for all values of one object together, in bytes.
const LIMIT: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(crate) fn config_map(object: &Value, problems: &mut Problems) {
    metadata::of_kind("configmaps", object, problems);
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        let at = At::new("data");
        let at = at.key(key);
        problems.invalid_for(&at, key, names::config_key(key));
        if has(&object["binaryData"], key) {
            problems.invalid(&at, key, "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(object, "binaryData") {
        problems.invalid_for(&At::new("binaryData").key(key), key, names::config_key(key));
        size += decoded(value).len();
    }
    if size > LIMIT {
        // No field in particular.
        problems.too_long(&At::new("[]"), LIMIT);
    }
}

fn decoded(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap_or_default()
}

pub(crate) fn config_map_update(old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind("configmaps", old, new, problems);
    frozen(old, new, &["data", "binaryData"], problems);
    config_map(new, problems);
}

fn frozen(old: &Value, new: &Value, fields: &[&str], problems: &mut Problems) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        problems.forbidden(&At::new("immutable"), FROZEN);
    }
    for name in fields {
        if !same(&old[name], &new[name]) {
            problems.forbidden(&At::new(name), FROZEN);
        }
    }
}

pub(crate) fn secret(object: &Value, problems: &mut Problems) {
    metadata::of_kind("secrets", object, problems);
    let (at, data) = (At::new("data"), &object["data"]);
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        problems.invalid_for(&at.key(key), key, names::config_key(key));
        size += decoded(value).len();
    }
    if size > LIMIT {
        problems.too_long(&at, LIMIT);
    }
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            if text(&object["metadata"]["annotations"], NAME).is_empty() {
                problems.required(&At::new("metadata.annotations").key(NAME), "");
            }
        }
        "kubernetes.io/dockercfg" => registry(&at, data, ".dockercfg", problems),
        "kubernetes.io/dockerconfigjson" => registry(&at, data, ".dockerconfigjson", problems),
        "kubernetes.io/basic-auth" if !has(data, "username") && !has(data, "password") => {
            problems.required(&at.key("username"), "");
            problems.required(&at.key("password"), "");
        }
        "kubernetes.io/ssh-auth" if text(data, "ssh-privatekey").is_empty() => {
            problems.required(&at.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|key| !has(data, key)) {
                problems.required(&at.key(key), "");
            }
        }
        _ => {}
    }
}

fn registry(at: &At, data: &Value, key: &str, problems: &mut Problems) {
    if !has(data, key) {
        return problems.required(&at.key(key), "");
    }
    let content = decoded(&data[key]);
    if let Err(error) = serde_json::from_slice::<crate::json::Map>(&content) {
        // The text of the parse error is our parser's, not Go's.
        problems.invalid(&at.key(key), "<secret contents redacted>", &error.to_string());
    }
}

pub(crate) fn secret_update(old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind("secrets", old, new, problems);
    if text(old, "type") != text(new, "type") {
        problems.invalid(&At::new("type"), text(new, "type"), IMMUTABLE);
    }
    frozen(old, new, &["data"], problems);
    secret(new, problems);
}
