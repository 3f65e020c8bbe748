//! A whole relay: agents call over HTTP, apps answer over WebSockets.
//!
//! ```text
//! listen ─▶ http: host, route ─▶ agent: body, session, token ─▶ session: a place in flight ─▶ socket: frame ─▶ app
//!                            └─▶ upgrade ─▶ socket ─▶ first: register, resume or end ─▶ the app's frames
//! ```
//!
//! Everything is kept in memory. Each session has one lock that is never held while waiting; each socket has a bounded
//! queue, and a full one is a refusal. All tasks are tracked and joined on close.

mod agent;
mod answers;
mod app;
mod calls;
mod config;
mod denied;
mod first;
mod hosts;
mod http;
mod listen;
mod preamble;
mod rate;
mod registry;
mod session;
mod socket;
mod stall;
mod tasks;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use config::{DurationError, RelayConfig, TlsFiles, parse_duration};
pub use tls::TlsError;

use self::hosts::Hosts;
use self::rate::Rate;
use self::registry::Registry;
use crate::policy::limits;
use crate::relay::address::RelayAddress;

/// Why a relay could not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Links would travel in the clear.
    #[error(
        "{0} can be reached from other machines; give --tls-cert and --tls-key, or --insecure where something in front of it ends TLS"
    )]
    Exposed(SocketAddr),
    /// The port is taken, or the address is not ours.
    #[error(
        "cannot listen at {address}: {cause}; give --listen an address of this machine and a port that is free (port 0 takes one)"
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The certificate or its key.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// What all tasks of a relay share.
struct Relay {
    config: RelayConfig,
    hosts: Hosts,
    rate: Rate,
    registry: Arc<Registry>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

/// A running relay. It ends with [`EmbeddedRelay::close`], or at once when it is dropped.
pub struct EmbeddedRelay {
    address: SocketAddr,
    relay: Arc<Relay>,
}

impl EmbeddedRelay {
    /// Listens and serves.
    ///
    /// # Errors
    /// Where it may not or cannot listen there, or its certificate is of no use.
    pub async fn bind(config: RelayConfig) -> Result<Self, BindError> {
        let is_exposed = !config.listen.ip().is_loopback();
        if is_exposed && config.tls.is_none() && !config.insecure {
            return Err(BindError::Exposed(config.listen));
        }
        let acceptor = config.tls.as_ref().map(tls::acceptor).transpose()?;
        let failed = |cause| BindError::Listen {
            address: config.listen,
            cause,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let relay = Arc::new(Relay {
            hosts: Hosts::new(address.ip(), &config.names, acceptor.is_some()),
            rate: Rate::default(),
            registry: Arc::new(Registry::new(config.hold)),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            config,
        });
        relay
            .tasks
            .spawn(listen::accept(Arc::clone(&relay), listener, acceptor));
        relay.tasks.spawn(listen::sweep(Arc::clone(&relay)));
        Ok(Self { address, relay })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that an app on this machine connects to. One with a certificate is reached under its own name.
    #[must_use]
    pub fn local_address(&self) -> RelayAddress {
        RelayAddress::local(self.address)
    }

    /// Closes every socket with a code and joins every task. What does not end in time is cut off when the last
    /// reference to it goes.
    pub async fn close(self) {
        self.relay.closing.cancel();
        self.relay.tasks.close();
        if timeout(limits::RELAY_CLOSE, self.relay.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("the relay's connections did not end in time");
        }
    }
}

impl Drop for EmbeddedRelay {
    fn drop(&mut self) {
        self.relay.closing.cancel();
    }
}
