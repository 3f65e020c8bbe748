//! Pure rules: numbers, names, addresses, the allowlist. No tokio, no sockets, no clock, no printing.

pub mod limits;
