//! Walks over a value along with its shape. Upstream this is structured-merge-diff's `typed` package; the file names follow its operations.
//!
//! A value in an object is a map, a list or a scalar. If the type allows several, as inside a custom object without a schema, the value
//! decides.

mod collect;
mod compare;
mod form;
mod join;
mod remove;
mod validate;

pub(super) use collect::collect;
pub(super) use compare::{Comparison, compare, trace};
pub(super) use form::is_named;
pub(super) use join::join;
pub(super) use remove::remove;
pub(super) use validate::validate;
