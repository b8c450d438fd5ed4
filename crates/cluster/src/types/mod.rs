//! The shape of every type the server knows.
//!
//! Built-in types come from a table that was read off the Go types themselves (`crates/schema/data/types.json`, made by
//! `cargo xtask generate types`): how a field is spelled, whether an empty value is written, how lists merge. Custom types
//! come from their CRD's structural schema. [`Shape`] is the cursor over both that patches and field ownership walk
//! along with a value.
//!
//! - `table`: the built-in table.
//! - `decode`: from loose JSON to exactly what the server would store: unknown fields dropped, empty ones written or not.
//! - `quantity`: lists of resource quantities.

mod decode;
pub(crate) mod quantity;
mod shape;
mod table;

pub(crate) use decode::{Decoded, Mismatch, decode, decode_over};
pub(crate) use shape::{ListKind, Shape};
pub(crate) use table::{Field, Kind, builtin};
