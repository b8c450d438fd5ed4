//! Volumes of a pod.

use crate::json::Value;

use super::container::PULL_POLICIES;
use super::{claim, env, legacy_volume};
use crate::builtin::fields::{has, int, items, text};
use crate::builtin::problems::{At, Problems};
use crate::names;
use stateward_schema::Quantity;

/// The sources of a volume, in the order in which upstream checks them.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];
const PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Checks the volumes of a pod and returns the valid ones. `pod` is its name, empty for a template.
pub(crate) fn volumes<'v>(
    at: &At,
    spec: &'v Value,
    pod: Option<&str>,
    problems: &mut Problems,
) -> Vec<&'v Value> {
    let mut fine: Vec<&Value> = Vec::new();
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let at = at.index(index);
        let name = text(volume, "name");
        let before = problems.len();
        source(&at, volume, pod, problems);
        if name.is_empty() {
            problems.required(&at.field("name"), "");
        } else {
            problems.invalid_for(&at.field("name"), name, names::dns_label(name));
        }
        if fine.iter().any(|known| text(known, "name") == name) {
            problems.duplicate(&at.field("name"), name);
        }
        if problems.len() == before {
            fine.push(volume);
        }
    }
    fine
}

fn source(at: &At, volume: &Value, pod: Option<&str>, problems: &mut Problems) {
    let mut found = false;
    for name in SOURCES.into_iter().filter(|name| has(volume, name)) {
        let (inner, it) = (at.field(name), &volume[name]);
        if found {
            problems.forbidden(&inner, "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        match name {
            "emptyDir" if Quantity::of(it["sizeLimit"].as_str()).is_negative() => {
                problems.forbidden(
                    &inner.field("sizeLimit"),
                    "SizeLimit field must be a valid resource quantity",
                );
            }
            "hostPath" => host_path(&inner, it, problems),
            "secret" => files(&inner, it, "secretName", problems),
            "configMap" => files(&inner, it, "name", problems),
            "nfs" => nfs(&inner, it, problems),
            "persistentVolumeClaim" => required(&inner, it, "claimName", problems),
            "downwardAPI" => {
                mode(&inner.field("defaultMode"), it, "defaultMode", problems);
                items(it, "items")
                    .iter()
                    .for_each(|file| downward_file(&inner, file, problems));
            }
            "projected" => projected(&inner, it, problems),
            "csi" => driver(&inner.field("driver"), text(it, "driver"), problems),
            "ephemeral" => ephemeral(at, volume, pod, problems),
            "image" => {
                if pod.is_some() {
                    required(&inner, it, "reference", problems);
                }
                problems.choice(&inner.field("pullPolicy"), text(it, "pullPolicy"), &PULL_POLICIES);
            }
            kind => legacy_volume::validate(&inner, kind, it, problems),
        }
    }
    if !found {
        problems.required(at, "must specify a volume type");
    }
}

fn required(at: &At, object: &Value, name: &str, problems: &mut Problems) {
    if text(object, name).is_empty() {
        problems.required(&at.field(name), "");
    }
}

fn host_path(at: &At, source: &Value, problems: &mut Problems) {
    let path = text(source, "path");
    if path.is_empty() {
        return problems.required(&at.field("path"), "");
    }
    backsteps(&at.field("path"), path, problems);
    if !PATH_TYPES.contains(&text(source, "type")) {
        problems.not_supported(&at.field("type"), text(source, "type"), &PATH_TYPES);
    }
}

/// A path with `..` is reported once.
pub(crate) fn backsteps(at: &At, path: &str, problems: &mut Problems) {
    if path.split('/').any(|part| part == "..") {
        problems.invalid(at, path, "must not contain '..'");
    }
}

fn nfs(at: &At, source: &Value, problems: &mut Problems) {
    required(at, source, "server", problems);
    required(at, source, "path", problems);
    if !text(source, "path").starts_with('/') {
        problems.invalid(
            &at.field("path"),
            text(source, "path"),
            "must be an absolute path",
        );
    }
}

/// A Secret or ConfigMap as files.
fn files(at: &At, source: &Value, name: &str, problems: &mut Problems) {
    required(at, source, name, problems);
    mode(&at.field("defaultMode"), source, "defaultMode", problems);
    for (index, item) in items(source, "items").iter().enumerate() {
        key_to_path(&at.field("items").index(index), item, problems);
    }
}

fn mode(at: &At, object: &Value, name: &str, problems: &mut Problems) {
    if let Some(mode) = int(object, name).filter(|mode| !(0..=0o777).contains(mode)) {
        problems.invalid(at, mode, MODE);
    }
}

fn key_to_path(at: &At, item: &Value, problems: &mut Problems) {
    required(at, item, "key", problems);
    required(at, item, "path", problems);
    file_path(&at.field("path"), text(item, "path"), problems);
    mode(&at.field("mode"), item, "mode", problems);
}

/// A path inside the volume that does not clash with the volume's reserved names.
fn file_path(at: &At, path: &str, problems: &mut Problems) {
    if path.starts_with('/') {
        problems.invalid(at, path, "must be a relative path");
    }
    backsteps(at, path, problems);
    // One error is enough for a path of only `..`.
    if path.starts_with("..") && !path.starts_with("../") {
        problems.invalid(at, path, "must not start with '..'");
    }
}

/// Upstream reports the volume here, not the file.
fn downward_file(at: &At, file: &Value, problems: &mut Problems) {
    required(at, file, "path", problems);
    file_path(&at.field("path"), text(file, "path"), problems);
    if has(file, "fieldRef") {
        env::file_field(&at.field("fieldRef"), &file["fieldRef"], problems);
        if has(file, "resourceFieldRef") {
            problems.invalid(
                at,
                "resource",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            );
        }
    } else if has(file, "resourceFieldRef") {
        let reference = &file["resourceFieldRef"];
        env::resource_field(&at.field("resourceFieldRef"), reference, true, problems);
    } else {
        problems.required(at, "one of fieldRef and resourceFieldRef is required");
    }
    mode(&at.field("mode"), file, "mode", problems);
}

fn projected(at: &At, source: &Value, problems: &mut Problems) {
    mode(&at.field("defaultMode"), source, "defaultMode", problems);
    let mut taken: Vec<&str> = Vec::new();
    for (index, one) in items(source, "sources").iter().enumerate() {
        let one_at = at.field("sources");
        let one_at = one_at.index(index);
        for name in ["secret", "configMap"].into_iter().filter(|name| has(one, name)) {
            let (inner, it) = (one_at.field(name), &one[name]);
            required(&inner, it, "name", problems);
            for (index, item) in items(it, "items").iter().enumerate() {
                key_to_path(&inner.field("items").index(index), item, problems);
                clash(at, text(item, "path"), text(it, "name"), &mut taken, problems);
            }
        }
        for file in items(&one["downwardAPI"], "items") {
            downward_file(&one_at.field("downwardAPI"), file, problems);
            let path = text(file, "path");
            clash(at, path, path, &mut taken, problems);
        }
        if has(one, "serviceAccountToken") {
            token(
                at,
                &one_at.field("serviceAccountToken"),
                &one["serviceAccountToken"],
                problems,
            );
        }
        let kinds = [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ];
        if kinds.into_iter().filter(|name| has(one, name)).count() > 1 {
            problems.forbidden(&one_at, "may not specify more than 1 volume type per source");
        }
    }
}

/// No file may be written twice.
fn clash<'v>(at: &At, path: &'v str, shown: &str, taken: &mut Vec<&'v str>, problems: &mut Problems) {
    if taken.contains(&path) {
        problems.invalid(at, shown, "conflicting duplicate paths");
    } else if !path.is_empty() {
        taken.push(path);
    }
}

