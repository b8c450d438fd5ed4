//! Compiles an expression to code: checks names and types, as far as possible without values.
//!
//! The rules are those of Go's expr, so that exactly the expressions are rejected here that Argo Rollouts rejects before evaluation.

use std::sync::Arc;

use super::ast::{Binary, Node, Syntax, Unary};
use super::builtins::{self, Function};
use super::code::{Code, Op, Strict};
use super::error::Wrong;
use super::pattern::Room;
use super::rules::{check_in, in_op, member_type, outcome};
use super::shape::Type;
use super::value::Value;

/// The names available to an expression besides the built-in functions.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    /// `None` if there is no `result`.
    pub(super) result: Option<Type>,
}

impl Environment {
    /// The function of this environment with that name.
    fn function(&self, name: &str) -> Option<Function> {
        let function = match name {
            "isNaN" => return Some(Function::IsNaN),
            "isInf" => return Some(Function::IsInf),
            "asInt" => Function::AsInt,
            "asFloat" => Function::AsFloat,
            "isNil" => Function::IsNil,
            "default" => Function::Default,
            _ => return None,
        };
        self.result.as_ref().map(|_| function)
    }

    fn has(&self, name: &str) -> bool {
        name == "result" && self.result.is_some() || self.function(name).is_some()
    }

    /// The available names, for messages.
    fn names(&self) -> &'static str {
        match self.result {
            Some(_) => "result, asInt, asFloat, isNaN, isInf, isNil, default and the built-in functions",
            None => "isNaN, isInf and the built-in functions such as now() and duration()",
        }
    }
}

/// Checked code, its type, and how many variables it needs.
pub(super) struct Checked {
    pub(super) code: Code,
    pub(super) kind: Type,
    pub(super) variables: usize,
}

/// Checks `node`.
pub(super) fn check(node: &Node, environment: &Environment) -> Result<Checked, Wrong> {
    let mut checker = Checker {
        environment,
        variables: Vec::new(),
        slots: 0,
        scopes: Vec::new(),
        patterns: Room::default(),
    };
    let (code, kind) = checker.visit(node)?;
    Ok(Checked {
        code,
        kind,
        variables: checker.slots,
    })
}

pub(super) type Part = (Code, Type);

pub(super) struct Checker<'a> {
    environment: &'a Environment,
    variables: Vec<(String, usize, Type)>,
    slots: usize,
    pub(super) scopes: Vec<Scope>,
    patterns: Room,
}

/// The meaning of `#`, `#index` and `#acc` inside a predicate.
pub(super) struct Scope {
    pub(super) item: Type,
    pub(super) has_index: bool,
    pub(super) has_accumulated: bool,
}

