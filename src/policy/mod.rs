//! Pure rules: numbers, names, addresses, the allowlist. No tokio, no sockets, no clock, no printing.

pub mod address;
pub mod allowlist;
pub mod default_hosts;
pub mod host;
pub mod limits;
pub mod refusal;
pub mod switches;
