//! The merge strategy of a field.

use super::error::PatchError;
use crate::types::{Kind, Shape};

/// A field of a struct with its merge strategy.
#[derive(Clone, Copy)]
pub(super) struct Field<'s> {
    pub(super) shape: Shape<'s>,
}

impl<'s> Field<'s> {
    /// `merge`, `replace` or nothing; `retainKeys` works wherever a patch uses it.
    pub(super) fn strategy(self) -> &'s str {
        self.shape
            .patch_strategy()
            .split(',')
            .find(|strategy| *strategy != "retainKeys")
            .unwrap_or_default()
    }

    /// Whether lists of the field are merged rather than replaced.
    pub(super) fn merges(self) -> bool {
        self.strategy() == "merge"
    }

    /// The merge key; empty for scalars.
    pub(super) fn key(self) -> &'s str {
        self.shape.patch_merge_key()
    }
}

/// The field of a struct; the errors are upstream's for a patch that does not fit the type.
pub(super) fn lookup<'s>(shape: Shape<'s>, name: &str) -> Result<Field<'s>, PatchError> {
    let kind = match shape {
        Shape::Builtin {
            kind: Kind::Struct(owner),
            ..
        } => {
            if owner
                .described()
                .is_some_and(|described| described.fields.contains_key(name))
            {
                return Ok(Field {
                    shape: shape.member(name),
                });
            }
            let owner = owner.rsplit('.').next().unwrap_or(owner);
            return Err(PatchError::Internal(format!(
                "unable to find api field in struct {owner} for the json field {name:?}"
            )));
        }
        // Raw JSON has no fields that upstream could look up; any field is allowed.
        Shape::Builtin { kind: Kind::Any, .. } => return Ok(Field { shape }),
        Shape::Builtin {
            kind: Kind::Map(_), ..
        } => "map",
        _ => "string",
    };
    let why = format!("merging an object in json but data type is not struct, instead is: {kind}");
    Err(PatchError::Internal(why))
}

/// The field of a struct that is a list.
pub(super) fn lookup_list<'s>(shape: Shape<'s>, name: &str) -> Result<Field<'s>, PatchError> {
    let field = lookup(shape, name)?;
    match field.shape {
        Shape::Builtin {
            kind: Kind::List(element),
            ..
        } if matches!(**element, Kind::List(_)) => {
            Err(PatchError::Internal("unexpected slice of slice".to_owned()))
        }
        Shape::Builtin {
            kind: Kind::List(_) | Kind::Bytes | Kind::Any,
            ..
        } => Ok(field),
        _ => Err(PatchError::Internal(
            "expected slice or array type, but got: struct".to_owned(),
        )),
    }
}
