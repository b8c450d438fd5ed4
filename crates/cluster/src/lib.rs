//! An embedded Kubernetes: an API server and workload controllers in one crate, held to the real one.
//!
//! A test and preview tool: production is always a real cluster. One store over JSON, one table of resources, and code over
//! that table; what it does not support it refuses with a Status, never with a silent 200. `docs/design/fidelity.md` says
//! what is the same as on a real cluster, what is not, and which test shows it.
//!
//! - [`Cluster`]: start one, get clients in this process, or serve it on a socket.
//! - [`faults`]: what can go wrong between a client and the server.

mod access;
mod audit;
mod builtin;
mod cluster;
mod controllers;
mod custom;
mod events;
pub mod faults;
mod go;
mod hash;
mod http;
mod json;
mod names;
mod object;
mod patch;
mod resource;
mod selected;
mod selector;
mod server;
mod status;
mod store;
mod table;
mod told;
mod types;

pub use audit::Entry;
pub use cluster::{Cluster, Commit, Commits, Options, Shown};
pub use controllers::MaxUnavailable;
