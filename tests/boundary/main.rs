//! The boundary, attacked. Each attack has a harmless twin that must pass.

#[path = "../world/mod.rs"]
mod world;

mod heads;
mod limits;
mod names;
mod password;
mod plain;
mod tunnels;
mod uploads;
