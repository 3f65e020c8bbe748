//! The canary of a start: a browser is believed to be inside the proxy when it was seen to be.
//!
//! It is sent to a port of loopback that we listen on. Chromium reaches loopback directly unless it is told otherwise, and a
//! managed policy or a switch that has changed its name would undo what the command line says; so the one request that
//! goes wrong first is made before any page is opened.

use std::net::Ipv4Addr;

use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use crate::browser::chromium::Chromium;
use crate::browser::pipe::CallError;
use crate::policy::limits::CANARY;
use crate::proxy::Proxy;

/// What the owner can do about a browser that is not believed.
const FIX: &str = "look for what sets a proxy in its chrome://policy, or start another Chromium with --chromium PATH";

/// Why a browser is not believed.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// It came to us directly.
    #[error("the boundary does not hold: the browser reaches this machine past the proxy; {FIX}")]
    Direct,
    /// The proxy has not seen it.
    #[error(
        "the boundary does not hold: within {CANARY:?} the browser did not ask the proxy for an address of this machine; {FIX}"
    )]
    Unseen,
    /// It could not be asked.
    #[error("the browser could not be sent to the proxy: {0}")]
    Call(#[from] CallError),
    /// There is no port to listen on.
    #[error("no port of loopback to send the browser to: {0}")]
    Socket(#[from] std::io::Error),
}

impl CanaryError {
    /// Whether the browser worked, and not as it must: no other way to draw will help.
    pub fn is_leak(&self) -> bool {
        matches!(self, Self::Direct | Self::Unseen)
    }
}

/// Sends the browser to loopback; when this returns well, the proxy has refused it, and nobody came to us.
pub async fn sing(chromium: &Chromium, proxy: &Proxy) -> Result<(), CanaryError> {
    let began = Instant::now();
    // Ports that the system gives are above all that Chromium itself refuses to ask for.
    let trap = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = trap.local_addr()?.port();
    let canary = proxy.expect_loopback(port);
    let _errand = chromium
        .errand(&format!("http://127.0.0.1:{port}/"))
        .await?;
    let seen = async {
        tokio::select! {
            biased;
            _ = trap.accept() => Err(CanaryError::Direct),
            () = canary.refused() => Ok(()),
        }
    };
    timeout(CANARY, seen)
        .await
        .map_err(|_| CanaryError::Unseen)??;
    tracing::debug!(took = ?began.elapsed(), "the browser was seen to stay inside the proxy");
    Ok(())
}
