//! A set of paths into an object: the fields that one manager owns.

use std::cmp::Ordering;

use crate::json::Value;

use super::element::Element;
use super::typed;
use crate::types::Shape;

/// Paths as a tree. A path is in the set if its node is a member; intermediate nodes need not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Sorted. Most nodes have few children, for which a map would be wasteful.
    nodes: Vec<(Element, Node)>,
}

/// Whether a path is in a set, and its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    children: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    /// Every leaf and every list item in `value`.
    pub(crate) fn of(value: &Value, shape: Shape<'_>) -> Self {
        typed::collect(value, shape)
    }

    /// A set of dotted paths of fields, such as `metadata.name`.
    pub(crate) fn of_paths(paths: &[&str]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.split('.').map(Element::field).collect::<Vec<_>>());
        }
        set
    }

    /// Parses `fieldsV1`.
    pub(crate) fn read(fields: &Value) -> Result<Self, String> {
        Ok(read(fields)?.0)
    }

    /// The text of `fieldsV1` as the real server writes it.
    pub(crate) fn text(&self) -> String {
        let mut out = Vec::with_capacity(1024);
        write(&mut out, self, false);
        // Names are UTF-8, and so is the text between them.
        String::from_utf8(out).unwrap_or_default()
    }

    /// The value of `fieldsV1`.
    #[cfg(test)]
    pub(crate) fn to_value(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_default()
    }

    /// Adds a path. The empty path is the whole object, which cannot be owned.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.entry(last).member = true,
            [first, rest @ ..] => self.entry(first).children.insert(rest),
        }
    }

    fn place(&self, element: &Element) -> Result<usize, usize> {
        self.nodes.binary_search_by(|(known, _)| known.cmp(element))
    }

    fn get(&self, element: &Element) -> Option<&Node> {
        self.place(element).ok().map(|at| &self.nodes[at].1)
    }

    fn entry(&mut self, element: &Element) -> &mut Node {
        // Objects are walked in order, so most paths come last.
        let at = match self.nodes.last().map(|(last, _)| last.cmp(element)) {
            None | Some(Ordering::Less) => Err(self.nodes.len()),
            Some(Ordering::Equal) => Ok(self.nodes.len() - 1),
            Some(Ordering::Greater) => self.place(element),
        };
        let at = at.unwrap_or_else(|at| {
            self.nodes.insert(at, (element.clone(), Node::default()));
            at
        });
        &mut self.nodes[at].1
    }

    pub(crate) fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self.get(first).is_some_and(|node| node.children.has(rest)),
        }
    }

    /// The paths below an element.
    pub(crate) fn below(&self, element: &Element) -> Option<&Self> {
        self.get(element)
            .map(|node| &node.children)
            .filter(|children| !children.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.iter().all(|(_, node)| node.is_empty())
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.add(other.clone());
        out
    }

    /// Adds another set.
    pub(crate) fn add(&mut self, other: Self) {
        if self.nodes.is_empty() {
            *self = other;
            return;
        }
        for (element, theirs) in other.nodes {
            match self.place(&element) {
                Ok(at) => {
                    let ours = &mut self.nodes[at].1;
                    ours.member |= theirs.member;
                    ours.children.add(theirs.children);
                }
                Err(at) => self.nodes.insert(at, (element, theirs)),
            }
        }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, ours| match other.get(element) {
            Some(theirs) => Node {
                member: ours.member && theirs.member,
                children: ours.children.intersection(&theirs.children),
            },
            None => Node::default(),
        })
    }

    /// The paths that are not in `other`. A parent in `other` does not remove its children here.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.subtract(other);
        out
    }

    /// Removes the paths in `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (element, theirs) in &other.nodes {
            let Ok(at) = self.place(element) else { continue };
            let ours = &mut self.nodes[at].1;
            ours.member &= !theirs.member;
            ours.children.subtract(&theirs.children);
            if ours.is_empty() {
                self.nodes.remove(at);
            }
        }
    }

    /// Whether the sets share a path.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        other.nodes.iter().any(|(element, theirs)| {
            self.get(element)
                .is_some_and(|ours| (ours.member && theirs.member) || ours.children.meets(&theirs.children))
        })
    }

    /// Whether every path in `other` is in this set.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.nodes.iter().all(|(element, theirs)| {
            theirs.is_empty()
                || self.get(element).is_some_and(|ours| {
                    (ours.member || !theirs.member) && ours.children.covers(&theirs.children)
                })
        })
    }

    /// The first elements of the paths.
    pub(crate) fn first_steps(&self) -> impl Iterator<Item = &Element> {
        self.nodes.iter().map(|(element, _)| element)
    }

    /// The paths that are neither in `other` nor below one of its members.
    pub(crate) fn without(&self, other: &Self) -> Self {
        self.combine(|element, ours| match other.get(element) {
            Some(theirs) if theirs.member => Node::default(),
            Some(theirs) => Node {
                member: ours.member,
                children: ours.children.without(&theirs.children),
            },
            None => ours.clone(),
        })
    }

    /// Removes the paths at or below a dotted path of fields.
    pub(crate) fn discard_path(&mut self, path: &str) {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        let is_first =
            |(element, _): &(Element, Node)| matches!(element, Element::Field(name) if name == first);
        let Some(at) = self.nodes.iter().position(is_first) else {
            return;
        };
        let node = &mut self.nodes[at].1;
        if let Some(rest) = rest {
            node.children.discard_path(rest);
        }
        if rest.is_none() || node.is_empty() {
            self.nodes.remove(at);
        }
    }

    /// The set with every struct field on the way to a member added: removing `spec.replicas` may remove `spec`.
    pub(crate) fn with_named_fields(&self, shape: Shape<'_>) -> Self {
        let nodes = self.nodes.iter().map(|(element, node)| {
            let (named, below) = match element {
                Element::Field(name) => (typed::is_named(shape, name), shape.member(name)),
                Element::Key(_) => (false, shape.element()),
                Element::Value(_) | Element::Index(_) => (false, Shape::Unknown),
            };
            let children = node.children.with_named_fields(below);
            (
                element.clone(),
                Node {
                    member: node.member || (named && !children.is_empty()),
                    children,
                },
            )
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Every path, in upstream's order: at each node first its members, then their children.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut out: Vec<_> = self.members().map(|element| vec![element.clone()]).collect();
        for (element, node) in &self.nodes {
            for mut path in node.children.paths() {
                path.insert(0, element.clone());
                out.push(path);
            }
        }
        out
    }

    fn members(&self) -> impl Iterator<Item = &Element> {
        self.nodes
            .iter()
            .filter(|(_, node)| node.member)
            .map(|(element, _)| element)
    }

    fn combine(&self, mut each: impl FnMut(&Element, &Node) -> Node) -> Self {
        let nodes = self
            .nodes
            .iter()
            .map(|(element, node)| (element.clone(), each(element, node)));
        Self {
            nodes: nodes.filter(|(_, node)| !node.is_empty()).collect(),
        }
    }
}

/// The set below one node of `fieldsV1`, and whether the node is a member itself. A node without children is.
fn read(fields: &Value) -> Result<(FieldSet, bool), String> {
    let empty = crate::json::Map::new();
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        other => return Err(format!("expected an object of fields, but found {other}")),
    };
    let mut set = FieldSet::default();
    let mut member = false;
    for (key, below) in fields {
        if key == "." {
            member = true;
        } else if let Some(element) = Element::parse(key)? {
            let (children, member) = read(below)?;
            set.nodes.push((element, Node { member, children }));
        }
    }
    // The text sorts keys and values differently.
    set.nodes.sort_by(|(left, _), (right, _)| left.cmp(right));
    set.nodes.dedup_by(|(later, node), (kept, first)| {
        let same = later == kept;
        if same {
            std::mem::swap(first, node);
        }
        same
    });
    let member = member || set.nodes.is_empty();
    Ok((set, member))
}

