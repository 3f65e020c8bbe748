//! Both ends of the agent-socket relay protocol, version 1.
//!
//! ```text
//! app ── WebSocket /v1/_ws ──▶ relay ◀── HTTP /v1/t/<token>/… ── agent
//! ```
//!
//! [`link`] is the app's end: the daemon's one connection to any relay, which outlives cuts, restarts and sleep.
//! [`embedded`] is a whole relay, for `--relay local`, for tests, and for those who host one. What they share lies
//! between them: [`units`] counts as the protocol counts, [`frames`] are what travels, [`tokens`] are the secrets,
//! [`tool`] holds the rules of a tool's path.

pub mod address;
pub mod embedded;
pub mod frames;
pub mod link;
mod pump;
pub mod registration;
pub mod tokens;
pub mod tool;
pub mod units;
mod wire;
