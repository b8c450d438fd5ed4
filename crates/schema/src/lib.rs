//! The fields and types of Kubernetes' built-in kinds, as data.
//!
//! Both tables are generated from Kubernetes itself (`cargo xtask generate types`, `… resources`). The embedded cluster reads its types
//! from them, and `lint` checks manifests against them, so both agree on every field. No client, no server, no IO.

mod quantity;
mod structural;

pub use self::quantity::Quantity;
pub use self::structural::{Kind, job_spec, kinds, object_meta, resolve, type_name};

/// The types: each field with its type, whether it is required, and how lists of it merge.
pub const TYPES: &str = include_str!("../data/types.json");

/// The resources, by group and version, as a real server's discovery has them.
pub const RESOURCES: &str = include_str!("../data/resources.json");
