//! Pure rules: numbers, names, addresses, the allowlist, approvals. No tokio, no sockets, no clock, no printing.

pub mod address;
pub mod allowlist;
pub mod approval;
pub mod default_hosts;
pub mod host;
pub mod limits;
pub mod refusal;
pub mod size;
pub mod switches;
