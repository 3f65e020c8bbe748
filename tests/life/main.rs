//! The life of a real session: the real binary with a real Chromium, real signals, and what the kernel says of both.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::await_holding_lock,
    clippy::print_stdout,
    unreachable_pub,
    reason = "tests start the program, connect to it, read their environment, take turns, and print what they measured"
)]

mod agent;
mod bare;
mod codec;
mod confinement;
mod console;
mod crashes;
mod endings;
mod guard;
mod memory;
mod network;
mod processes;
mod pty;
mod refusals;
mod relays;
mod requests;
mod second;
mod server;
mod stage;
mod storms;