impl Checker<'_> {
    pub(super) fn visit(&mut self, node: &Node) -> Result<Part, Wrong> {
        let at = node.at;
        let (op, kind) = match &node.syntax {
            Syntax::Nil => (Op::Constant(Value::Nil), Type::Nil),
            Syntax::Bool(bool) => (Op::Constant(Value::Bool(*bool)), Type::Bool),
            Syntax::Int(int) => (Op::Constant(Value::Int(*int)), Type::Int),
            Syntax::Float(float) => (Op::Constant(Value::Float(*float)), Type::Float),
            Syntax::Text(text) => (Op::Constant(Value::text(text)), Type::Text),
            Syntax::Name(name) => self.name(at, name)?,
            Syntax::Pointer(name) => self.pointer(at, name)?,
            Syntax::Unary(operator, operand) => return self.unary(at, *operator, operand),
            Syntax::Binary(operator, left, right) => self.binary(at, *operator, left, right)?,
            Syntax::Comparisons(first, rest) => self.comparisons(at, first, rest)?,
            Syntax::Chain(inner) => {
                let (code, kind) = self.visit(inner)?;
                (Op::Chain(Box::new(code)), kind)
            }
            Syntax::Member { base, key, optional } => self.member(at, base, key, *optional)?,
            Syntax::Slice { base, from, to } => self.slice(at, base, from.as_deref(), to.as_deref())?,
            Syntax::Call(name, arguments) => self.call(at, name, arguments)?,
            Syntax::Method {
                base,
                name,
                optional,
                arguments,
            } => self.method(at, base, name, *optional, arguments)?,
            Syntax::Builtin(name, arguments) => self.builtin(at, name, arguments)?,
            Syntax::Let { name, value, body } => self.variable(at, name, value, body)?,
            Syntax::Sequence(nodes) => {
                let mut codes = Vec::new();
                let mut last = Type::Unknown;
                for node in nodes {
                    let (code, kind) = self.visit(node)?;
                    codes.push(code);
                    last = kind;
                }
                (Op::Sequence(codes), last)
            }
            Syntax::If(condition, then, otherwise) => self.if_else(condition, then.as_deref(), otherwise)?,
            Syntax::List(nodes) => self.list(nodes)?,
            Syntax::Map(pairs) => {
                let mut codes = Vec::new();
                for (key, value) in pairs {
                    codes.push((self.visit(key)?.0, self.visit(value)?.0));
                }
                (Op::Map(codes), Type::Fields)
            }
        };
        Ok((Code::new(at, op), kind))
    }

    fn name(&mut self, at: usize, name: &str) -> Result<(Op, Type), Wrong> {
        if let Some((_, slot, kind)) = self.variables.iter().rev().find(|(known, _, _)| known == name) {
            return Ok((Op::Variable(*slot), kind.clone()));
        }
        if name == "$env" {
            return Err(Wrong::new(
                at,
                "$env is supported only as $env.result and $env[\"result\"]",
            ));
        }
        if let Some(kind) = self.environment.result.as_ref().filter(|_| name == "result") {
            return Ok((Op::Result, kind.clone()));
        }
        if self.environment.function(name).is_some() || builtins::exists(name) {
            return Err(Wrong::new(
                at,
                format!("a function as a value is not supported; call it: {name}(…)"),
            ));
        }
        Err(self.unknown_name(at, name))
    }

    fn unknown_name(&self, at: usize, name: &str) -> Wrong {
        Wrong::new(
            at,
            format!("there is no {name} here; known are {}", self.environment.names()),
        )
    }

    fn pointer(&mut self, at: usize, name: &str) -> Result<(Op, Type), Wrong> {
        let Some(scope) = self.scopes.last() else {
            return Err(Wrong::new(
                at,
                "# stands for an element of a list; there is none here",
            ));
        };
        match name {
            "" => Ok((Op::Item, scope.item.clone())),
            "index" if scope.has_index => Ok((Op::Index, Type::Int)),
            "acc" if scope.has_accumulated => Ok((Op::Accumulated, Type::Unknown)),
            _ => Err(Wrong::new(
                at,
                format!("there is no #{name} here; #index is known in map() and reduce(), #acc in reduce()"),
            )),
        }
    }

    fn unary(&mut self, at: usize, operator: Unary, operand: &Node) -> Result<Part, Wrong> {
        let (code, kind) = self.visit(operand)?;
        let wrong = |wanted: &str, sign: &str| {
            Err(Wrong::new(
                at,
                format!("{sign} needs {wanted}, and this is {}", kind.name()),
            ))
        };
        match operator {
            Unary::Not if kind == Type::Bool || kind.is_unknown() => {
                Ok((Code::new(at, Op::Not(Box::new(code))), Type::Bool))
            }
            Unary::Not => wrong("a bool", "not"),
            Unary::Minus | Unary::Plus if !kind.is_number() && !kind.is_unknown() => {
                wrong("a number", "the sign")
            }
            Unary::Minus => {
                let kind = if kind.is_unknown() { Type::Unknown } else { kind };
                Ok((Code::new(at, Op::Negate(Box::new(code))), kind))
            }
            Unary::Plus => {
                let kind = if kind.is_unknown() { Type::Unknown } else { kind };
                Ok((code, kind))
            }
        }
    }

    fn binary(
        &mut self,
        at: usize,
        operator: Binary,
        left: &Node,
        right: &Node,
    ) -> Result<(Op, Type), Wrong> {
        let (left_code, l) = self.visit(left)?;
        let (right_code, r) = self.visit(right)?;
        if operator == Binary::In {
            check_in(at, &l, &r)?;
            return Ok((in_op(left_code, &l, right_code), Type::Bool));
        }
        if operator == Binary::Matches
            && let Syntax::Text(pattern) = &right.syntax
        {
            self.patterns.compile(pattern, right.at)?;
        }
        let Some(kind) = outcome(operator, &l, &r) else {
            return Err(Wrong::new(
                at,
                format!(
                    "{} has no meaning between {} and {}",
                    operator.sign(),
                    l.name(),
                    r.name()
                ),
            ));
        };
        let (left, right) = (Box::new(left_code), Box::new(right_code));
        let op = match operator {
            Binary::And => Op::And(left, right),
            Binary::Or => Op::Or(left, right),
            Binary::Coalesce => Op::Coalesce(left, right),
            Binary::Equal | Binary::NotEqual => Op::Equal {
                left,
                right,
                strict: match (&l, &r) {
                    (Type::Int, Type::Int) => Strict::Ints,
                    (Type::Text, Type::Text) => Strict::Texts,
                    _ => Strict::No,
                },
                negated: operator == Binary::NotEqual,
            },
            _ => Op::Binary(operator, left, right),
        };
        Ok((op, kind))
    }

    fn comparisons(&mut self, at: usize, first: &Node, rest: &[(Binary, Node)]) -> Result<(Op, Type), Wrong> {
        let (first, mut before) = self.visit(first)?;
        let mut codes = Vec::new();
        for (operator, node) in rest {
            let (code, kind) = self.visit(node)?;
            if outcome(*operator, &before, &kind).is_none() {
                return Err(Wrong::new(
                    at,
                    format!(
                        "{} has no meaning between {} and {}",
                        operator.sign(),
                        before.name(),
                        kind.name()
                    ),
                ));
            }
            codes.push((*operator, code));
            before = kind;
        }
        Ok((Op::Comparisons(Box::new(first), codes), Type::Bool))
    }

    fn member(&mut self, at: usize, base: &Node, key: &Node, optional: bool) -> Result<(Op, Type), Wrong> {
        if let Syntax::Name(name) = &base.syntax
            && name == "$env"
            && !self.variables.iter().any(|(known, _, _)| known == name)
        {
            return self.environment_member(at, key, optional);
        }
        let (base_code, b) = self.visit(base)?;
        let (key_code, k) = self.visit(key)?;
        let kind = member_type(key, &b, &k)?;
        let op = Op::Member {
            base: Box::new(base_code),
            key: Box::new(key_code),
            optional,
        };
        Ok((op, kind))
    }

    fn environment_member(&mut self, at: usize, key: &Node, optional: bool) -> Result<(Op, Type), Wrong> {
        match &key.syntax {
            Syntax::Text(name) if self.environment.has(name) => {
                // Variables cannot shadow the environment: its names are not allowed for them.
                self.name(at, name)
            }
            Syntax::Text(_) if optional => Ok((Op::Constant(Value::Nil), Type::Unknown)),
            Syntax::Text(name) => Err(self.unknown_name(at, name)),
            _ => Err(Wrong::new(
                at,
                "$env is supported only as $env.result and $env[\"result\"]",
            )),
        }
    }

    fn slice(
        &mut self,
        at: usize,
        base: &Node,
        from: Option<&Node>,
        to: Option<&Node>,
    ) -> Result<(Op, Type), Wrong> {
        let (base, kind) = self.visit(base)?;
        let mut bound = |node: Option<&Node>| -> Result<Option<Box<Code>>, Wrong> {
            let Some(node) = node else { return Ok(None) };
            // Go checks the bounds only if it knows the type that is sliced.
            if kind.is_unknown() {
                return Ok(Some(Box::new(self.unchecked(node))));
            }
            let (code, bound) = self.visit(node)?;
            if !bound.is_whole() && !bound.is_unknown() {
                return Err(Wrong::new(
                    node.at,
                    format!(
                        "a slice goes from a whole number to another, and this is {}",
                        bound.name()
                    ),
                ));
            }
            Ok(Some(Box::new(code)))
        };
        if !kind.is_unknown() && !kind.is_list() && kind != Type::Text {
            return Err(Wrong::new(
                at,
                format!("only lists and strings have slices, and this is {}", kind.name()),
            ));
        }
        let (from, to) = (bound(from)?, bound(to)?);
        let kind = if kind.is_unknown() { Type::Unknown } else { kind };
        let base = Box::new(base);
        Ok((Op::Slice { base, from, to }, kind))
    }

    /// Code for what Go does not check: an error is reported at evaluation.
    fn unchecked(&mut self, node: &Node) -> Code {
        let (variables, scopes) = (self.variables.len(), self.scopes.len());
        match self.visit(node) {
            Ok((code, _)) => code,
            Err(wrong) => {
                self.variables.truncate(variables);
                self.scopes.truncate(scopes);
                Code::new(wrong.at, Op::Broken(Arc::from(wrong.message)))
            }
        }
    }

    fn call(&mut self, at: usize, name: &str, arguments: &[Node]) -> Result<(Op, Type), Wrong> {
        if let Some((_, _, kind)) = self.variables.iter().rev().find(|(known, _, _)| known == name) {
            if kind.is_unknown() {
                return Ok((
                    Op::Broken(Arc::from(format!("{name} is not a function"))),
                    Type::Unknown,
                ));
            }
            return Err(Wrong::new(
                at,
                format!("{name} is {}, not a function", kind.name()),
            ));
        }
        if self.environment.has(name) && self.environment.function(name).is_none() {
            return Err(Wrong::new(at, format!("{name} is not a function")));
        }
        let Some(function) = self.environment.function(name) else {
            return Err(self.unknown_name(at, &format!("{name}()")));
        };
        self.function(at, name, function, arguments)
    }

    fn method(
        &mut self,
        at: usize,
        base: &Node,
        name: &str,
        optional: bool,
        arguments: &[Node],
    ) -> Result<(Op, Type), Wrong> {
        if matches!(&base.syntax, Syntax::Name(base) if base == "$env") {
            return Err(Wrong::new(
                at,
                format!("$env.{name}() is not supported; write {name}()"),
            ));
        }
        let (base_code, b) = self.visit(base)?;
        let mut codes = Vec::new();
        let kind = if b.is_unknown() || b.is_map() {
            // Not checked by Go: any value of a map could be a function.
            for argument in arguments {
                codes.push(self.unchecked(argument));
            }
            Type::Unknown
        } else {
            let mut types = Vec::new();
            for argument in arguments {
                let (code, kind) = self.visit(argument)?;
                codes.push(code);
                types.push(kind);
            }
            builtins::method_outcome(&b, name, &types).map_err(|message| Wrong::new(at, message))?
        };
        let op = Op::Method {
            base: Box::new(base_code),
            name: Arc::from(name),
            optional,
            arguments: codes,
        };
        Ok((op, kind))
    }

    fn variable(&mut self, at: usize, name: &str, value: &Node, body: &Node) -> Result<(Op, Type), Wrong> {
        let taken = self.environment.has(name)
            || builtins::exists(name)
            || self.variables.iter().any(|(known, _, _)| known == name);
        if taken {
            return Err(Wrong::new(
                at,
                format!("there already is a {name}; choose another name"),
            ));
        }
        let (value, kind) = self.visit(value)?;
        let slot = self.slots;
        self.slots += 1;
        self.variables.push((name.to_owned(), slot, kind));
        let (body, kind) = self.visit(body)?;
        self.variables.pop();
        Ok((Op::Let(slot, Box::new(value), Box::new(body)), kind))
    }

    fn if_else(
        &mut self,
        condition: &Node,
        then: Option<&Node>,
        otherwise: &Node,
    ) -> Result<(Op, Type), Wrong> {
        let (code, c) = self.visit(condition)?;
        if c != Type::Bool && !c.is_unknown() {
            return Err(Wrong::new(
                condition.at,
                format!("a condition is a bool, and this is {}", c.name()),
            ));
        }
        let (then, t) = match then {
            Some(then) => {
                let (code, kind) = self.visit(then)?;
                (Some(Box::new(code)), kind)
            }
            None => (None, c),
        };
        let (otherwise, o) = self.visit(otherwise)?;
        let kind = match (&t, &o) {
            (Type::Nil, Type::Nil) => Type::Nil,
            (Type::Nil, other) | (other, Type::Nil) => other.clone(),
            (Type::List(a), Type::List(b)) if !a.fits(b) || !b.fits(a) => Type::list(),
            _ if t.fits(&o) => t,
            _ => Type::Unknown,
        };
        Ok((Op::If(Box::new(code), then, Box::new(otherwise)), kind))
    }

    fn list(&mut self, nodes: &[Node]) -> Result<(Op, Type), Wrong> {
        let mut codes = Vec::new();
        let mut element: Option<Type> = None;
        let mut same = true;
        for node in nodes {
            let (code, kind) = self.visit(node)?;
            same &= element.as_ref().is_none_or(|before| before.same_kind(&kind));
            element = Some(kind);
            codes.push(code);
        }
        let element = match element {
            Some(element) if same => element,
            Some(_) => Type::Any,
            None => Type::Unknown,
        };
        Ok((Op::List(codes), Type::List(Box::new(element))))
    }
}
