//! Checks calls of functions.

use super::ast::{Binary, Node, Syntax};
use super::builtins::{self, Function};
use super::check::{Checker, Part, Scope};
use super::code::{Code, Loop, LoopKind, Op};
use super::error::Wrong;
use super::shape::Type;
use super::value::Value;

impl Checker<'_> {
    pub(super) fn builtin(
        &mut self,
        at: usize,
        name: &'static str,
        arguments: &[Node],
    ) -> Result<(Op, Type), Wrong> {
        if let Some(kind) = LoopKind::of(name) {
            return self.loop_over(name, kind, arguments);
        }
        match builtins::function(name) {
            Some(function) => self.function(at, name, function, arguments),
            None => Err(Wrong::new(at, format!("{name}() is not supported"))),
        }
    }

    /// A call of a function of values.
    pub(super) fn function(
        &mut self,
        at: usize,
        name: &str,
        function: Function,
        arguments: &[Node],
    ) -> Result<(Op, Type), Wrong> {
        let (mut codes, mut types) = (Vec::new(), Vec::new());
        for argument in arguments {
            let (code, kind) = self.argument(function, argument)?;
            codes.push(code);
            types.push(kind);
        }
        let kind = builtins::outcome(function, name, &types).map_err(|message| Wrong::new(at, message))?;
        if matches!(function, Function::IsNaN | Function::IsInf)
            && types.iter().all(Type::is_whole)
            && let [code] = codes.as_mut_slice()
        {
            to_floats(code);
        }
        Ok((Op::Call(function, codes), kind))
    }

    fn argument(&mut self, function: Function, argument: &Node) -> Result<Part, Wrong> {
        if function == Function::Get
            && let Syntax::Name(name) = &argument.syntax
            && name == "$env"
        {
            return Err(Wrong::new(
                argument.at,
                "get($env, …) is not supported; write $env.result or $env?.name",
            ));
        }
        self.visit(argument)
    }

    fn loop_over(&mut self, name: &str, kind: LoopKind, arguments: &[Node]) -> Result<(Op, Type), Wrong> {
        // The parser guarantees a list.
        let Some((list, rest)) = arguments.split_first() else {
            return Err(Wrong::new(0, format!("{name}() needs a list")));
        };
        let (code, collection) = self.visit(list)?;
        if !collection.is_list() && !collection.is_unknown() {
            return Err(Wrong::new(
                list.at,
                format!("{name}() works on a list, and this is {}", collection.name()),
            ));
        }
        let item = if collection.is_unknown() {
            Type::Unknown
        } else {
            collection.element()
        };
        let (body, gives) = match rest.first() {
            Some(predicate) => {
                let (code, gives) = self.predicate(name, kind, item.clone(), predicate)?;
                (Some(code), Some(gives))
            }
            None => (None, None),
        };
        let third = match rest.get(1) {
            Some(third) => {
                let (code, order) = self.visit(third)?;
                if kind == LoopKind::SortBy && order != Type::Text && !order.is_unknown() {
                    return Err(Wrong::new(
                        third.at,
                        format!("the order is \"asc\" or \"desc\", and this is {}", order.name()),
                    ));
                }
                Some(code)
            }
            None => None,
        };
        let outcome = match kind {
            LoopKind::All | LoopKind::None | LoopKind::Any | LoopKind::One => Type::Bool,
            LoopKind::Filter if collection.is_unknown() => Type::list(),
            LoopKind::Filter => Type::List(Box::new(item)),
            LoopKind::Map => Type::List(Box::new(gives.unwrap_or(Type::Unknown))),
            LoopKind::Count | LoopKind::FindIndex | LoopKind::FindLastIndex => Type::Int,
            LoopKind::Sum => gives.map_or(item, |gives| gives.plain()),
            LoopKind::Find | LoopKind::FindLast => item,
            LoopKind::GroupBy => Type::Groups,
            LoopKind::SortBy => collection,
            LoopKind::Reduce => gives.unwrap_or(Type::Unknown),
        };
        let inner = Loop {
            kind,
            list: code,
            body,
            third,
            map: None,
            enough: None,
            must_find: false,
        };
        Ok((Op::Loop(Box::new(inner)), outcome))
    }

    fn predicate(&mut self, name: &str, kind: LoopKind, item: Type, predicate: &Node) -> Result<Part, Wrong> {
        self.scopes.push(Scope {
            item,
            has_index: matches!(kind, LoopKind::Map | LoopKind::Reduce),
            has_accumulated: kind == LoopKind::Reduce,
        });
        let visited = self.visit(predicate);
        self.scopes.pop();
        let (code, gives) = visited?;
        let wants_bool = !matches!(
            kind,
            LoopKind::Map | LoopKind::Sum | LoopKind::GroupBy | LoopKind::SortBy | LoopKind::Reduce
        );
        if gives == Type::Nil || wants_bool && gives != Type::Bool && !gives.is_unknown() {
            let wanted = if wants_bool { "a bool" } else { "a value" };
            return Err(Wrong::new(
                predicate.at,
                format!(
                    "{name}() needs {wanted} for every element, and this is {}",
                    gives.name()
                ),
            ));
        }
        Ok((code, gives))
    }
}

/// Number literals for a float argument are floats.
fn to_floats(code: &mut Code) {
    match &mut code.op {
        Op::Constant(value) => {
            if let Value::Int(int) = value {
                *value = Value::Float(*int as f64);
            }
        }
        Op::Negate(inner) => to_floats(inner),
        Op::Binary(Binary::Add | Binary::Subtract | Binary::Multiply, left, right) => {
            to_floats(left);
            to_floats(right);
        }
        _ => {}
    }
}