fn token(volume: &At, at: &At, token: &Value, problems: &mut Problems) {
    let seconds = int(token, "expirationSeconds").unwrap_or_default();
    let seconds_at = at.field("expirationSeconds");
    if seconds < 600 {
        problems.invalid(
            &seconds_at,
            seconds,
            "may not specify a duration less than 10 minutes",
        );
    }
    if seconds > 1 << 32 {
        problems.invalid(
            &seconds_at,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
    let path = text(token, "path");
    if path.is_empty() {
        problems.required(&volume.field("path"), "");
    } else {
        file_path(&volume.field("path"), path, problems);
    }
}

fn driver(at: &At, name: &str, problems: &mut Problems) {
    if name.is_empty() {
        return problems.required(at, "");
    }
    if name.len() > 63 {
        problems.too_long(at, 63);
    }
    problems.invalid_for(at, name, names::dns_subdomain(&name.to_lowercase()));
}

fn ephemeral(at: &At, volume: &Value, pod: Option<&str>, problems: &mut Problems) {
    let inner = at.field("ephemeral");
    let inner = inner.field("volumeClaimTemplate");
    let source = &volume["ephemeral"];
    if has(source, "volumeClaimTemplate") {
        claim::spec(
            &inner.field("spec"),
            &source["volumeClaimTemplate"]["spec"],
            problems,
        );
    } else {
        problems.required(&inner, "");
    }
    let (Some(pod), name) = (pod, text(volume, "name")) else {
        return;
    };
    if pod.is_empty() || name.is_empty() {
        return;
    }
    let claim = format!("{pod}-{name}");
    for complaint in names::dns_subdomain(&claim) {
        problems.invalid(
            &at.field("name"),
            name,
            &format!("PVC name {claim:?}: {complaint}"),
        );
    }
}
