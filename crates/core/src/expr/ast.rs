//! The syntax tree of an expression.

/// A node of the syntax tree, and its position.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The character that an error about it points at.
    pub(super) at: usize,
    /// Levels of nodes below it: bounded, so that no walk of the tree can overflow the stack.
    pub(super) height: usize,
    pub(super) syntax: Syntax,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub(super) enum Syntax {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Name(String),
    /// `#`, `#index` and `#acc`; the name is empty for `#`.
    Pointer(String),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// `a < b <= c`: every value is compared with the next.
    Comparisons(Box<Node>, Vec<(Binary, Node)>),
    /// The end of a chain of members: the target of an optional one that is missing.
    Chain(Box<Node>),
    Member {
        base: Box<Node>,
        key: Box<Node>,
        optional: bool,
    },
    Slice {
        base: Box<Node>,
        from: Option<Box<Node>>,
        to: Option<Box<Node>>,
    },
    /// A function that is not built in.
    Call(String, Vec<Node>),
    Method {
        base: Box<Node>,
        name: String,
        optional: bool,
        arguments: Vec<Node>,
    },
    /// A built-in function; a predicate is one of its arguments.
    Builtin(&'static str, Vec<Node>),
    Let {
        name: String,
        value: Box<Node>,
        body: Box<Node>,
    },
    Sequence(Vec<Node>),
    /// Without the middle part the condition is the value: `a ?: b`.
    If(Box<Node>, Option<Box<Node>>, Box<Node>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    More,
    LessOrEqual,
    MoreOrEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Coalesce,
}

impl Binary {
    /// The operator with this sign, and its precedence.
    pub(super) fn of(sign: &str) -> Option<(Self, u16)> {
        Some(match sign {
            "or" | "||" => (Self::Or, 10),
            "and" | "&&" => (Self::And, 15),
            "==" => (Self::Equal, 20),
            "!=" => (Self::NotEqual, 20),
            "<" => (Self::Less, 20),
            ">" => (Self::More, 20),
            "<=" => (Self::LessOrEqual, 20),
            ">=" => (Self::MoreOrEqual, 20),
            "in" => (Self::In, 20),
            "matches" => (Self::Matches, 20),
            "contains" => (Self::Contains, 20),
            "startsWith" => (Self::StartsWith, 20),
            "endsWith" => (Self::EndsWith, 20),
            ".." => (Self::Range, 25),
            "+" => (Self::Add, 30),
            "-" => (Self::Subtract, 30),
            "*" => (Self::Multiply, 60),
            "/" => (Self::Divide, 60),
            "%" => (Self::Modulo, 60),
            "**" | "^" => (Self::Power, 100),
            "??" => (Self::Coalesce, 500),
            _ => return None,
        })
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::More => ">",
            Self::LessOrEqual => "<=",
            Self::MoreOrEqual => ">=",
            Self::In => "in",
            Self::Matches => "matches",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::Range => "..",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Power => "**",
            Self::Coalesce => "??",
        }
    }

    pub(super) fn is_ordering(self) -> bool {
        matches!(
            self,
            Self::Less | Self::More | Self::LessOrEqual | Self::MoreOrEqual
        )
    }
}

impl Syntax {
    /// The levels of nodes below.
    pub(super) fn height(&self) -> usize {
        fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> usize {
            nodes.into_iter().map(|node| node.height + 1).max().unwrap_or(0)
        }
        match self {
            Self::Nil
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Name(_)
            | Self::Pointer(_) => 0,
            Self::Unary(_, node) | Self::Chain(node) => of([&**node]),
            Self::Binary(_, left, right) => of([&**left, &**right]),
            Self::Comparisons(first, rest) => {
                of([&**first].into_iter().chain(rest.iter().map(|(_, node)| node)))
            }
            Self::Member { base, key, .. } => of([&**base, &**key]),
            Self::Slice { base, from, to } => of([Some(base), from.as_ref(), to.as_ref()]
                .into_iter()
                .flatten()
                .map(|node| &**node)),
            Self::Call(_, nodes) | Self::Builtin(_, nodes) | Self::Sequence(nodes) | Self::List(nodes) => {
                of(nodes)
            }
            Self::Method { base, arguments, .. } => of([&**base].into_iter().chain(arguments)),
            Self::Let { value, body, .. } => of([&**value, &**body]),
            Self::If(condition, then, otherwise) => of([Some(condition), then.as_ref(), Some(otherwise)]
                .into_iter()
                .flatten()
                .map(|node| &**node)),
            Self::Map(pairs) => of(pairs.iter().flat_map(|(key, value)| [key, value])),
        }
    }
}
