//! Custom resources: CRDs that arrive at run time, and the objects of the types they define.
//!
//! In flow CRDs and custom objects as JSON; out flow decoded objects, defaults, errors and statuses. Everything here is pure:
//! no IO, and time comes as a parameter.
//!
//! - `definition`: [`CustomType`], what a CRD defines; `crd` judges the CRD first.
//! - `decode`, `default`, `validate`: what happens to an object on its way in, in this order.
//! - `established`: the status that the server writes into a CRD.
//! - `scale`: replicas wherever the CRD says they are.

mod cel;
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
mod mend;
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
