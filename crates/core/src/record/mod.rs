//! The status of a rollout: the durable state, the users' commands, and the next status for a decision.

pub(crate) mod conditions;
mod former;
pub mod glossary;
mod guidance;
mod history;
mod state;
mod status;

use stateward_api::rollout::RolloutStatus;

use crate::engine::shortened;
use crate::memory::Memory;
use crate::world::Commands;

pub(crate) use self::conditions::of_phased_rollout;
pub use self::conditions::read_reason;
pub use self::former::moved;
pub use self::state::taken_commands;
pub(crate) use self::status::{compose, outline, rides_along};
pub use self::status::{next_status, stall};

/// The commands given through the status subresource.
pub fn commands(status: &RolloutStatus) -> Commands {
    let commands = Commands {
        promote: status.promote || (status.controller_pause && status.pause_conditions.is_empty()),
        skip: status.skip_current_step,
        promote_full: status.promote_full,
        force: status.promote_full && status.force,
        abort: status.abort,
        retry: status.restart,
        by: None,
    };
    // A name without a command means nothing.
    let by = status.requested_by.as_ref().filter(|by| !by.is_empty());
    let by = by.filter(|_| commands != Commands::default());
    Commands {
        by: by.map(|by| shortened(by, LONGEST_USER).into_owned()),
        ..commands
    }
}

/// The most characters of a user's name that are kept.
const LONGEST_USER: usize = 255;

/// The durable state in a status.
pub fn memory(status: &RolloutStatus) -> Memory {
    match former::state(status) {
        Some(former) => state::read(&former),
        None => state::read(&status.state),
    }
}
