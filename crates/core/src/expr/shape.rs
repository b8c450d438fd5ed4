//! The static types of values.
//!
//! Argo Rollouts compiles a condition with the answer at hand, so the type of `result` is known, and a mismatch such as comparing a number
//! with a string is reported without evaluating. The types inside the answer are unknown.

/// The type of an answer, as far as conditions are checked against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Not known yet: everything that is valid for some answer is accepted.
    Unknown,
    /// There is no answer.
    Nil,
    /// A bool.
    Bool,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A list of `any`.
    List,
    /// A list of numbers, as in the result of a Prometheus query.
    Numbers,
    /// A map.
    Map,
}

/// The static type of a part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Nothing is known.
    Unknown,
    /// An element of a list or map of `any`. Treated as unknown, but every known type fits into it.
    Any,
    Nil,
    Bool,
    Int,
    /// The type of `asInt`: a whole number that is not the `int` of a literal.
    Long,
    Float,
    Text,
    Time,
    Duration,
    /// A list of `any`, with the type of its elements as far as known.
    List(Box<Type>),
    Floats,
    Texts,
    /// A map with string keys.
    Fields,
    /// A map with keys of any type.
    AnyMap,
    /// The type of `groupBy`: a map of lists with keys of any type.
    Groups,
}

impl From<Shape> for Type {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Unknown => Self::Unknown,
            Shape::Nil => Self::Nil,
            Shape::Bool => Self::Bool,
            Shape::Number => Self::Float,
            Shape::Text => Self::Text,
            Shape::List => Self::list(),
            Shape::Numbers => Self::Floats,
            Shape::Map => Self::Fields,
        }
    }
}

impl Type {
    /// A list of `any` with unknown elements.
    pub(super) fn list() -> Self {
        Self::List(Box::new(Self::Any))
    }

    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown | Self::Any)
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Int | Self::Long)
    }

    pub(super) fn is_number(&self) -> bool {
        self.is_whole() || *self == Self::Float
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::Floats | Self::Texts)
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Self::Fields | Self::AnyMap | Self::Groups)
    }

    /// The type of an element of a list or a value of a map.
    pub(super) fn element(&self) -> Self {
        match self {
            Self::List(element) => (**element).clone(),
            Self::Floats => Self::Float,
            Self::Texts => Self::Text,
            Self::Fields | Self::AnyMap => Self::Any,
            Self::Groups => Self::list(),
            _ => Self::Unknown,
        }
    }

    /// The same with unknown elements: functions return no more.
    pub(super) fn plain(&self) -> Self {
        match self {
            Self::List(_) => Self::list(),
            Self::Unknown => Self::Any,
            other => other.clone(),
        }
    }

    /// Whether a value of this type is valid where `other` is required.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Any) => true,
            (Self::Nil, other) => other.is_list() || other.is_map(),
            (Self::Unknown, _) | (_, Self::Unknown | Self::Nil) => false,
            (_, Self::Any) => true,
            (Self::List(_), Self::List(_)) => true,
            (a, b) => a == b,
        }
    }

    /// Whether `==` is defined for the two.
    pub(super) fn comparable(&self, other: &Self) -> bool {
        self.is_unknown()
            || other.is_unknown()
            || *self == Self::Nil
            || *other == Self::Nil
            || self.is_number() && other.is_number()
            || self.is_list() && other.is_list()
            || self.fits(other)
    }

    /// Whether two list elements are of the same kind: Go's kinds are coarser than its types.
    pub(super) fn same_kind(&self, other: &Self) -> bool {
        let kind = |of: &Self| match of {
            Self::Unknown | Self::Nil => 0,
            Self::Any => 1,
            Self::Bool => 2,
            Self::Int => 3,
            Self::Long | Self::Duration => 4,
            Self::Float => 5,
            Self::Text => 6,
            Self::Time => 7,
            Self::List(_) | Self::Floats | Self::Texts => 8,
            Self::Fields | Self::AnyMap | Self::Groups => 9,
        };
        kind(self) == kind(other)
    }

    /// The name for messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Unknown | Self::Any => "a value that is not known yet",
            Self::Nil => "nil",
            Self::Bool => "a bool",
            Self::Int | Self::Long => "a whole number",
            Self::Float => "a number",
            Self::Text => "a string",
            Self::Time => "a time",
            Self::Duration => "a duration",
            Self::List(_) => "a list",
            Self::Floats => "a list of numbers",
            Self::Texts => "a list of strings",
            Self::Fields | Self::AnyMap | Self::Groups => "a map",
        }
    }
}
