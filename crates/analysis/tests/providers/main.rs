//! The providers against local servers: stand-ins that check requests and respond like the real ones, and one real Prometheus.

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
