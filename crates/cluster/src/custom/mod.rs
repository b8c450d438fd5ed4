//! Custom resources: CRDs created at run time, and the objects of their types.
//!
//! In flow CRDs and custom objects as JSON; out flow decoded objects, defaults, errors and statuses. Everything here is pure: no IO, and
//! time comes as a parameter.
//!
//! - `definition`: [`CustomType`], the type that a CRD defines; `crd` validates the CRD first.
//! - `decode`, `default`, `validate`: the processing of an object from a client, in this order.
//! - `established`: the status that the server sets on a CRD.
//! - `scale`: the replicas at the paths that the CRD declares.

mod cel;
mod cel_compat;
mod correlate;
mod crd;
mod decode;
mod default;
mod definition;
mod embedded;
mod established;
mod fault;
mod field_path;
mod format;
mod list;
mod number;
mod outcome;
mod pattern;
mod rules;
mod scale;
mod schema;
#[cfg(test)]
mod tests;
mod validate;
mod value;

pub(crate) use crd::decode_schemas;
pub(crate) use decode::{decode, decode_applied};
pub(crate) use default::default;
pub(crate) use definition::{Column, CustomType, Scope};
pub(crate) use established::crd_status;
#[cfg(test)]
pub(crate) use validate::validate;
pub(crate) use validate::{validate_after, validate_status};
