//! Chromium: started in a namespace of its own, driven over a pipe, believed only by its pixels.

pub mod account;
pub mod command;
pub mod find;
pub mod namespace;
pub mod pipe;
pub mod spawn;
pub mod wire;
