//! The test harness of the scenarios: a cluster to act on, an observer of its objects, and expectations.

mod audit;
mod backend;
mod cluster;
mod failure;
mod observer;
mod oracle;
mod pod;
mod rbac;
mod rollout;
mod runner;
mod set;
mod site;
mod timeline;

pub use audit::Write;
pub use backend::{Backend, operator_kubeconfig};
pub use cluster::Cluster;
pub(crate) use cluster::{OPERATOR, SCHEDULER};
pub(crate) use failure::Doing;
pub use failure::{Failure, Outcome};
pub use observer::View;
pub use oracle::Oracle;
pub use pod::PodRow;
pub use rollout::{Kind, Rollout, RolloutBuilder, partition};
pub use runner::{Scenario, run, run_and_check_rights};
pub(crate) use set::container;
pub use set::{Set, SetBuilder};
pub use site::Site;

/// Names async functions as scenarios: `scenarios![first_behaviour, second_behaviour]`.
#[macro_export]
macro_rules! scenarios {
    ($($function:ident),+ $(,)?) => {
        /// The scenarios of this module.
        pub(crate) fn all() -> Vec<$crate::harness::Scenario> {
            vec![$($crate::harness::Scenario::new(module_path!(), stringify!($function), |cluster| {
                Box::pin($function(cluster))
            })),+]
        }
    };
}
