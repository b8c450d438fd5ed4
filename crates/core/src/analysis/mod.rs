//! Analysis: what answers mean, how measurements add up, and what a run comes to.
//!
//! Pure, like everything here: whoever asks the providers hands in what they said and when.

mod reply;

pub use self::reply::{Data, Reply};
