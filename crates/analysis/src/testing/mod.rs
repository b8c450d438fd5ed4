//! For tests: a real Prometheus and an exporter.
//!
//! ```no_run
//! # async fn example() {
//! use stateward_analysis::testing::{Exporter, RealPrometheus};
//!
//! let exporter = Exporter::start().await.unwrap();
//! exporter.set("errors_total 3\n");
//! let Some(prometheus) = RealPrometheus::start(&exporter).await.unwrap() else {
//!     return; // none is installed, and stderr says so
//! };
//! prometheus.has("errors_total").await.unwrap();
//! # }
//! ```

mod authority;
mod exporter;
mod prometheus;

pub use self::authority::{Authority, Signed};
pub use self::exporter::Exporter;
pub use self::prometheus::{PASSWORD, RealPrometheus, TestError, USERNAME};
