//! The status that the server sets on a CRD: the accepted names, and that its objects are served.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::definition::{Names, is_storage};
use super::schema::{text, texts};

/// The status of a CRD, given the other CRDs: names that another one of its group has are not accepted.
///
/// A condition that has not changed keeps its transition time, and an established CRD stays established.
pub(crate) fn crd_status(crd: &Value, others: &[&Value], now: Timestamp) -> Value {
    let wanted = Names::read(&crd["spec"]["names"]);
    let (accepted, conflict) = accept(wanted, crd, others);
    let before = &crd["status"];
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let condition = |kind: &str, (status, reason, message): (&str, &str, &str)| {
        let old = before["conditions"].as_array().into_iter().flatten();
        let old = old
            .into_iter()
            .find(|old| old["type"] == kind && old["status"] == status);
        let since = old.map_or(json!(now), |old| old["lastTransitionTime"].clone());
        json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
    };
    let was_established = before["conditions"].as_array().into_iter().flatten();
    let was_established = was_established
        .into_iter()
        .any(|c| c["type"] == "Established" && c["status"] == "True");
    let names = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    let established = match &conflict {
        Some(_) if !was_established => ("False", "NotAccepted", "not all names are accepted"),
        _ => (
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
    };
    json!({
        "conditions": [condition("NamesAccepted", names), condition("Established", established)],
        "acceptedNames": to_value(&accepted),
        "storedVersions": stored_versions(crd),
    })
}

/// The accepted names of a CRD, and the last conflict.
fn accept(wanted: Names, crd: &Value, others: &[&Value]) -> (Names, Option<(&'static str, String)>) {
    let present = &crd["status"]["acceptedNames"];
    let others = others.iter().filter(|other| {
        other["spec"]["group"] == crd["spec"]["group"] && other["metadata"]["name"] != crd["metadata"]["name"]
    });
    let taken: Vec<_> = others.map(|other| &other["status"]["acceptedNames"]).collect();
    let has = |fields: &[&str], name: &str| {
        taken
            .iter()
            .any(|names| fields.iter().any(|field| names[*field] == name) && !name.is_empty())
    };
    let is_resource = |name: &str| {
        let short = taken.iter().flat_map(|names| texts(names, "shortNames"));
        has(&["plural", "singular"], name) || short.into_iter().any(|short| short == name)
    };
    let is_kind = |name: &str| has(&["kind", "listKind"], name);

    let Names {
        plural,
        singular,
        kind,
        list_kind,
        short_names,
        categories,
    } = wanted;
    let mut conflicts = Vec::new();
    let mut settle = |wanted: String, field: &str, is_taken: &dyn Fn(&str) -> bool, reason: &'static str| {
        let present = text(present, field);
        if wanted == present || !is_taken(&wanted) {
            return wanted;
        }
        conflicts.push((reason, in_use(&wanted)));
        present
    };
    let plural = settle(plural, "plural", &is_resource, "PluralConflict");
    let singular = settle(singular, "singular", &is_resource, "SingularConflict");
    let kind = settle(kind, "kind", &is_kind, "KindConflict");
    let list_kind = settle(list_kind, "listKind", &is_kind, "ListKindConflict");

    let mine = texts(present, "shortNames");
    let clashes = short_names
        .iter()
        .filter(|name| !mine.contains(name) && is_resource(name));
    let clashes: Vec<_> = clashes.map(|name| in_use(name)).collect();
    let short_names = if clashes.is_empty() { short_names } else { mine };
    // Of several conflicts the last is reported; short names come before kinds.
    let told = match (conflicts.pop(), clashes.as_slice()) {
        (conflict, []) => conflict,
        (Some(conflict @ ("KindConflict" | "ListKindConflict", _)), _) => Some(conflict),
        (_, [one]) => Some(("ShortNamesConflict", one.clone())),
        (_, several) => Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    };
    (
        Names {
            plural,
            singular,
            kind,
            list_kind,
            short_names,
            categories,
        },
        told,
    )
}

fn in_use(name: &str) -> String {
    format!("\"{name}\" is already in use")
}

fn to_value(names: &Names) -> Value {
    let Names {
        plural,
        singular,
        kind,
        list_kind,
        short_names,
        categories,
    } = names;
    let mut accepted = json!({"plural": plural, "kind": kind});
    for (field, name) in [("singular", singular), ("listKind", list_kind)] {
        if !name.is_empty() {
            accepted[field] = json!(name);
        }
    }
    for (field, names) in [("shortNames", short_names), ("categories", categories)] {
        if !names.is_empty() {
            accepted[field] = json!(names);
        }
    }
    accepted
}

/// Every version that was ever the storage version, the current one last.
fn stored_versions(crd: &Value) -> Value {
    let mut stored: Vec<Value> = crd["status"]["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array();
    if let Some(storage) = versions.into_iter().flatten().find(|version| is_storage(version))
        && !stored.contains(&storage["name"])
    {
        stored.push(storage["name"].clone());
    }
    stored.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_crd_is_established_with_the_names_it_asked_for() {
        let crd = json!({"spec": {
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        }});
        let now = "2026-11-15T17:46:59.5Z".parse().unwrap();
        // As Kubernetes v1.36.3 wrote it.
        let expected = json!({
            "conditions": [
                {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2026-11-15T17:46:59Z",
                    "reason": "NoConflicts", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "lastTransitionTime": "2026-11-15T17:46:59Z",
                    "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
            ],
            "acceptedNames": {"plural": "widgets", "singular": "widget", "shortNames": ["wd"], "kind": "Widget",
                "listKind": "WidgetList", "categories": ["all"]},
            "storedVersions": ["v1"],
        });
        assert_eq!(crd_status(&crd, &[], now), expected);

        let mut updated = crd;
        updated["status"] = expected.clone();
        let later = "2026-12-01T00:00:00Z".parse().unwrap();
        assert_eq!(
            crd_status(&updated, &[], later),
            expected,
            "an established CRD keeps its times"
        );
    }

    #[test]
    fn names_that_another_crd_has_are_not_accepted() {
        let other = json!({"metadata": {"name": "gears.example.com"}, "spec": {"group": "example.com"}, "status": {
            "acceptedNames": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
        }});
        let crd = json!({"metadata": {"name": "cogs.example.com"}, "spec": {
            "group": "example.com", "names": {"plural": "cogs", "singular": "gear", "kind": "Gear", "shortNames": ["gears"]},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        }});
        let now = "2026-11-15T18:24:19Z".parse().unwrap();
        // As Kubernetes v1.36.3 wrote it.
        let expected = json!({
            "conditions": [
                {"type": "NamesAccepted", "status": "False", "lastTransitionTime": "2026-11-15T18:24:19Z",
                    "reason": "ListKindConflict", "message": "\"GearList\" is already in use"},
                {"type": "Established", "status": "False", "lastTransitionTime": "2026-11-15T18:24:19Z",
                    "reason": "NotAccepted", "message": "not all names are accepted"},
            ],
            "acceptedNames": {"plural": "cogs", "kind": ""},
            "storedVersions": ["v1"],
        });
        assert_eq!(crd_status(&crd, &[&other], now), expected);
    }
}
