//! `cargo xtask generate recording`: an animation of the demo, recorded from a real run.
//!
//! - `terminal`: runs a program in a terminal and records the frames of its screen.
//! - `svg`: draws the frames as an animated SVG.
//!
//! The crate `vt100` emulates the screen. No crate that draws terminals as SVG supports animation without a font or a script, so the
//! drawing is our own.

mod svg;
mod terminal;

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Result, bail};

use crate::layout::Layout;

/// A run of the demo as an SVG.
pub(crate) fn of_the_demo(layout: &Layout) -> Result<String> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--package", "stateward"])
        .current_dir(&layout.root)
        .status()?;
    if !built.success() {
        bail!("stateward cannot be built; what cargo said stands above");
    }
    let mut demo = Command::new(layout.target.join("debug/stateward"));
    // The name of the installed program.
    demo.arg0("stateward").arg("demo").current_dir(&layout.root);
    let frames = terminal::record("$ stateward demo", &mut demo)?;
    Ok(svg::draw(
        "stateward demo: a good version is rolled out in steps, a bad one is caught and returned",
        &frames,
    ))
}
