//! Infers the types in a rule: enough to find fields, names and functions that do not exist, and operators that are not defined for their
//! operands. Anything it cannot decide is accepted.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr};
use kube_cel::cel::parser::Expression;

use super::locate::{Locator, Mark};
use super::types::{Type, has_overload, literal_type, of_schema, spelled};
use crate::custom::schema::Schema;

/// Functions other than operators and macros, plain and after a dot.
const FUNCTIONS: &str = "\
    add asApproximateFloat asInteger bool bytes charAt cidr compareTo contains containsCIDR containsIP \
    distinct double duration dyn endsWith family find findAll first flatten format getDate \
    getDayOfMonth getDayOfWeek getDayOfYear getEscapedPath getFullYear getHost getHostname getHours \
    getMilliseconds getMinutes getMonth getPort getQuery getScheme getSeconds hasValue indexOf int ip \
    isCIDR isGlobalUnicast isGreaterThan isIP isInteger isLessThan isLinkLocalMulticast \
    isLinkLocalUnicast isLoopback isQuantity isSemver isSorted isURL isUnspecified join last \
    lastIndexOf lowerAscii major masked matches max min minor or orValue patch prefixLength quantity \
    replace reverse semver sign size slice sort split startsWith string sub substring sum timestamp \
    trim type uint upperAscii url validate value";
/// Macros of the real server that the `cel` crate lacks. Rejected, so that no rule is silently skipped.
const MISSING: &[&str] = &[
    "all",
    "exists",
    "existsOne",
    "exists_one",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
];
/// The namespaces of functions: `math.greatest(1, 2)`.
const NAMESPACES: &[&str] = &["format", "google", "ip", "lists", "optional", "sets", "strings"];
/// Types are values too.
const TYPE_NAMES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// The type of a rule's expression, or the compiler's errors.
pub(super) fn infer(
    source: &str,
    expression: &Expression,
    schema: &Schema,
    resource: bool,
    optional_old_self: bool,
) -> Result<Type, String> {
    let own = of_schema(schema, resource).unwrap_or(Type::Dyn);
    let old = if optional_old_self {
        Type::Optional(Box::new(own.clone()))
    } else {
        own.clone()
    };
    let scope = BTreeMap::from([("self".to_owned(), own), ("oldSelf".to_owned(), old)]);
    let mut checker = Checker {
        locator: Locator::new(source),
        scope,
        here: 0,
        faults: Vec::new(),
    };
    let kind = checker.expression(expression);
    if checker.faults.is_empty() {
        return Ok(kind);
    }
    checker.faults.sort();
    let faults: Vec<_> = checker
        .faults
        .iter()
        .map(|(at, what)| checker.locator.report(*at, what))
        .collect();
    Err(faults.join("\n"))
}

struct Checker<'s> {
    locator: Locator<'s>,
    scope: BTreeMap<String, Type>,
    /// The offset of the expression that was visited last.
    here: usize,
    /// The offset in the source, and the error.
    faults: Vec<(usize, String)>,
}

