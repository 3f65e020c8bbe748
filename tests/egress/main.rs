//! A real Chromium and pages that try every way out of it, with a sniffer outside that must see nothing.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    unreachable_pub,
    reason = "tests start browsers themselves, and print what they measured"
)]

#[path = "../world/mod.rs"]
mod world;

mod browser;
mod canary;
mod hundred;
mod leaks;
mod scene;
