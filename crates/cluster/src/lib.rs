//! An embedded Kubernetes: an API server and workload controllers in one crate, compared with the real one by tests.
//!
//! A tool for tests and previews: production is always a real cluster. One store over JSON, one table of resources, and code over that
//! table; it rejects what it does not support with a Status, never with a silent 200. `docs/design/fidelity.md` lists what is the same as
//! on a real cluster, what is not, and which test shows it.
//!
//! - [`Cluster`]: start one, get clients in this process, or serve it on a socket.
//! - [`faults`]: faults between a client and the server.

mod access;
mod audit;
mod builtin;
mod cluster;
mod controllers;
mod custom;
mod encode_cache;
mod events;
pub mod faults;
mod go;
mod hash;
mod http;
mod json;
mod list_filter;
mod names;
mod object;
mod patch;
mod resource;
mod selector;
mod server;
mod status;
mod store;
mod table;
mod types;

pub use audit::Entry;
pub use cluster::{Cluster, Commit, Commits, Options, Shown};
pub use controllers::MaxUnavailable;
