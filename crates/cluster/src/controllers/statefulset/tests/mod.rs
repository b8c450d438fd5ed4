//! The controller from outside: in flow a set and its pods, out flow the writes of one sync or the final state.
//!
//! One file per part of the behaviour. `lab` is a minimal API server, `build` has the objects.

mod any_shape;
mod build;
mod claiming;
mod identity;
mod lab;
mod ordering;
mod retention;
mod revisions;
mod rolling;
mod status;
mod triggers;

use self::build::{pod, set};
use self::lab::{Lab, NOW};
