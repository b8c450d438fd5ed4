use proptest::prelude::*;
use rstest::rstest;

use super::*;

/// Any JSON, as serde_json has it.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (-1e9..1e9).prop_map(|float: f64| float.into()),
        "\\PC{0,8}".prop_map(Into::into),
        "[\\x00-\\x7f]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 64, 40, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map("[a-dé\"]{0,2}", inner, 0..40)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_reads_and_writes_as_that_of_serde_json(theirs in any_json()) {
        let ours = Value::from(theirs.clone());
        prop_assert_eq!(serde_json::Value::from(&ours), theirs.clone());
        prop_assert_eq!(ours.to_string(), theirs.to_string());
        prop_assert_eq!(serde_json::to_string(&ours).unwrap(), theirs.to_string());
        let read: serde_json::Value = serde_json::from_str(&theirs.to_string()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&theirs.to_string()).unwrap(), Value::from(read));
    }

    #[test]
    fn values_are_equal_exactly_if_those_of_serde_json_are(left in any_json(), right in any_json()) {
        prop_assert_eq!(Value::from(left.clone()) == Value::from(right.clone()), left == right);
    }

    #[test]
    fn a_map_is_changed_as_one_of_the_standard_library(
        changes in prop::collection::vec((any::<bool>(), "[a-f]{1,2}", 0..9_i64), 0..80),
    ) {
        let (mut ours, mut theirs) = (Map::new(), std::collections::BTreeMap::new());
        for (is_kept, name, value) in changes {
            let before = ours.clone();
            let entries = before.len();
            let (gone, expected) = match is_kept {
                true => (ours.insert(name.as_str().into(), value.into()), theirs.insert(name, value)),
                false => (ours.remove(&name), theirs.remove(&name)),
            };
            prop_assert_eq!(gone, expected.map(Value::from));
            prop_assert_eq!(before.len(), entries, "a copy keeps what it had");
            let found: Vec<_> = ours.iter().map(|(name, value)| (name.to_string(), value.as_i64().unwrap())).collect();
            prop_assert_eq!(found, theirs.clone().into_iter().collect::<Vec<_>>());
        }
    }
}

#[test]
fn of_two_fields_with_one_name_the_last_counts() {
    let read: Value = serde_json::from_str(r#"{"b": 1, "a": 2, "b": 3}"#).unwrap();
    assert_eq!(read, json!({"a": 2, "b": 3}));
}

#[rstest]
#[case("", true)]
#[case("/a/0/b~1c", true)]
#[case("/a/00", false)]
#[case("/a/1", false)]
#[case("a", false)]
fn a_pointer_leads_as_that_of_serde_json(#[case] pointer: &str, #[case] found: bool) {
    let mut value = json!({"a": [{"b/c": 1}]});
    let theirs = serde_json::Value::from(&value);
    assert_eq!(value.pointer(pointer).is_some(), found);
    assert_eq!(theirs.pointer(pointer).is_some(), found);
    assert_eq!(value.pointer_mut(pointer).is_some(), found);
}

#[test]
fn a_field_is_found_by_its_very_name_however_long() {
    let letters: String = ('a'..='z').cycle().take(40).collect();
    for length in 0..letters.len() {
        let name = &letters[..length];
        let fields: Map = [(Name::from(name), Value::Bool(true))].into_iter().collect();
        assert!(fields.contains_key(name), "{name:?}");
        assert!(
            !fields.contains_key(&letters[..length + 1]),
            "{name:?} and one more"
        );
        for place in 0..length {
            let mut other = name.to_owned();
            other.replace_range(place..=place, "_");
            assert!(!fields.contains_key(&other), "{other:?} instead of {name:?}");
        }
    }
}
