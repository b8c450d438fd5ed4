//! JSON literals in code.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{List, Map, Name, Number, Value};

/// JSON as in `crate::json::json!`. A value of an expression must be [`ToJson`].
macro_rules! json {
    (@fields $map:ident) => {};
    (@fields $map:ident $name:tt : null $(, $($rest:tt)*)?) => {
        $map.push(($crate::json::Name::from($name), $crate::json::Value::Null));
        $($crate::json::json!(@fields $map $($rest)*);)?
    };
    (@fields $map:ident $name:tt : [$($items:tt)*] $(, $($rest:tt)*)?) => {
        $map.push(($crate::json::Name::from($name), $crate::json::json!([$($items)*])));
        $($crate::json::json!(@fields $map $($rest)*);)?
    };
    (@fields $map:ident $name:tt : {$($fields:tt)*} $(, $($rest:tt)*)?) => {
        $map.push(($crate::json::Name::from($name), $crate::json::json!({$($fields)*})));
        $($crate::json::json!(@fields $map $($rest)*);)?
    };
    (@fields $map:ident $name:tt : $value:expr $(, $($rest:tt)*)?) => {
        $map.push(($crate::json::Name::from($name), $crate::json::ToJson::to_json(&$value)));
        $($crate::json::json!(@fields $map $($rest)*);)?
    };
    (@items $list:ident) => {};
    (@items $list:ident null $(, $($rest:tt)*)?) => {
        $list.push($crate::json::Value::Null);
        $($crate::json::json!(@items $list $($rest)*);)?
    };
    (@items $list:ident [$($items:tt)*] $(, $($rest:tt)*)?) => {
        $list.push($crate::json::json!([$($items)*]));
        $($crate::json::json!(@items $list $($rest)*);)?
    };
    (@items $list:ident {$($fields:tt)*} $(, $($rest:tt)*)?) => {
        $list.push($crate::json::json!({$($fields)*}));
        $($crate::json::json!(@items $list $($rest)*);)?
    };
    (@items $list:ident $value:expr $(, $($rest:tt)*)?) => {
        $list.push($crate::json::ToJson::to_json(&$value));
        $($crate::json::json!(@items $list $($rest)*);)?
    };
    (null) => {
        $crate::json::Value::Null
    };
    ([]) => {
        $crate::json::Value::Array(Default::default())
    };
    ([$($items:tt)+]) => {{
        #[allow(clippy::vec_init_then_push, reason = "one item after the other is how a macro can read them")]
        let list = {
            let mut list = Vec::new();
            $crate::json::json!(@items list $($items)+);
            list
        };
        $crate::json::Value::from(list)
    }};
    ({}) => {
        $crate::json::Value::Object($crate::json::Map::new())
    };
    ({$($fields:tt)+}) => {{
        #[allow(clippy::vec_init_then_push, reason = "one field after the other is how a macro can read them")]
        let fields = {
            let mut fields: Vec<($crate::json::Name, $crate::json::Value)> = Vec::new();
            $crate::json::json!(@fields fields $($fields)+);
            fields
        };
        $crate::json::Value::Object(fields.into_iter().collect())
    }};
    ($value:expr) => {
        $crate::json::ToJson::to_json(&$value)
    };
}
pub(crate) use json;

/// The types allowed in [`json!`].
pub(crate) trait ToJson {
    fn to_json(&self) -> Value;
}

impl ToJson for Value {
    fn to_json(&self) -> Value {
        self.clone()
    }
}

impl ToJson for Map {
    fn to_json(&self) -> Value {
        Value::Object(self.clone())
    }
}

impl ToJson for str {
    fn to_json(&self) -> Value {
        self.into()
    }
}

impl ToJson for String {
    fn to_json(&self) -> Value {
        self.as_str().into()
    }
}

impl ToJson for Name {
    fn to_json(&self) -> Value {
        self.into()
    }
}

impl ToJson for Number {
    fn to_json(&self) -> Value {
        Value::Number(self.clone())
    }
}

impl<T: ToJson + ?Sized> ToJson for &T {
    fn to_json(&self) -> Value {
        (**self).to_json()
    }
}

impl<T: ToJson + ?Sized> ToJson for Arc<T> {
    fn to_json(&self) -> Value {
        (**self).to_json()
    }
}

impl<T: ToJson + ToOwned + ?Sized> ToJson for Cow<'_, T> {
    fn to_json(&self) -> Value {
        (**self).to_json()
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }
}

impl<T: ToJson> ToJson for [T] {
    fn to_json(&self) -> Value {
        self.iter().map(T::to_json).collect()
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json(&self) -> Value {
        self.as_slice().to_json()
    }
}

impl<T: ToJson, const N: usize> ToJson for [T; N] {
    fn to_json(&self) -> Value {
        self.as_slice().to_json()
    }
}

impl<K: AsRef<str>, V: ToJson> ToJson for BTreeMap<K, V> {
    fn to_json(&self) -> Value {
        let fields = self
            .iter()
            .map(|(name, value)| (Name::from(name.as_ref()), value.to_json()));
        Value::Object(fields.collect())
    }
}

macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl ToJson for $kind {
            fn to_json(&self) -> Value {
                (*self).into()
            }
        }

        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::Number(value.into())
            }
        }

        impl PartialEq<$kind> for Value {
            fn eq(&self, other: &$kind) -> bool {
                matches!(self, Self::Number(number) if *number == Number::from(*other))
            }
        }
    )*};
}
plain!(u8, i32, i64, u16, u32, u64, usize);

impl ToJson for bool {
    fn to_json(&self) -> Value {
        Value::Bool(*self)
    }
}

impl ToJson for f64 {
    fn to_json(&self) -> Value {
        (*self).into()
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// A float that JSON cannot represent is null.
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Number::from_f64(value).map_or(Self::Null, Self::Number)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Self::String(text)
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(text: Cow<'_, str>) -> Self {
        Self::String(text.into())
    }
}

impl From<&Name> for Value {
    fn from(name: &Name) -> Self {
        match name {
            Name::Known(name) => (*name).into(),
            Name::Other(name) => Self::String(name.clone()),
        }
    }
}

impl From<Map> for Value {
    fn from(fields: Map) -> Self {
        Self::Object(fields)
    }
}

impl From<List> for Value {
    fn from(items: List) -> Self {
        Self::Array(items)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().map(Into::into).collect()
    }
}

impl<T: ToJson> From<&[T]> for Value {
    fn from(items: &[T]) -> Self {
        items.to_json()
    }
}

impl<T: ToJson, const N: usize> From<[T; N]> for Value {
    fn from(items: [T; N]) -> Self {
        items.to_json()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl PartialEq<str> for Value {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl PartialEq<String> for Value {
    fn eq(&self, other: &String) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Value> for str {
    fn eq(&self, other: &Value) -> bool {
        other == self
    }
}

impl PartialEq<Value> for &str {
    fn eq(&self, other: &Value) -> bool {
        other == *self
    }
}

impl PartialEq<Value> for String {
    fn eq(&self, other: &Value) -> bool {
        other == self.as_str()
    }
}

impl PartialEq<bool> for Value {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}
