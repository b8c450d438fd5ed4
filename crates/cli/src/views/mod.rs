//! How rollouts are displayed: as a line, a table, a tree, or on the whole screen.

pub(crate) mod checks;
pub(crate) mod columns;
pub(crate) mod custom_columns;
pub(crate) mod gates;
pub(crate) mod hint;
pub(crate) mod invocation;
pub(crate) mod live;
pub(crate) mod mask;
pub(crate) mod output;
pub(crate) mod pod_row;
pub(crate) mod runs;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod tree;
