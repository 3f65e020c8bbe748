//! The life of an install, as root in a throw-away copy of the machine's tree, with the system's real tools.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests start programs"
)]

mod attacks;
mod broken;
mod kills;
mod life;
mod machine;
mod proof;
mod tree;
