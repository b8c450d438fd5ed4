//! Evaluates functions with a part for every element of a list.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::Binary;
use super::budget::{Budget, Fault};
use super::code::{Code, Loop, LoopKind};
use super::eval::{At, Evaluation, Stop};
use super::operators;
use super::value::{List, MapKind, Value};

/// The state of a loop.
pub(super) struct Scope {
    items: Items,
    pub(super) index: usize,
    pub(super) accumulated: Value,
}

/// The elements of a loop. Go accepts everything that has a length.
enum Items {
    List(Arc<List>),
    /// Byte by byte.
    Text(Arc<str>),
    /// Its elements have no order: they can only be counted.
    Map(usize),
}

impl Items {
    fn of(value: Value) -> Result<Self, Fault> {
        match value {
            Value::List(list) => Ok(Self::List(list)),
            Value::Text(text) => Ok(Self::Text(text)),
            Value::Map(map) => Ok(Self::Map(map.entries.len())),
            other => Err(Fault::value(format!(
                "this works on a list, and this is {}",
                other.name()
            ))),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.items.len(),
            Self::Text(text) => text.len(),
            Self::Map(length) => *length,
        }
    }
}

impl Evaluation<'_> {
    /// `#`
    pub(super) fn item(&mut self, at: usize) -> Result<Value, Stop> {
        let found = self.scopes.last().and_then(|scope| match &scope.items {
            Items::List(list) => list.items.get(scope.index).cloned(),
            Items::Text(text) => text.as_bytes().get(scope.index).map(|byte| Value::Byte(*byte)),
            Items::Map(_) => None,
        });
        found
            .ok_or_else(|| {
                Fault::value("this works on a list, and this is a map; values() makes a list of it")
            })
            .at(at)
    }

    pub(super) fn loop_over(&mut self, at: usize, inner: &Loop) -> Result<Value, Stop> {
        let list = self.value(&inner.list)?;
        self.voids.look(&inner.list, &list);
        let items = Items::of(list).at(inner.list.at)?;
        let length = items.len();
        self.scopes.push(Scope {
            items,
            index: 0,
            accumulated: Value::Nil,
        });
        let outcome = self.run(at, inner, length);
        self.scopes.pop();
        outcome
    }

    fn run(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        match inner.kind {
            LoopKind::All => self.until(inner, length, false).map(|found| Value::Bool(!found)),
            LoopKind::None => self.until(inner, length, true).map(|found| Value::Bool(!found)),
            LoopKind::Any => self.until(inner, length, true).map(Value::Bool),
            LoopKind::One | LoopKind::Count => self.count(at, inner, length),
            LoopKind::Filter => self.filter(at, inner, length),
            LoopKind::Map => self.map_each(at, inner, length),
            LoopKind::Sum => self.sum(at, inner, length),
            LoopKind::Find | LoopKind::FindIndex => self.find(at, inner, &mut (0..length)),
            LoopKind::FindLast | LoopKind::FindLastIndex => self.find(at, inner, &mut (0..length).rev()),
            LoopKind::GroupBy => self.group_by(at, inner, length),
            LoopKind::SortBy => self.sort_by(at, inner, length),
            LoopKind::Reduce => self.reduce(at, inner, length),
        }
    }

    fn go_to(&mut self, at: usize, index: usize) -> Result<(), Stop> {
        self.budget.steps(1).at(at)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.index = index;
        }
        Ok(())
    }

    /// The value of the loop's body for the current element.
    fn body(&mut self, at: usize, inner: &Loop) -> Result<Value, Stop> {
        match &inner.body {
            Some(body) => self.value(body),
            None => self.item(at),
        }
    }

    fn holds(&mut self, at: usize, inner: &Loop) -> Result<bool, Stop> {
        match self.body(at, inner)? {
            Value::Bool(bool) => Ok(bool),
            other => Err(Stop::Fault(
                inner.body.as_ref().map_or(at, |body| body.at),
                Fault::value(format!("this has to be a bool, and it is {}", other.name())),
            )),
        }
    }

    /// Whether the body returns `wanted` for an element.
    fn until(&mut self, inner: &Loop, length: usize, wanted: bool) -> Result<bool, Stop> {
        let at = inner.list.at;
        for index in 0..length {
            self.go_to(at, index)?;
            if self.holds(at, inner)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        let mut count = 0_i64;
        for index in 0..length {
            self.go_to(at, index)?;
            if self.holds(at, inner)? {
                count += 1;
                if inner.enough.is_some_and(|enough| count >= enough) {
                    break;
                }
            }
        }
        Ok(match inner.kind {
            LoopKind::One => Value::Bool(count == 1),
            _ => Value::Int(count),
        })
    }

    /// The element, or the result of `map` for it.
    fn kept(&mut self, at: usize, map: Option<&Code>) -> Result<Value, Stop> {
        match map {
            Some(map) => self.value(map),
            None => self.item(at),
        }
    }

    fn filter(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        let mut kept = Vec::new();
        for index in 0..length {
            self.go_to(at, index)?;
            if self.holds(at, inner)? {
                kept.push(self.kept(at, inner.map.as_ref())?);
            }
        }
        self.budget.elements(kept.len()).at(at)?;
        self.list(at, kept)
    }

    fn map_each(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        self.budget.elements(length).at(at)?;
        let mut mapped = Vec::with_capacity(length);
        for index in 0..length {
            self.go_to(at, index)?;
            mapped.push(self.body(at, inner)?);
        }
        self.list(at, mapped)
    }

    fn sum(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        let mut sum = Value::Int(0);
        for index in 0..length {
            self.go_to(at, index)?;
            let value = self.body(at, inner)?;
            sum = operators::add(&value, &sum, &mut self.budget).at(at)?;
        }
        Ok(sum)
    }

    fn find(
        &mut self,
        at: usize,
        inner: &Loop,
        indices: &mut dyn Iterator<Item = usize>,
    ) -> Result<Value, Stop> {
        for index in indices {
            self.go_to(at, index)?;
            if self.holds(at, inner)? {
                return match inner.kind {
                    LoopKind::Find | LoopKind::FindLast => self.kept(at, inner.map.as_ref()),
                    _ => Ok(Value::Int(index as i64)),
                };
            }
        }
        match inner.must_find {
            true => Err(Stop::Fault(at, Fault::value("there is no element that fits"))),
            false => Ok(Value::Nil),
        }
    }

    fn group_by(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        let mut groups: BTreeMap<_, Vec<Value>> = BTreeMap::new();
        for index in 0..length {
            self.go_to(at, index)?;
            let key = self.body(at, inner)?;
            if let Value::Text(name) = &key {
                self.budget.look_at(name.len()).at(at)?;
            }
            let key = operators::key_of(&key).at(at)?;
            let item = self.item(at)?;
            groups.entry(key).or_default().push(item);
        }
        let mut entries = BTreeMap::new();
        for (key, items) in groups {
            entries.insert(key, self.list(at, items)?);
        }
        Value::map(MapKind::Groups, entries)
            .ok_or_else(Fault::too_deep)
            .at(at)
    }

    fn sort_by(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        let order = match &inner.third {
            Some(order) => self.value(order)?,
            None => Value::text("asc"),
        };
        let descending = match &order {
            Value::Text(order) if &**order == "asc" => false,
            Value::Text(order) if &**order == "desc" => true,
            _ => {
                return Err(Stop::Fault(
                    at,
                    Fault::value("the order of sortBy() is \"asc\" or \"desc\""),
                ));
            }
        };
        let mut pairs = Vec::new();
        for index in 0..length {
            self.go_to(at, index)?;
            let value = self.body(at, inner)?;
            pairs.push((value, self.item(at)?));
        }
        self.budget.elements(length).at(at)?;
        let sorted = sort(pairs, descending, &mut self.budget).at(at)?;
        self.list(at, sorted.into_iter().map(|(_, item)| item).collect())
    }

    fn reduce(&mut self, at: usize, inner: &Loop, length: usize) -> Result<Value, Stop> {
        let (first, start) = match &inner.third {
            Some(third) => (self.value(third)?, 0),
            None if length == 0 => {
                return Err(Stop::Fault(
                    at,
                    Fault::value("reduce() of an empty list needs a value to start with"),
                ));
            }
            None => (self.item(at)?, 1),
        };
        self.accumulate(first);
        for index in start..length {
            self.go_to(at, index)?;
            let value = self.body(at, inner)?;
            self.accumulate(value);
        }
        Ok(self
            .scopes
            .last()
            .map_or(Value::Nil, |scope| scope.accumulated.clone()))
    }

    fn accumulate(&mut self, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.accumulated = value;
        }
    }
}

