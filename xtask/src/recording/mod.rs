//! `cargo xtask generate recording`: the demo as a moving picture, from a real run of it.
//!
//! - `terminal`: runs a program in a terminal of its own and keeps what the screen showed, and when.
//! - `svg`: what was shown, as an SVG that moves by itself.
//!
//! The screen itself is the crate `vt100`'s. Of the crates that draw terminals as SVG none draws more than one moment of them
//! without a font or a script, so the drawing is ours.

mod svg;
mod terminal;

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Result, bail};

use crate::layout::Layout;

/// The demo's run as an SVG.
pub(crate) fn of_the_demo(layout: &Layout) -> Result<String> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--package", "stateward"])
        .current_dir(&layout.root)
        .status()?;
    if !built.success() {
        bail!("stateward cannot be built; what cargo said stands above");
    }
    let mut demo = Command::new(layout.target.join("debug/stateward"));
    // As it calls itself where it is installed.
    demo.arg0("stateward").arg("demo").current_dir(&layout.root);
    let frames = terminal::record("$ stateward demo", &mut demo)?;
    Ok(svg::draw(
        "stateward demo: a good version is rolled out in steps, a bad one is caught and returned",
        &frames,
    ))
}
