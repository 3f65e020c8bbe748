//! The boundary, attacked. Each attack has a harmless twin that must pass.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../world/mod.rs"]
mod world;

mod heads;
mod limits;
mod names;
mod password;
mod plain;
mod refusals;
mod told;
mod tunnels;
mod uploads;
