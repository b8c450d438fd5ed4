//! User input: which cluster, which rollouts, and which revision of them.

pub(crate) mod access;
pub(crate) mod arg_compat;
pub(crate) mod manifest;
pub(crate) mod name;
pub(crate) mod revision_guard;
pub(crate) mod target;
