//! What the attacks on the boundary share: a browser's side, an internet made of network namespaces, and a sniffer.
//!
//! Nothing here sends a packet anywhere but to loopback and into namespaces that the test has made.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test crate uses its part of the world"
)]

pub mod client;
pub mod home;