/// Go sorts lists up to this length by insertion, and so does this: equal values stay in order, and the same pairs are compared.
const SHORT: usize = 12;

/// Sorts items by their keys. Some keys cannot be compared, and not every order is total, so this sort can fail, and terminates for any
/// order.
pub(super) fn sort<T: Clone>(
    mut pairs: Vec<(Value, T)>,
    descending: bool,
    budget: &mut Budget,
) -> Result<Vec<(Value, T)>, Fault> {
    let mut before = |a: &Value, b: &Value| {
        budget.steps(1)?;
        match descending {
            true => operators::compare(Binary::Less, b, a, budget),
            false => operators::compare(Binary::Less, a, b, budget),
        }
    };
    if pairs.len() <= SHORT {
        for end in 1..pairs.len() {
            let mut at = end;
            while at > 0 && before(&pairs[at].0, &pairs[at - 1].0)? {
                pairs.swap(at, at - 1);
                at -= 1;
            }
        }
        return Ok(pairs);
    }
    let mut width = 1;
    while width < pairs.len() {
        let mut merged = Vec::with_capacity(pairs.len());
        for run in pairs.chunks(width * 2) {
            let (left, right) = run.split_at(width.min(run.len()));
            let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
            loop {
                let next = match (left.peek(), right.peek()) {
                    (Some(l), Some(r)) => match before(&r.0, &l.0)? {
                        true => right.next(),
                        false => left.next(),
                    },
                    (Some(_), None) => left.next(),
                    _ => right.next(),
                };
                match next {
                    Some(pair) => merged.push(pair.clone()),
                    None => break,
                }
            }
        }
        pairs = merged;
        width *= 2;
    }
    Ok(pairs)
}
