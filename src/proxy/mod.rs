//! The one way out of the browser: listener, request, gate, resolve, dial, tunnel, and the uploads host.
//!
//! # The way of a request
//!
//! `listener` takes a connection → `connection` speaks HTTP/1.1 on it → `contexts` knows the browser context by its
//! password → `request` parses the head once → `gate` asks the allowlist (a `Permit`), the resolver and the address tables
//! (`VettedAddr`), together a `Route` → `dial` accepts nothing else → `tunnel` or `plain` carries the bytes.
//! The uploads host and the priming page are matched before the gate and never reach the resolver.
//!
//! # What is not here
//!
//! No interception of TLS but for the uploads host, no cache, no upstream proxy, no environment variables: the proxy dials
//! by itself, what the gate let through.

mod answers;
mod connection;
mod contexts;
mod dial;
mod events;
mod failure;
pub mod gate;
pub mod hello;
mod interfaces;
mod leash;
mod ledger;
mod listener;
mod plain;
pub mod request;
pub mod resolve;
mod tunnel;
pub mod uploads;

use std::io;
use std::sync::Arc;

use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::contexts::Credential;
pub use self::events::{Canary, Event, RefusedHost};
pub use self::failure::{Failure, Stop};
pub use self::interfaces::{OwnAddresses, of_this_machine};
pub use self::request::PRIME_URL;

use self::contexts::Contexts;
use self::events::Log;
use self::gate::Gate;
use self::resolve::{Resolver, ResolverConfig};
use self::uploads::{UploadStore, UploadsHost};
use crate::policy::allowlist::Allowlist;
use crate::policy::limits::TUNNELS;

/// What a proxy is made of.
pub struct ProxyConfig {
    /// The hosts that may be reached, now and after every change; open tunnels are judged again at each.
    pub allow: watch::Receiver<Arc<Allowlist>>,
    /// What the uploads host serves.
    pub uploads: Arc<UploadStore>,
    /// The machine's own addresses with their prefixes.
    pub own_addresses: OwnAddresses,
    /// Which name servers are asked.
    pub resolver: ResolverConfig,
    /// Where the audit log gets its lines; a full queue loses lines and counts them, for a page must not stall the proxy.
    pub events: mpsc::Sender<Event>,
}

/// Why a proxy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The kernel gave no random bytes.
    #[error("no random bytes for the proxy's password: {0}")]
    Random(#[from] getrandom::Error),
    /// The certificate of the run could not be made.
    #[error("the certificate of the uploads host could not be made: {0}")]
    Certificate(#[from] uploads::CertificateError),
    /// A socket made elsewhere is not one to listen on.
    #[error("the proxy's socket cannot be used: {0}")]
    Listener(#[from] io::Error),
}

/// Counts for `/info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Connections open to sites and to the uploads host.
    pub tunnels: usize,
    /// Refused hosts of all contexts, each with its count; bounded.
    pub refused_hosts: Vec<RefusedHost>,
    /// Refusals in all.
    pub refusals: u64,
    /// Lines of the audit log that were lost because it did not keep up.
    pub events_lost: u64,
}

/// What every connection shares.
struct Shared {
    allow: watch::Receiver<Arc<Allowlist>>,
    gate: Gate,
    uploads: UploadsHost,
    contexts: Contexts,
    log: Log,
    tunnels: Arc<Semaphore>,
    closing: CancellationToken,
}

/// A running proxy.
pub struct Proxy {
    shared: Arc<Shared>,
    listener: watch::Sender<Option<Arc<tokio::net::TcpListener>>>,
    /// The one task that accepts and owns all others.
    task: Mutex<JoinSet<()>>,
}

impl Proxy {
    /// Makes the run's password and certificate and starts the proxy; it serves from [`Proxy::adopt`] on.
    pub fn new(config: ProxyConfig) -> Result<Self, ProxyError> {
        let shared = Arc::new(Shared {
            allow: config.allow,
            gate: Gate::new(Resolver::new(config.resolver), config.own_addresses),
            uploads: UploadsHost::new(config.uploads)?,
            contexts: Contexts::new()?,
            log: Log::new(config.events),
            tunnels: Arc::new(Semaphore::new(TUNNELS)),
            closing: CancellationToken::new(),
        });
        let (listener, adopted) = watch::channel(None);
        let mut task = JoinSet::new();
        task.spawn(listener::run(adopted, shared.clone()));
        Ok(Self {
            shared,
            listener,
            task: Mutex::new(task),
        })
    }

    /// The base64 of the SHA-256 of the run certificate's public key, for Chromium's
    /// `--ignore-certificate-errors-spki-list`.
    pub fn spki(&self) -> &str {
        self.shared.uploads.spki()
    }

    /// Serves a listening socket that was made elsewhere, inside a network namespace for one. It replaces the socket
    /// before it; connections that are open stay. Must be called inside the runtime.
    pub fn adopt(&self, socket: std::net::TcpListener) -> Result<(), ProxyError> {
        socket.set_nonblocking(true)?;
        let socket = tokio::net::TcpListener::from_std(socket)?;
        self.listener.send_replace(Some(Arc::new(socket)));
        Ok(())
    }

    /// A user name and the run's password for a new browser context.
    pub fn issue(&self) -> Credential {
        self.shared.contexts.issue()
    }

    /// Ends a context: its tunnels are closed and its user name is known no more.
    pub fn retire(&self, user: &str) {
        self.shared.contexts.retire(user);
    }

    /// Whether the context's browser has shown the password at [`PRIME_URL`].
    pub fn primed(&self, user: &str) -> bool {
        self.shared
            .contexts
            .find(user)
            .is_some_and(|context| context.is_primed())
    }

    /// Waits until the context is primed; false when it is retired first. The caller sets the deadline.
    pub async fn wait_primed(&self, user: &str) -> bool {
        match self.shared.contexts.find(user) {
            Some(context) => context.wait_primed().await,
            None => false,
        }
    }

    /// Forgets that a context was primed, because the browser may have lost the password: it is primed once more.
    pub fn unprime(&self, user: &str) {
        if let Some(context) = self.shared.contexts.find(user) {
            context.unprime();
        }
    }

    /// The hosts that were refused to a context, each with its reason, and what failed on the way to the allowed ones.
    pub fn refusals(&self, user: &str) -> Vec<RefusedHost> {
        let context = self.shared.contexts.find(user);
        context.map_or_else(Vec::new, |context| context.refused_hosts())
    }

    /// Requests without the right password so far. Beside one for each priming, they grow when a browser has lost it.
    pub fn challenges(&self) -> u64 {
        self.shared.contexts.challenges()
    }

    /// Counts of the whole proxy.
    pub fn totals(&self) -> Totals {
        Totals {
            tunnels: TUNNELS - self.shared.tunnels.available_permits(),
            refused_hosts: self.shared.log.refused_hosts(),
            refusals: self.shared.log.refusals(),
            events_lost: self.shared.log.lost(),
        }
    }

    /// The canary of a start: a request for `http://127.0.0.1:PORT/` must arrive here and be refused, which proves that Chromium sends even loopback through the proxy. It is expected from now on.
    pub fn expect_loopback(&self, port: u16) -> Canary<'_> {
        self.shared.log.expect_loopback(port)
    }

    /// Ends every tunnel, joins every task, and gives the socket back.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        let mut task = self.task.lock().await;
        while task.join_next().await.is_some() {}
        self.listener.send_replace(None);
    }
}

impl Drop for Proxy {
    /// Without [`Proxy::close`] the tasks are aborted with their set; the token ends what they wait for.
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}
