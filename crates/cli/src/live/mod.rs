//! The live view: one rollout on the whole screen, drawn anew when something changes, with keys to steer it.
//!
//! - `list`: all of them, to choose one from.
//! - `sights`: what the watches show. `board`: what is known, and what keys mean. `draw`: how it looks.
//! - `pane`: a picture beside a story, for the demo. `cursor`: where it is to be drawn.
//! - `terminal`: the screen that is borrowed, and given back also after a panic.
//!
//! Only this file waits: for a change, for a key, for the operator's answer, and once a second, because ages grow.

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
use crate::steer;

/// Ages grow.
const TICK: Duration = Duration::from_secs(1);

/// Changes that come together are drawn together, and no terminal is asked to do more.
const FRAME: Duration = Duration::from_millis(50);

pub(crate) use self::list::{Args, run as top};
pub use self::pane::Pane;

/// Shows a rollout until the user has seen enough.
pub(crate) async fn run(rollout: Rollout, session: &mut Session<'_>) -> Result<Exit, Error> {
    show(rollout, &mut Screen::enter()?, session).await?;
    Ok(Exit::Done)
}

/// Why a view is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// The user has seen enough of this one.
    Back,
    /// Everything is over: the user says so, or somebody from outside, or the terminal is gone.
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
            // The terminal has another size now, or somebody has clicked.
            Some(Either::Right(Some(_))) => {}
            // The terminal is gone.
            Some(Either::Right(None)) => return Ok(Left::Ended),
            None => {}
        }
    }
}

/// Told to end from outside. A key that means it comes as a key.
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
