//! A simulated scheduler and kubelet whose pods behave as programmed.
//!
//! It is an ordinary API client, so the same code serves an embedded cluster in virtual time and a real control plane. In flow watches of
//! pods and claims, the rules in [`Behaviours`], and time from a [`Clock`](stateward_clock::Clock); out flow bindings, pod statuses, final
//! deletes, Nodes with their heartbeats, and simulated volumes. Nothing polls, and all randomness comes from the seed.
//!
//! - [`Behaviours`], [`Match`], [`Behaviour`], [`ClaimBehaviour`]: what tests and demos program.
//! - [`Kubelet`], [`Running`], [`NodeHandle`]: how it is started, and how nodes vanish.
//! - `life` and `status` decide, purely; `task` turns that into a pod's next request, `scheduler` chooses
//!   its node; `driver`, `claim` and `node` send the requests.
//!
//! It touches only pods that no scheduler has assigned yet, or that are on a Node that it created and marked.

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
