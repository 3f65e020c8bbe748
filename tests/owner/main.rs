//! The owner's files: the log that a session leaves, the command that reads it, and the config that shapes a session. The real
//! binary, with a home of its own.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests start the program and connect to it"
)]

#[path = "../life/agent.rs"]
#[allow(dead_code, reason = "the life tests use the rest")]
mod agent;
mod config;
mod home;
mod log;