/// The text below one node: `.` first if the node is a member itself, then the elements in order.
fn write(out: &mut Vec<u8>, set: &FieldSet, member: bool) {
    out.push(b'{');
    let mut is_first = true;
    if member && !set.nodes.is_empty() {
        out.extend_from_slice(b"\".\":{}");
        is_first = false;
    }
    for (element, node) in &set.nodes {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        element.write(out);
        out.push(b':');
        write(out, &node.children, node.member);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use rstest::rstest;

    fn set(fields: Value) -> FieldSet {
        FieldSet::read(&fields).unwrap()
    }

    /// The text of a pod template's entry on the real server: fields by name, keys and values by size.
    #[test]
    fn fields_are_written_in_the_order_of_the_real_server() {
        let text = r#"{"f:metadata":{"f:finalizers":{".":{},"v:\"x/a\"":{},"v:\"x/b\"":{}},"f:labels":{".":{},"f:a":{}}},"#.to_owned()
            + r#""f:ports":{".":{},"k:{\"containerPort\":9,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"#
            + r#""k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{}}}"#;
        let set = set(serde_json::from_str(&text).unwrap());
        assert_eq!(set.text(), text);
    }

    #[rstest]
    #[case(json!({"f:a": {"f:b": {}}}), json!({"f:a": {"f:b": {}}}), json!({}))]
    #[case(json!({"f:a": {"f:b": {}, "f:c": {}}}), json!({"f:a": {"f:b": {}}}), json!({"f:a": {"f:c": {}}}))]
    #[case(json!({"f:a": {".": {}, "f:b": {}}}), json!({"f:a": {}}), json!({"f:a": {"f:b": {}}}))]
    #[case(json!({"f:a": {}}), json!({"f:a": {"f:b": {}}}), json!({"f:a": {}}))]
    fn a_difference_keeps_the_children_of_what_it_takes(
        #[case] left: Value,
        #[case] right: Value,
        #[case] expected: Value,
    ) {
        assert_eq!(set(left).difference(&set(right)).to_value(), expected);
    }

    #[rstest]
    #[case(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}), json!({"f:a": {}}), json!({"f:c": {}}))]
    #[case(json!({"f:a": {"f:b": {"f:c": {}}, "f:d": {}}}), json!({"f:a": {"f:b": {}}}), json!({"f:a": {"f:d": {}}}))]
    fn what_is_without_a_path_is_without_what_is_below(
        #[case] left: Value,
        #[case] right: Value,
        #[case] expected: Value,
    ) {
        assert_eq!(set(left).without(&set(right)).to_value(), expected);
    }

    #[rstest]
    #[case("a")]
    #[case("a.b")]
    #[case("b.a")]
    #[case("c")]
    fn what_is_discarded_is_gone_with_what_is_below(#[case] path: &str) {
        let all = set(
            json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}, "f:d": {}}, "f:b": {"f:a": {"f:c": {}}}}),
        );
        let mut left = all.clone();
        left.discard_path(path);
        assert_eq!(left, all.without(&FieldSet::of_paths(&[path])));
    }

    #[rstest]
    #[case(json!({"f": {}}))]
    #[case(json!({"fx": {}}))]
    #[case(json!({"k:{": {}}))]
    #[case(json!({"i:x": {}}))]
    #[case(json!({"f:a": 1}))]
    #[case(json!([]))]
    fn what_is_no_set_is_refused(#[case] fields: Value) {
        assert!(FieldSet::read(&fields).is_err());
    }

    #[test]
    fn elements_of_a_later_version_are_dropped() {
        assert_eq!(
            set(json!({"z:new": {}, "f:a": {}})).to_value(),
            json!({"f:a": {}})
        );
    }

    fn any_set() -> impl Strategy<Value = FieldSet> {
        let element = prop_oneof![
            "[a-c.]{1,2}".prop_map(Element::field),
            btree_map(
                "[a-b]",
                prop_oneof![(0i64..12).prop_map(Value::from), "[a-c<]".prop_map(Value::from)],
                1..3
            )
            .prop_map(|fields| Element::Key(
                fields
                    .into_iter()
                    .map(|(name, value)| (name.into(), value))
                    .collect()
            )),
            (0i64..12).prop_map(|value| Element::Value(value.into())),
            (0i64..12).prop_map(Element::Index),
        ];
        vec(vec(element, 1..4), 0..8).prop_map(|paths| {
            let mut set = FieldSet::default();
            paths.iter().for_each(|path| set.insert(path));
            set
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(set in any_set()) {
            prop_assert_eq!(FieldSet::read(&set.to_value()), Ok(set));
        }

        #[test]
        fn sets_obey_the_laws_of_sets(left in any_set(), right in any_set()) {
            let both = left.intersection(&right);
            prop_assert!(left.paths().iter().all(|path| left.has(path)));
            prop_assert!(left.difference(&right).intersection(&right).is_empty());
            prop_assert_eq!(left.meets(&right), !both.is_empty());
            prop_assert_eq!(left.covers(&right), left.union(&right) == left);
            prop_assert_eq!(left.union(&right), right.union(&left));
            prop_assert_eq!(left.difference(&right).union(&both), left);
        }

        #[test]
        fn no_fields_panic(fields in super::super::arbitrary::json()) {
            let _ = FieldSet::read(&fields);
        }
    }
}
