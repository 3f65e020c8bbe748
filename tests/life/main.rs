//! The life of a real session: the real binary with a real Chromium, real signals, and what the kernel says of both.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests start the program, connect to it and read their environment"
)]

mod agent;
mod codec;
mod confinement;
mod crashes;
mod endings;
mod memory;
mod processes;
mod refusals;
mod stage;
