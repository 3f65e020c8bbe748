//! What the attacks on the boundary share: a browser's side, an internet made of network namespaces, and a sniffer.
//!
//! ```text
//!   home (a namespace)                      internet (another one)
//!   the test, the proxy, 127.0.0.1  ─veth─  public addresses on its lo: sites, name server
//!   10.77.0.1, fd77::1                      10.77.0.2, fd77::2, and private ones that must not be reached
//! ```
//!
//! Nothing here sends a packet anywhere but to loopback and into namespaces that the test has made. They are nameless and
//! end with their threads, so nothing is left behind.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "each test crate uses its part of the world, and the world plays browser and internet"
)]

pub mod client;
pub mod home;
pub mod names;
pub mod net;
pub mod sites;
pub mod sniffer;
pub mod spellings;
