//! Changes to objects: the four kinds of patch, and field ownership.
//!
//! In flow a live object, the client's patch and the [`Shape`](crate::types::Shape) of its type; out flows the new object or the real
//! server's error. Everything here is a pure function: no IO, no clock, no store.
//!
//! - `strategic` (with `strategy`, `lists` and `order`), `merge`, `json`: patches that list changes.
//! - `apply` (with `conflict` and `last_applied`): the patch with the desired fields.
//! - `managed` (with `scale`): ownership after every other write. Callers find all of ownership here.
//! - `managers`, `owned`, `fields`, `element`: the `managedFields` of an object, parsed, stored and encoded; `transition`: a cache of
//!   earlier changes.
//! - `typed`: walks over a value along with its shape, like structured-merge-diff upstream.

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
