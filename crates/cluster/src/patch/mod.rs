//! Changes to objects: the four kinds of patch, and who owns which field.
//!
//! In flow a live object, what a client sent and the [`Shape`](crate::types::Shape) of its type; out flows
//! the new object or the refusal in the words of the real server. Everything here is a pure function: no IO,
//! no clock, no store.
//!
//! - `strategic` (with `strategy`, `lists` and `order`), `merge`, `json`: the patches that say what to
//!   change.
//! - `apply` (with `conflict` and `last_applied`): the patch that says what should be.
//! - `managed` (with `scale`): who owns what after every other write. Callers find all of ownership here.
//! - `managers`, `owned`, `fields`, `element`: the `managedFields` of an object, read, kept and written; `transition`: how they
//!   moved before.
//! - `typed`: walks over a value along with its shape; what structured-merge-diff does upstream.

mod apply;
#[cfg(test)]
mod arbitrary;
mod conflict;
mod element;
mod error;
mod fields;
mod json;
mod last_applied;
mod lists;
pub(crate) mod managed;
mod managers;
mod merge;
mod order;
mod owned;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replay;
mod scale;
mod strategic;
mod strategy;
mod transition;
mod typed;

pub(crate) use error::PatchError;
pub(crate) use json::json;
pub(crate) use managers::Managers;
pub(crate) use merge::merge;
pub(crate) use strategic::strategic;
