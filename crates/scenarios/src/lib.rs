//! Behaviours as readable async functions, each run on every control plane.
//!
//! A scenario gets a [`Cluster`](harness::Cluster) (a namespace of its own with a programmable kubelet in it), acts on
//! it as a user would, and says what it expects to see. It never sleeps: every expectation waits on a watch, with a
//! deadline, and a broken one shows what was expected, what was seen and the pods' time line.
//!
//! - [`differential`]: random sequences of what users do, played on the embedded cluster and on a real one and compared.
//! - [`harness`]: cluster handle, set handle, observation, expectations, the test runner.
//! - [`kubectl`]: transcripts of kubectl, answered the same by the embedded cluster and by a real one.
//! - [`kubernetes`]: what Kubernetes itself does, with no operator at all. The yardstick for everything else.
//! - [`simulation`]: the same under faults, with every commit checked.
//! - [`phasedrollout`]: what the operator does for PhasedRollouts.
//! - [`preview`]: what `stateward plan` says, held to what happens.
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
