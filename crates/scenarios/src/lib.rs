//! Behaviours as readable async functions, each run on every control plane.
//!
//! A scenario gets a [`Cluster`](harness::Cluster) (a namespace of its own with a simulated kubelet), acts on it as a user would, and
//! states what it expects. It never sleeps: every expectation waits on a watch, with a deadline, and a failed one shows what was expected,
//! what was seen and the pods' time line.
//!
//! - [`differential`]: random sequences of user actions, run on the embedded cluster and on a real one and compared.
//! - [`harness`]: cluster handle, set handle, observation, expectations, the test runner.
//! - [`kubectl`]: transcripts of kubectl, answered the same by the embedded cluster and by a real one.
//! - [`kubernetes`]: what Kubernetes itself does, without an operator. The reference for everything else.
//! - [`simulation`]: the operator's scenarios under faults, with every commit checked.
//! - [`phasedrollout`]: what the operator does for PhasedRollouts.
//! - [`preview`]: the output of `stateward plan`, compared with what happens.
//! - [`rolloutplugin`]: what the operator does for RolloutPlugins.
//! - [`requests`]: random API requests, sent to both and compared answer by answer.

pub mod differential;
pub mod harness;
pub mod kubectl;
pub mod kubernetes;
pub mod phasedrollout;
pub mod preview;
pub mod requests;
pub mod rolloutplugin;
pub mod simulation;
