//! `-f`: the rollouts of a manifest.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;
use crate::input::name::Name;

/// The text of a file; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| Error::Refused(format!("cannot read {}: {error}", path.display())))
}

/// The manifests under a path: itself, or the YAML and JSON files of a directory, sorted.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut unread = Vec::new();
    let found = walk(path, false, &mut unread)?;
    unread.pop().map_or(Ok(found), Err)
}

/// The manifests under a path, optionally of its subdirectories, and the errors for what cannot be read. As with kubectl, links to
/// directories are not followed, because they may form a cycle.
pub(crate) fn walk(path: &Path, recursive: bool, unread: &mut Vec<Error>) -> Result<Vec<PathBuf>, Error> {
    if path == Path::new("-") || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let refused = |error: std::io::Error| Error::Refused(format!("cannot read {}: {error}", path.display()));
    let mut inside = Vec::new();
    for entry in std::fs::read_dir(path).map_err(refused)? {
        inside.push(entry.map_err(refused)?.path());
    }
    inside.sort();
    let mut found = Vec::new();
    for path in inside {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            if recursive && !path.is_symlink() {
                match walk(&path, recursive, unread) {
                    Ok(more) => found.extend(more),
                    Err(error) => unread.push(error),
                }
            }
        } else if matches!(ending, Some("yaml" | "yml" | "json")) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The rollouts of a manifest: those in it, and those of StatefulSets in it that no rollout in the manifest refers to.
pub(crate) fn names(path: &Path, namespace: &str) -> Result<Vec<Name>, Error> {
    let (mut rollouts, mut sets, mut covered) = (Vec::new(), Vec::new(), Vec::new());
    for file in files(path)? {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&read(&file)?)
            .map_err(|error| Error::Refused(format!("{}: {error}", file.display())))?;
        for object in documents {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let Some(name) = text("/metadata/name") else {
                continue;
            };
            if let Some(theirs) = text("/metadata/namespace").filter(|theirs| *theirs != namespace) {
                return Err(Error::Refused(format!(
                    "{}: {name} is in namespace {theirs}, not in {namespace}; say -n {theirs}",
                    file.display()
                )));
            }
            let kind = text("/kind").unwrap_or_default();
            match kind {
                "RolloutPlugin" => covered.extend(text("/spec/workloadRef/name").map(str::to_owned)),
                "PhasedRollout" => covered.extend(text("/spec/targetRef").map(str::to_owned)),
                "StatefulSet" => {}
                _ => continue,
            }
            let parsed: Result<Name, _> = format!("{kind}/{name}").parse();
            let parsed = parsed.map_err(Error::Refused)?;
            if parsed.is_of_a_set() {
                sets.push(parsed);
            } else {
                rollouts.push(parsed);
            }
        }
    }
    sets.retain(|set| !covered.iter().any(|name| name == set.as_str()));
    rollouts.extend(sets);
    if rollouts.is_empty() {
        return Err(Error::Refused(format!(
            "{} has no RolloutPlugin, PhasedRollout or StatefulSet in it",
            path.display()
        )));
    }
    Ok(rollouts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_rollouts_and_the_sets_that_none_of_them_is_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("all.yaml");
        let text = "\
kind: StatefulSet
metadata: {name: db}
---
kind: RolloutPlugin
metadata: {name: db-rollout, namespace: prod}
spec: {workloadRef: {name: db}}
---
kind: Service
metadata: {name: db}
---
kind: StatefulSet
metadata: {name: cache}
";
        std::fs::write(&file, text).unwrap();
        let titles: Vec<_> = names(&file, "prod").unwrap().iter().map(Name::title).collect();
        assert_eq!(titles, ["rolloutplugin db-rollout", "statefulset cache"]);
        let refused = names(&file, "test").unwrap_err().to_string();
        assert!(
            refused.ends_with("db-rollout is in namespace prod, not in test; say -n prod"),
            "{refused}"
        );
    }
}
