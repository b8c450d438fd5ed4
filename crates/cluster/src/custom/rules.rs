//! The rules of a schema: CEL expressions that an object, or its change, must satisfy.
//!
//! Rules are compiled when their CRD is read. The `kube-cel` crate provides the language and Kubernetes' functions; this module walks the
//! object, correlates old with new and formats the errors, like the real server.

use std::collections::VecDeque;

use crate::json::Value;
use kube_cel::cel::parser::{Expression, Parser};
use kube_cel::cel::{Context, ExecutionError, ParseErrors, Value as Cel};
use parking_lot::{Mutex, MutexGuard};

use super::cel::seen;
use super::cel_compat::{self, mended, worded};
use super::correlate::{Before, aligned, matching};
use super::crd::locate::shown;
use super::decode::{inside, joined};
use super::fault;
use super::field_path;
use super::schema::{Schema, flag, text};
use crate::status::FieldError;

/// The maximum length of a message from a message expression.
const LONGEST_MESSAGE: usize = 5 * 1024;

thread_local! {
    /// The functions available to rules. Registering them costs more than most rules.
    static FUNCTIONS: Context<'static> = cel_compat::functions();
}

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    source: String,
    message: String,
    reason: String,
    /// The field that the error names, below the rule's own.
    blamed: String,
    optional_old_self: bool,
    uses_old_self: bool,
    /// `None` if it does not parse; such a CRD was rejected.
    expression: Option<Expression>,
    message_expression: Option<Expression>,
}

impl Rule {
    pub(super) fn read_all(node: &Value, schema: &Schema) -> Vec<Self> {
        let rules = node["x-kubernetes-validations"].as_array();
        rules.map_or_else(Vec::new, |rules| {
            rules.iter().map(|rule| Self::read(rule, schema)).collect()
        })
    }

    fn read(rule: &Value, schema: &Schema) -> Self {
        let source = text(rule, "rule");
        let expression = parse(&source).ok().map(mended);
        let path = text(rule, "fieldPath");
        Self {
            message: text(rule, "message").trim().to_owned(),
            reason: text(rule, "reason"),
            blamed: field_path::resolve(&path, schema, true)
                .map(|found| found.path)
                .unwrap_or_default(),
            optional_old_self: flag(rule, "optionalOldSelf"),
            uses_old_self: expression.as_ref().is_some_and(uses_old_self),
            message_expression: parse(&text(rule, "messageExpression")).ok().map(mended),
            expression,
            source: source.trim().to_owned(),
        }
    }

    /// The name of the rule in run-time errors.
    fn called(&self) -> &str {
        if self.message.is_empty() {
            &self.source
        } else {
            &self.message
        }
    }

    fn failure(&self, at: &str, value: Option<&Value>, said: Option<String>) -> FieldError {
        let detail = said.unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed rule: {}", self.source),
            message => message.to_owned(),
        });
        let place = if self.blamed.is_empty() {
            at.to_owned()
        } else {
            joined(at, &self.blamed)
        };
        let place = if place.is_empty() {
            fault::NOWHERE.to_owned()
        } else {
            place
        };
        match self.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(place, &detail),
            "FieldValueRequired" => FieldError::required(place, &detail),
            "FieldValueDuplicate" => fault::duplicate(place, value),
            _ => fault::invalid(place, value, detail),
        }
    }
}

/// Values that satisfied all rules of their position, the newest last.
///
/// A rule that does not use the old value gives the same result for the same value.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<VecDeque<Value>>);

impl Kept {
    /// About the number of such values in an object.
    const REMEMBERED: usize = 64;

    fn values(&self) -> MutexGuard<'_, VecDeque<Value>> {
        self.0.lock()
    }

    fn has(&self, value: &Value) -> bool {
        self.values().iter().any(|kept| kept.shares(value))
    }

    fn add(&self, value: &Value) {
        let mut values = self.values();
        if values.len() == Self::REMEMBERED {
            values.pop_front();
        }
        values.push_back(value.clone());
    }
}

/// Parses an expression, with the optional syntax that Kubernetes allows.
pub(super) fn parse(source: &str) -> Result<Expression, String> {
    let parsed = std::panic::catch_unwind(|| Parser::new().enable_optional_syntax(true).parse(source));
    match parsed {
        Ok(parsed) => parsed.map_err(|errors| complaints(source, &errors)),
        // The generated parser panics on some invalid input.
        Err(_) => Err(shown(source, 0, 0, "Syntax error: unreadable")),
    }
}

fn complaints(source: &str, errors: &ParseErrors) -> String {
    let place = |place: isize| usize::try_from(place.saturating_sub(1)).unwrap_or_default();
    let told = errors
        .errors
        .iter()
        .map(|error| shown(source, place(error.pos.0), place(error.pos.1), &error.msg));
    told.collect::<Vec<_>>().join("\n")
}

pub(super) fn uses_old_self(expression: &Expression) -> bool {
    expression.references().has_variable("oldSelf")
}

/// How far an object can be correlated with its old version.
#[derive(Clone, Copy, Default)]
pub(super) struct Ratchet<'v> {
    current: Option<(Before<'v>, &'v Value)>,
    /// The nearest ancestor that can be correlated.
    around: Option<(Before<'v>, &'v Value)>,
}

