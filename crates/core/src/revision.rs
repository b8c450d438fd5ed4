//! The name that the StatefulSet controller gives to the revision of a pod template.
//!
//! Kubernetes stores each template as a ControllerRevision named `<set>-<hash>` and labels pods with that name. The hash depends
//! only on the template's bytes, so the revision of a template is known before the controller has observed it, and templates are
//! compared as the controller does: byte for byte. The steps are those of the controller: serialise as Go does, FNV-1, then encode
//! in letters that cannot form a word.

use std::fmt;

use serde_json::Value;

/// The name of a ControllerRevision, and the value of its pods' `controller-revision-hash` label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevisionName(String);

/// A ControllerRevision's name leaves room for the hash: the set's part is cut here.
const LONGEST_PREFIX: usize = 223;

/// The letters of Kubernetes' safe encoding: no vowels, nothing that looks like another letter.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

impl RevisionName {
    /// The revision that `template` gets in the set `set` whose status has `collision_count`.
    ///
    /// `template` is `spec.template` as the API server returns it: defaulted, unknown fields dropped.
    pub fn of(set: &str, template: &Value, collision_count: i32) -> Self {
        Self(format!(
            "{}-{}",
            prefix(set),
            hash(&data(template), collision_count)
        ))
    }

    /// A name read from an object.
    pub fn from_api(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as Kubernetes writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RevisionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The `data` of the ControllerRevision for `template`: a patch that restores exactly this template.
pub fn data(template: &Value) -> String {
    let mut template = template.clone();
    if let Value::Object(fields) = &mut template {
        fields.insert("$patch".into(), "replace".into());
    }
    let mut json = String::from(r#"{"spec":{"template":"#);
    write_like_go(&mut json, &template);
    json.push_str("}}");
    json
}

/// The hash part of a revision's name, also its `controller.kubernetes.io/hash` label.
pub fn hash(data: &str, collision_count: i32) -> String {
    let sum = fnv1(data.bytes().chain(collision_count.to_string().bytes()));
    sum.to_string()
        .bytes()
        .map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]))
        .collect()
}

/// The set's part of the name. Set names are DNS labels, so a byte is a character; the loop only guards against invalid names.
fn prefix(set: &str) -> &str {
    let mut end = set.len().min(LONGEST_PREFIX);
    while !set.is_char_boundary(end) {
        end -= 1;
    }
    &set[..end]
}

/// FNV-1 (multiply, then xor), 32 bits. The crates have FNV-1a, which is another function.
fn fnv1(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |sum, byte| {
        sum.wrapping_mul(0x0100_0193) ^ u32::from(byte)
    })
}

/// Writes JSON as Go's `json.Marshal` does for a `map[string]any`: sorted keys, no white space, numbers as float64,
/// and `<`, `>`, `&`, U+2028 and U+2029 escaped.
fn write_like_go(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number.as_f64().unwrap_or_default()),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_like_go(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            // Sorted here, because a dependency may switch serde_json's maps to insertion order.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by(|a, b| a.0.cmp(b.0));
            out.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write_like_go(out, value);
            }
            out.push('}');
        }
    }
}

/// Writes a number as Go does in JSON: a float64 without an exponent between 1e-6 and 1e21, and without a fraction if it is whole.
pub(crate) fn write_number(out: &mut String, number: f64) {
    use fmt::Write;
    let size = number.abs();
    let written = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        // Go always signs the exponent.
        write!(
            out,
            "{}",
            if text.contains("e-") {
                text
            } else {
                text.replace('e', "e+")
            }
        )
    } else {
        write!(out, "{number}")
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

/// Writes a string as Go does in JSON.
pub(crate) fn write_string(out: &mut String, text: &str) {
    let quoted = Value::from(text).to_string();
    for character in quoted.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    #[test]
    fn the_hash_is_fnv_1_and_not_1a() {
        assert_eq!(fnv1("a".bytes()), 0x050c_5d7e);
        assert_eq!(fnv1("foobar".bytes()), 0x31f0_b262);
    }

    #[test]
    fn data_is_a_replacing_patch_with_sorted_keys_and_no_space() {
        let template = json!({"spec": {"b": [1, {"z": null, "a": true}]}, "metadata": {"labels": {}}});
        assert_eq!(
            data(&template),
            r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{}},"spec":{"b":[1,{"a":true,"z":null}]}}}}"#
        );
    }

    #[rstest]
    #[case::html("<a & b>", r#""\u003ca \u0026 b\u003e""#)]
    #[case::line_separators("a\u{2028}b\u{2029}", r#""a\u2028b\u2029""#)]
    #[case::control("\u{1}\t\n\u{8}\u{c}\"\\", r#""\u0001\t\n\b\f\"\\""#)]
    #[case::beyond_ascii("größe 😀", r#""größe 😀""#)]
    fn strings_are_escaped_as_go_escapes_them(#[case] text: &str, #[case] expected: &str) {
        let mut out = String::new();
        write_string(&mut out, text);
        assert_eq!(out, expected);
    }

    #[rstest]
    #[case(json!(0), "0")]
    #[case(json!(30), "30")]
    #[case(json!(-1), "-1")]
    #[case(json!(1.5), "1.5")]
    #[case(json!(9_007_199_254_740_993_i64), "9007199254740992")] // one past the integers that a float64 represents exactly
    #[case(json!(1e21), "1e+21")]
    #[case(json!(1e-7), "1e-7")]
    fn numbers_are_written_as_go_writes_a_float64(#[case] number: Value, #[case] expected: &str) {
        let mut out = String::new();
        write_like_go(&mut out, &number);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_long_set_name_is_cut_to_leave_room_for_the_hash() {
        let name = RevisionName::of(&"d".repeat(300), &json!({}), 0);
        let (set, hash) = name.as_str().rsplit_once('-').unwrap();
        assert_eq!(set.len(), LONGEST_PREFIX);
        assert!(!hash.is_empty());
    }

    #[test]
    fn a_collision_gives_another_name_to_the_same_template() {
        let template = json!({"spec": {}});
        assert_ne!(
            RevisionName::of("db", &template, 0),
            RevisionName::of("db", &template, 1)
        );
    }

    proptest! {
        #[test]
        fn any_template_has_a_name_that_is_a_legal_label(image in ".*", number in any::<i64>(), collisions in any::<i32>()) {
            let name = RevisionName::of("db", &json!({"spec": {"image": image, "n": number}}), collisions);
            prop_assert!(name.as_str().len() <= 63);
            prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        }

        #[test]
        fn data_reads_back_as_the_template_it_was_made_from(text in ".*", number in -1_000_000_i64..1_000_000) {
            let template = json!({"spec": {"text": text, "n": number}});
            let read: Value = serde_json::from_str(&data(&template)).unwrap();
            prop_assert_eq!(&read["spec"]["template"]["spec"]["text"], &template["spec"]["text"]);
            prop_assert_eq!(read["spec"]["template"]["spec"]["n"].as_f64(), template["spec"]["n"].as_f64());
        }
    }
}