impl Checker<'_> {
    fn expression(&mut self, expression: &Expression) -> Type {
        match &expression.expr {
            Expr::Unspecified => Type::Dyn,
            Expr::Struct(made) => {
                let at = self.locator.next(Mark::Message(&made.type_name));
                self.faults.push((
                    at,
                    format!("undeclared reference to '{}' (in container '')", made.type_name),
                ));
                Type::Dyn
            }
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(items) => {
                let kinds: Vec<_> = items.elements.iter().map(|item| self.expression(item)).collect();
                let first = kinds.first().cloned().unwrap_or(Type::Dyn);
                let same = kinds.iter().all(|kind| *kind == first);
                Type::List(Box::new(if same { first } else { Type::Dyn }))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.expression(&entry.key);
                        self.expression(&entry.value);
                    }
                }
                Type::Map(Box::new(Type::Dyn))
            }
        }
    }

    fn name(&mut self, name: &str) -> Type {
        let at = self.locator.next(Mark::Name(name));
        self.here = at;
        if let Some(kind) = self.scope.get(name) {
            return kind.clone();
        }
        if !TYPE_NAMES.contains(&name) && !NAMESPACES.contains(&name) && !name.starts_with('@') {
            self.faults
                .push((at, format!("undeclared reference to '{name}' (in container '')")));
        }
        Type::Dyn
    }

    fn select(&mut self, select: &SelectExpr) -> Type {
        let operand = self.expression(&select.operand);
        let at = self.locator.next(Mark::Field(&select.field));
        self.here = at;
        let found = self.field(operand, &select.field, at);
        if select.test { Type::Bool } else { found }
    }

    fn field(&mut self, operand: Type, field: &str, at: usize) -> Type {
        match operand {
            Type::Object(fields) => match fields.get(field).or_else(|| fields.get(&format!("__{field}__"))) {
                Some(kind) => kind.clone(),
                None => {
                    self.faults.push((at, format!("undefined field '{field}'")));
                    Type::Dyn
                }
            },
            Type::Map(inner) => *inner,
            Type::Dyn => Type::Dyn,
            Type::Optional(inner) => match self.field(*inner, field, at) {
                optional @ Type::Optional(_) => optional,
                kind => Type::Optional(Box::new(kind)),
            },
            scalar => {
                self.faults.push((
                    at,
                    format!("type '{}' does not support field selection", spelled(&scalar)),
                ));
                Type::Dyn
            }
        }
    }

    fn call(&mut self, call: &CallExpr) -> Type {
        let name = call.func_name.as_str();
        if let Some(operator) = operator_text(name) {
            return self.operator(name, operator, &call.args);
        }
        match (name, call.args.as_slice()) {
            ("_?_:_", [condition, yes, no]) => return self.choice(condition, yes, no),
            ("_?._", [operand, field]) => {
                let operand = self.expression(operand);
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                    return Type::Dyn;
                };
                let field = field.inner().to_owned();
                let at = self.locator.next(Mark::Field(&field));
                return match self.field(operand, &field, at) {
                    optional @ Type::Optional(_) => optional,
                    kind => Type::Optional(Box::new(kind)),
                };
            }
            ("_[_]", [operand, index]) => {
                let operand = self.expression(operand);
                self.expression(index);
                return match operand {
                    Type::List(inner) | Type::Map(inner) => *inner,
                    _ => Type::Dyn,
                };
            }
            _ => {}
        }
        self.function(call)
    }

    fn function(&mut self, call: &CallExpr) -> Type {
        let name = call.func_name.as_str();
        let namespaced = match call.target.as_deref().map(|target| &target.expr) {
            Some(Expr::Ident(target)) => {
                NAMESPACES.contains(&target.as_str()) && !self.scope.contains_key(target)
            }
            _ => false,
        };
        let target = match &call.target {
            Some(target) if !namespaced => Some(self.expression(target)),
            _ => None,
        };
        let at = self.locator.next(Mark::Call(name));
        self.here = at;
        if MISSING.contains(&name) {
            self.faults.push((
                at,
                format!("the macro '{name}' in this form is not supported by this server"),
            ));
            return Type::Dyn;
        }
        call.args.iter().for_each(|argument| {
            self.expression(argument);
        });
        self.here = at;
        if !namespaced
            && !name.starts_with(['_', '@', '!', '-'])
            && !FUNCTIONS.split(' ').any(|known| known == name)
        {
            self.faults
                .push((at, format!("undeclared reference to '{name}' (in container '')")));
        }
        match (name, target) {
            ("size" | "indexOf" | "lastIndexOf" | "int" | "compareTo", _) => Type::Int,
            (
                "contains" | "startsWith" | "endsWith" | "matches" | "hasValue" | "isSorted" | "isQuantity"
                | "isURL" | "isIP" | "isCIDR" | "bool" | "isGreaterThan" | "isLessThan",
                _,
            ) => Type::Bool,
            (
                "format" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "join" | "charAt"
                | "string",
                Some(_),
            )
            | ("string", None) => Type::String,
            ("double", None) => Type::Double,
            ("uint", None) => Type::Uint,
            ("duration", None) => Type::Duration,
            ("timestamp", None) => Type::Timestamp,
            ("value" | "orValue", Some(Type::Optional(inner))) => *inner,
            _ => Type::Dyn,
        }
    }

    fn choice(&mut self, condition: &Expression, yes: &Expression, no: &Expression) -> Type {
        let condition = self.expression(condition);
        let at = self.locator.next(Mark::Operator("?"));
        let (yes, no) = (self.expression(yes), self.expression(no));
        self.here = at;
        if yes == no {
            return yes;
        }
        if !has_overload("==", &yes, &no) {
            self.no_overload("_?_:_", &[&condition, &yes, &no], at);
        }
        Type::Dyn
    }

    fn no_overload(&mut self, name: &str, kinds: &[&Type], at: usize) {
        let kinds: Vec<_> = kinds.iter().map(|kind| spelled(kind)).collect();
        let applied = kinds.join(", ");
        self.faults.push((
            at,
            format!("found no matching overload for '{name}' applied to '({applied})'"),
        ));
    }

    /// One side of `&&` or `||`.
    fn side(&mut self, side: &Expression) -> Type {
        let kind = self.expression(side);
        if !matches!(kind, Type::Bool | Type::Dyn) {
            self.faults.push((
                self.here,
                format!("expected type 'bool' but found '{}'", spelled(&kind)),
            ));
        }
        Type::Bool
    }

    fn operator(&mut self, name: &str, operator: &str, arguments: &[Expression]) -> Type {
        let (left, right) = match arguments {
            [left, right] if matches!(operator, "&&" | "||") => {
                self.side(left);
                let at = self.locator.next(Mark::Operator(operator));
                self.side(right);
                self.here = at;
                return Type::Bool;
            }
            [only] => {
                let at = self.locator.next(Mark::Operator(operator));
                let kind = self.expression(only);
                self.here = at;
                if name == "!_" && !matches!(kind, Type::Bool | Type::Dyn) {
                    self.no_overload(name, &[&kind], at);
                }
                return if name == "!_" { Type::Bool } else { kind };
            }
            [left, right] => {
                let left = self.expression(left);
                let at = self.locator.next(Mark::Operator(operator));
                let right = self.expression(right);
                self.here = at;
                if !has_overload(operator, &left, &right) {
                    self.no_overload(name, &[&left, &right], at);
                }
                (left, right)
            }
            _ => return Type::Dyn,
        };
        match operator {
            "+" | "-" | "*" | "/" | "%" => match (left, right) {
                (Type::Timestamp, Type::Timestamp) => Type::Duration,
                (Type::Dyn, _) | (_, Type::Dyn) => Type::Dyn,
                (left, _) => left,
            },
            _ => Type::Bool,
        }
    }

    /// The expansion of a macro: its range, and the parts of its loop that the author wrote.
    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Type {
        let range = self.expression(&comprehension.iter_range);
        let element = match &range {
            Type::List(inner) => (**inner).clone(),
            Type::Map(_) => Type::String,
            _ => Type::Dyn,
        };
        self.locator.next(Mark::Name(&comprehension.iter_var));
        let variable = comprehension.iter_var.clone();
        let hidden = self.scope.insert(variable.clone(), element);
        let hidden_accumulator = self.scope.insert(comprehension.accu_var.clone(), Type::Dyn);
        let made = self.step(&comprehension.loop_step, &comprehension.accu_var);
        restore(&mut self.scope, variable, hidden);
        restore(
            &mut self.scope,
            comprehension.accu_var.clone(),
            hidden_accumulator,
        );
        match (&comprehension.accu_init.expr, made) {
            (Expr::List(_), Some(made)) => Type::List(Box::new(made)),
            (Expr::List(_), None) => range,
            _ => Type::Bool,
        }
    }

    fn step(&mut self, step: &Expression, accumulator: &str) -> Option<Type> {
        let is_accumulator = |e: &Expression| matches!(&e.expr, Expr::Ident(name) if name == accumulator);
        let Expr::Call(call) = &step.expr else {
            return (!is_accumulator(step)).then(|| self.expression(step));
        };
        let grows = call.args.first().is_some_and(is_accumulator);
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("_+_", [_, added]) if grows => match &added.expr {
                Expr::List(items) => items.elements.first().map(|item| self.expression(item)),
                _ => None,
            },
            ("_&&_" | "_||_", [_, condition]) if grows => Some(self.expression(condition)),
            ("_?_:_", [condition, yes, no]) if is_accumulator(no) => {
                self.expression(condition);
                self.step(yes, accumulator)
            }
            _ => Some(self.expression(step)),
        }
    }
}

fn restore(scope: &mut BTreeMap<String, Type>, name: String, hidden: Option<Type>) {
    match hidden {
        Some(kind) => scope.insert(name, kind),
        None => scope.remove(&name),
    };
}

/// The sign of an operator; `None` for functions.
fn operator_text(name: &str) -> Option<&str> {
    match name {
        "@in" => Some("in"),
        "!_" => Some("!"),
        "-_" => Some("-"),
        "_?_:_" | "_[_]" | "_[?_]" | "_?._" => None,
        name => name.strip_prefix('_')?.strip_suffix('_'),
    }
}
