//! The controller from outside: a set and its pods in, the writes of one sync or the settled end out.
//!
//! One file per part of the behaviour. `lab` is an API server in a few lines, `build` has the objects.

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
