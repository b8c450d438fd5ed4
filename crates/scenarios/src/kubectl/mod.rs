//! kubectl transcripts: the same commands on the embedded cluster and on a real one, with the same text and exit status.
//!
//! A transcript (`transcripts/*.txt`) is a script and its recorded answers in one file, as a terminal would show them; the
//! answers come from a real control plane and from nowhere else. In flows the file and a place to play it on; out flows
//! either nothing, or the first commands that were answered differently.
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
