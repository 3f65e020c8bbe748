//! One session: what agents call, and what it gives back.

pub mod answer;
pub mod archive;
pub mod arguments;
pub mod artifacts;
pub mod blank;
pub mod briefing;
pub mod tools;
