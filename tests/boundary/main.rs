//! The boundary, attacked. Each attack has a harmless twin that must pass.

#[path = "../world/mod.rs"]
mod world;

mod names;
mod password;
mod uploads;
