//! The other parties of the protocol, for tests: an agent with nothing but HTTP, an app with nothing but a WebSocket, a
//! relay that does what it is told.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test binary uses its own part of the stage"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::result_large_err,
    reason = "tests open connections of their own, and fail where something does"
)]

mod agent;
mod app;
mod ends;
pub mod fake;

use std::time::Duration;

use tokio::time::timeout;

pub use agent::*;
pub use app::*;
pub use ends::*;

/// Nothing in these tests takes this long unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What must come, comes.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("this should not hang")
}
