//! The live view: one rollout on the whole screen, redrawn on changes, with keys to control it.
//!
//! - `list`: all rollouts, to select one.
//! - `sights`: what the watches show. `board`: the state and the keys. `draw`: the layout.
//! - `pane`: a picture below scrolling lines, for the demo. `cursor`: its position.
//! - `terminal`: the screen, restored even after a panic.
//!
//! Only this file waits: for a change, a key, the operator's answer, and once a second, because ages change.

mod board;
mod cursor;
mod draw;
mod list;
mod paint;
mod pane;
mod sights;
mod terminal;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crossterm::event::Event;
use futures::FutureExt;
use futures::future::{Either, LocalBoxFuture, OptionFuture, select_all};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::board::{Board, Effect};
use self::draw::draw;
use self::sights::Sights;
use self::terminal::Screen;
use crate::error::Error;
use crate::exit::Exit;
use crate::rollout::Rollout;
use crate::session::Session;
use crate::verbs::steer;

/// Ages change every second.
const TICK: Duration = Duration::from_secs(1);

/// Changes within this time are drawn together, to limit the frame rate.
const FRAME: Duration = Duration::from_millis(50);

pub(crate) use self::list::{Args, run as top};
pub use self::pane::Pane;

/// Shows a rollout until the user leaves.
pub(crate) async fn run(rollout: Rollout, session: &mut Session<'_>) -> Result<Exit, Error> {
    show(rollout, &mut Screen::enter()?, session).await?;
    Ok(Exit::Done)
}

/// Why a view ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// The user left this view.
    Back,
    /// The program ends: the user quit, a signal arrived, or the terminal is gone.
    Ended,
}

async fn show(rollout: Rollout, screen: &mut Screen, session: &Session<'_>) -> Result<Left, Error> {
    let mut ended = Ended::new()?;
    let mut sights = Sights::of(&rollout, session);
    let mut board = Board::new(rollout, session.program, session.style);
    let mut order: OptionFuture<LocalBoxFuture<'_, String>> = None.into();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        let now = session.clock.now();
        screen.draw(|frame| draw(frame, &mut board, now))?;
        let woken = tokio::select! {
            sight = sights.next() => Some(Either::Left(sight)),
            event = screen.next() => Some(Either::Right(event)),
            Some(answer) = &mut order => {
                order = None.into();
                board.hear(answer);
                None
            }
            _ = ticks.tick() => None,
            () = ended.wait() => return Ok(Left::Ended),
        };
        match woken {
            Some(Either::Left(sight)) => {
                sights.follow(&sight, &board.picture.rollout, session);
                board.see(sight, session.clock.now());
                let frame = tokio::time::Instant::now() + FRAME;
                while let Ok(sight) = tokio::time::timeout_at(frame, sights.next()).await {
                    sights.follow(&sight, &board.picture.rollout, session);
                    board.see(sight, session.clock.now());
                }
            }
            Some(Either::Right(Some(Event::Key(key)))) => match board.press(key) {
                Some(Effect::Leave) => return Ok(Left::Back),
                Some(Effect::End) => return Ok(Left::Ended),
                Some(Effect::Give(command, seen)) => {
                    board.gave(command);
                    order = Some(steer::order(command, *seen, session).boxed_local()).into();
                }
                None => {}
            },
            // A resize or a mouse event.
            Some(Either::Right(Some(_))) => {}
            // The terminal is gone.
            Some(Either::Right(None)) => return Ok(Left::Ended),
            None => {}
        }
    }
}

/// Signals to end the program. Keys such as Ctrl-C arrive as keys.
struct Ended([Signal; 4]);

impl Ended {
    fn new() -> Result<Self, Error> {
        let of = |kind| signal(kind).map_err(Error::Output);
        Ok(Self([
            of(SignalKind::terminate())?,
            of(SignalKind::interrupt())?,
            of(SignalKind::quit())?,
            of(SignalKind::hangup())?,
        ]))
    }

    async fn wait(&mut self) {
        let any = self.0.iter_mut().map(|signal| signal.recv().boxed_local());
        select_all(any).await;
    }
}
