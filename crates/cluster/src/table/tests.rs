//! Compares with the tables of a real server for the same objects.

use std::sync::LazyLock;

use crate::json::{Value, json};
use proptest::prelude::*;

use super::*;

static GOLDEN: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("testdata/tables.json")).unwrap());

/// Each recorded table, with its custom type if it has one.
static TABLES: LazyLock<Vec<(&Value, Option<CustomType>)>> = LazyLock::new(|| {
    let tables = GOLDEN["tables"].as_array().unwrap().iter();
    tables
        .map(|table| {
            (
                table,
                table.get("crd").map(|crd| CustomType::from_crd(crd).unwrap()),
            )
        })
        .collect()
});

#[test]
fn tables_are_the_real_servers() {
    for (recorded, custom) in TABLES.iter() {
        let resource = recorded["resource"].as_str().unwrap();
        let now: Timestamp = recorded["now"].as_str().unwrap().parse().unwrap();
        let rows = recorded["rows"].as_array().unwrap();
        let objects: Vec<_> = rows.iter().map(|row| &row["object"]).collect();

        let table = render(resource, &objects, custom.as_ref(), now, IncludeObject::Metadata);

        let columns: Vec<_> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| {
                json!([
                    column["name"],
                    column["type"],
                    column["format"],
                    column["priority"]
                ])
            })
            .collect();
        assert_eq!(json!(columns), recorded["columns"], "columns of {resource}");
        assert_eq!(table["rows"].as_array().unwrap().len(), rows.len());
        for (made, recorded) in table["rows"].as_array().unwrap().iter().zip(rows) {
            let name = &recorded["object"]["metadata"]["name"];
            assert_eq!(made["cells"], recorded["cells"], "{resource} {name}");
            assert_eq!(
                made.get("conditions"),
                recorded.get("conditions"),
                "{resource} {name}"
            );
            assert_eq!(made["object"]["metadata"], recorded["object"]["metadata"]);
        }
    }
}

#[test]
fn a_row_shows_as_much_of_its_object_as_was_asked() {
    let object = json!({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}});
    let shown = |include| {
        render("configmaps", &[&object], None, Timestamp::UNIX_EPOCH, include)["rows"][0]["object"].clone()
    };
    let partial =
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "m"}});
    assert_eq!(shown(IncludeObject::Metadata), partial);
    assert_eq!(shown(IncludeObject::Object), object);
    assert_eq!(shown(IncludeObject::None), Value::Null);
    let table = render(
        "configmaps",
        &[&object],
        None,
        Timestamp::UNIX_EPOCH,
        IncludeObject::None,
    );
    assert_eq!(without_columns(table)["columnDefinitions"], Value::Null);
}

/// Objects with some of their parts replaced by arbitrary values.
fn damaged() -> impl Strategy<Value = Value> {
    let objects: Vec<Value> = TABLES
        .iter()
        .flat_map(|(table, _)| {
            table["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["object"].clone())
        })
        .collect();
    let scalar = prop_oneof![
        Just(json!(null)),
        Just(json!([])),
        Just(json!({})),
        Just(json!("x")),
        Just(json!("2026-01-01T00:00:00Z")),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!([null, 1, {"ip": 5}])),
    ];
    (
        prop::sample::select(objects),
        prop::collection::vec((any::<prop::sample::Index>(), scalar), 0..6),
    )
        .prop_map(|(mut object, damages)| {
            for (place, damage) in damages {
                let mut pointers = Vec::new();
                places(&object, String::new(), &mut pointers);
                let pointer: &String = place.get(&pointers);
                *object.pointer_mut(pointer).unwrap() = damage;
            }
            object
        })
}

fn places(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            places(value, format!("{at}/{name}"), found);
        }),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| places(item, format!("{at}/{index}"), found));
        }
        _ => {}
    }
    found.push(at);
}

proptest! {
    #[test]
    fn every_row_has_a_cell_for_every_column(object in damaged(), seconds in -9_000_000_000_i64..9_000_000_000) {
        let now = Timestamp::from_second(seconds).unwrap();
        for (recorded, custom) in TABLES.iter() {
            let resource = recorded["resource"].as_str().unwrap();
            let table = render(resource, &[&object], custom.as_ref(), now, IncludeObject::Metadata);
            let columns = table["columnDefinitions"].as_array().unwrap().len();
            prop_assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), columns, "{}", resource);
        }
    }
}
