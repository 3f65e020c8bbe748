//! The agent's tools, one file each: arguments in, an answer or a refusal out.

pub mod files;
pub mod image;
pub mod schemas;
