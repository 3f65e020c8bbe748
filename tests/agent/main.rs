//! The whole chain as an agent meets it: the real binary, the embedded relay, HTTP, a real Chromium.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests play the agent and the owner: they connect, start the program, and panic like tests"
)]

mod act;
mod act_targets;
mod act_waits;
mod bad_input;
mod bad_scripts;
mod bad_uploads;
mod boundary_smoke;
mod briefing;
mod console;
mod daemon;
mod freshness;
mod hostile_pages;
mod network;
mod pictures;
mod pixels;
mod snapshot;
mod tall_pages;
