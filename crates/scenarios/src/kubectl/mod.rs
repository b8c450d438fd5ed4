//! kubectl transcripts: the same commands on the embedded cluster and on a real one must give the same text and exit status.
//!
//! A transcript (`transcripts/*.txt`) is a script and its recorded answers in one file, as a terminal would show them; the answers always
//! come from a real control plane. In flows the file and a place to run it on; out flows nothing, or the first commands that were answered
//! differently.
//!
//! - [`run`]: the test binary.
//! - `transcript`: the file format. `normal`: what may differ between two runs of the same commands.
//! - `place`: the embedded cluster on loopback, or the real one. `play`: running kubectl there.

mod compare;
mod normal;
mod place;
mod play;
mod runner;
mod transcript;

pub use runner::run;

/// `PATH`, with the tests' own kubectl first.
pub(crate) fn path_to_kubectl() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let offered = place::Offered::from_env().programs;
    let all = offered.into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap_or_else(|_| path.clone())
}
