//! The providers against servers on this machine: stand-ins that look at what they are asked and answer as the real ones do, and
//! one real Prometheus.

#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

mod auth;
mod canaries;
mod egress;
mod failures;
mod limits;
mod prometheus;
mod proxy;
mod real_prometheus;
mod redirects;
mod secrets;
mod stand_in;
mod tls;
mod vendors;
mod web;
