//! The shape of every type that the server serves.
//!
//! Built-in types come from a table generated from the Go types (`crates/schema/data/types.json`, made by `cargo xtask generate types`):
//! the name of a field, whether an empty value is written, how lists merge. Custom types come from their CRD's structural schema. [`Shape`]
//! is the cursor over both, which patches and field ownership move along with a value.
//!
//! - `table`: the built-in table.
//! - `decode`: from JSON to exactly what the server would store: unknown fields dropped, empty ones written or not.
//! - `quantity`: lists of resource quantities.

mod decode;
pub(crate) mod quantity;
mod shape;
mod table;

pub(crate) use decode::{Decoded, Mismatch, decode, decode_over};
pub(crate) use shape::{ListKind, Shape};
pub(crate) use table::{Field, Kind, builtin};
