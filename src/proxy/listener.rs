//! Accepts connections and owns their tasks: the one task of the proxy, which joins all others.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Shared, connection};
use crate::policy::limits::{PROXY_CONNECTIONS, SHUTDOWN};

/// A pause after a failed accept, so that a machine out of descriptors is not also out of processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the newest adopted socket until the proxy closes, then joins what is left.
pub(super) async fn run(
    mut adopted: watch::Receiver<Option<Arc<TcpListener>>>,
    shared: Arc<Shared>,
) {
    let mut connections = JoinSet::new();
    loop {
        let listener = adopted.borrow_and_update().clone();
        tokio::select! {
            () = shared.closing.cancelled() => break,
            changed = adopted.changed() => if changed.is_err() { break },
            stream = accept(listener.as_deref()) => admit(stream, &mut connections, &shared),
            Some(_) = connections.join_next() => {}
        }
    }
    // Every connection watches the same token; the rest is cut off rather than waited for.
    let joined = async { while connections.join_next().await.is_some() {} };
    if timeout(SHUTDOWN / 2, joined).await.is_err() {
        connections.shutdown().await;
    }
}

/// The next connection; before the first adopted socket there is none.
async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "the proxy could not accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn admit(stream: TcpStream, connections: &mut JoinSet<()>, shared: &Arc<Shared>) {
    if connections.len() < PROXY_CONNECTIONS {
        connections.spawn(connection::serve(stream, shared.clone()));
    } else {
        tracing::warn!(
            "a connection to the proxy was closed unheard: {PROXY_CONNECTIONS} are open"
        );
    }
}