impl<'v> Ratchet<'v> {
    pub(super) fn new(before: Before<'v>, new: &'v Value) -> Self {
        Self {
            current: Some((before, new)),
            around: None,
        }
    }

    fn forgives(self) -> bool {
        self.current
            .or(self.around)
            .is_some_and(|(before, new)| before.is_same(new))
    }

    fn member(self, name: &str, new: &'v Value) -> Self {
        match self.current {
            None => self,
            // Old and new always have the same type.
            Some(_) if self.around.is_none() && matches!(name, "apiVersion" | "kind") => Self::default(),
            Some((before, _)) => Self {
                current: before.member(name).map(|before| (before, new)),
                around: self.current,
            },
        }
    }

    fn element(self, new: &'v Value) -> Self {
        match self.current {
            None => self,
            Some((before, _)) => Self {
                current: before.element(new).map(|before| (before, new)),
                around: self.current,
            },
        }
    }
}

/// The part of an object that rules are run on.
#[derive(Clone, Copy)]
pub(super) struct Part<'v> {
    pub(super) value: &'v Value,
    pub(super) schema: &'v Schema,
    pub(super) old: Option<&'v Value>,
    pub(super) ratchet: Ratchet<'v>,
    /// The root of an object or of an embedded resource.
    pub(super) resource: bool,
}

/// Runs every rule of a part and of its descendants.
pub(super) fn run(part: Part<'_>, at: &str, errors: &mut Vec<FieldError>) {
    let Part {
        value,
        schema,
        old,
        ratchet,
        ..
    } = part;
    if value.is_null() || !schema.inside.rules {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    run_here(Part { old, ..part }, at, errors);
    match value {
        Value::Array(items) => {
            let Some(inner) = schema.items.as_deref() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                let old = old.and_then(|old| matching(schema, old, item));
                let part = Part {
                    value: item,
                    schema: inner,
                    old,
                    ratchet: ratchet.element(item),
                    resource: inner.embedded,
                };
                run(part, &inside(at, index.to_string()), errors);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let (known, place) = match (schema.properties.get(name.as_str()), schema.additional()) {
                    (Some(known), _) => (known, joined(at, name)),
                    (None, Some(known)) => (known, inside(at, name)),
                    (None, None) => continue,
                };
                let old = old.and_then(|old| old.get(name));
                let ratchet = ratchet.member(name, value);
                run(
                    Part {
                        value,
                        schema: known,
                        old,
                        ratchet,
                        resource: known.embedded,
                    },
                    &place,
                    errors,
                );
            }
        }
        _ => {}
    }
}

fn run_here(part: Part<'_>, at: &str, errors: &mut Vec<FieldError>) {
    let Part {
        value,
        schema,
        old,
        ratchet,
        resource,
    } = part;
    let is_timeless = !schema.rules.iter().any(|rule| rule.uses_old_self);
    if schema.rules.is_empty() || (is_timeless && schema.kept.has(value)) {
        return;
    }
    let (before, mut is_kept) = (errors.len(), true);
    let subject = seen(value, schema, resource);
    let old_subject = old.filter(|_| !is_timeless);
    let old_subject = old_subject.map(|old| seen(&aligned(old, value, schema), schema, resource));
    let shown = Some(value).filter(|_| !matches!(schema.kind.as_str(), "object" | "array"));
    for rule in &schema.rules {
        let Some(expression) = &rule.expression else {
            continue;
        };
        if rule.uses_old_self && old_subject.is_none() && !rule.optional_old_self {
            continue;
        }
        match evaluate(expression, &subject, old_subject.as_ref(), rule.optional_old_self) {
            Ok(Cel::Bool(true)) => {}
            Ok(_) if !rule.uses_old_self && ratchet.forgives() => is_kept = false,
            Ok(_) => {
                let said = rule.message_expression.as_ref();
                let said = said.and_then(|said| evaluate(said, &subject, old_subject.as_ref(), false).ok());
                errors.push(rule.failure(at, shown, said.and_then(usable)));
            }
            Err(error) => errors.push(broken(rule, &error, schema, at)),
        }
    }
    if is_timeless && is_kept && errors.len() == before {
        schema.kept.add(value);
    }
}

fn evaluate(
    expression: &Expression,
    subject: &Cel,
    old: Option<&Cel>,
    optional: bool,
) -> Result<Cel, ExecutionError> {
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("self", subject.clone());
        let old = match (old, optional) {
            (old, true) => Some(cel_compat::optional(old.cloned())),
            (old, false) => old.cloned(),
        };
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", old);
        }
        context.resolve(expression)
    })
}

/// The message of a message expression, if it is a single non-empty line.
fn usable(said: Cel) -> Option<String> {
    let Cel::String(said) = said else { return None };
    let said = said.trim();
    let good = !said.is_empty() && said.len() <= LONGEST_MESSAGE && !said.contains('\n');
    good.then(|| said.to_owned())
}

/// A rule that failed at run time.
fn broken(rule: &Rule, error: &ExecutionError, schema: &Schema, at: &str) -> FieldError {
    let called = rule.called();
    let detail = match worded(error) {
        Some(why) => format!("{why} evaluating rule: {called}"),
        None => format!(
            "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {called}"
        ),
    };
    fault::invalid(at, Some(&schema.kind.as_str().into()), detail)
}
