//! Chromium: started in a namespace of its own, driven over a pipe, believed only by its pixels.

pub mod account;
pub mod capture;
pub mod chromium;
pub mod command;
pub mod display;
pub mod evaluate;
pub mod find;
pub mod flags;
pub mod fold;
pub mod folder;
pub mod journal;
pub mod namespace;
pub mod navigate;
pub mod observed;
pub mod page;
pub mod pipe;
pub mod policies;
pub mod probe;
pub mod rung;
pub mod spawn;
pub mod stitch;
pub mod targets;
pub mod wire;
