//! A fake scheduler and kubelet whose pods do what they are told.
//!
//! It is an ordinary API client, so the same code serves an embedded cluster in virtual time and a real control
//! plane. In flow watches of pods and claims, the rules in [`Behaviours`], and time from a
//! [`Clock`](stateward_clock::Clock); out flow bindings, pod statuses, final deletes, Nodes with their heartbeats,
//! and pretend volumes. Nothing polls, and nothing is random but what the seed says.
//!
//! - [`Behaviours`], [`Match`], [`Behaviour`], [`ClaimBehaviour`]: what tests and demos program.
//! - [`Kubelet`], [`Running`], [`NodeHandle`]: how it is started, and how nodes vanish.
//! - `life` and `status` decide, purely; `task` turns that into a pod's next request, `scheduler` chooses
//!   its node; `driver`, `claim` and `node` do the talking.
//!
//! It touches only pods that nobody has scheduled yet, or that sit on a Node it created and marked itself.

mod adopt;
mod api;
mod behaviour;
mod chance;
mod claim;
mod driver;
mod hash;
mod kubelet;
mod life;
mod node;
mod object;
mod pod;
mod request;
mod rules;
mod scheduler;
mod status;
mod task;
mod version;
mod volume;

pub use behaviour::{Behaviour, ClaimBehaviour};
pub use kubelet::{Kubelet, Running};
pub use node::{NodeHandle, NodeSpec};
pub use rules::{Behaviours, Match};
