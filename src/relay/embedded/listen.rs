//! Connections in, requests out of them; and the sweep of expired sessions.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::stall::Unstalled;
use super::{Relay, http};
use crate::policy::limits;

/// Takes connections until the relay closes. One more than the limit is hung up on.
pub(super) async fn accept(
    relay: Arc<Relay>,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
) {
    let places = Arc::new(Semaphore::new(limits::RELAY_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = relay.closing.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: wait for some to come back, and do not spin.
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!("more than {} connections", limits::RELAY_CONNECTIONS);
            continue;
        };
        let (served, acceptor) = (Arc::clone(&relay), acceptor.clone());
        relay.tasks.spawn(async move {
            let _place = place;
            connection(served, stream, peer.ip(), acceptor).await;
        });
    }
}

async fn connection(
    relay: Arc<Relay>,
    stream: TcpStream,
    peer: IpAddr,
    acceptor: Option<TlsAcceptor>,
) {
    // Small replies must not wait for a full packet; a failure costs time and nothing else.
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => serve(relay, stream, peer).await,
        Some(acceptor) => match timeout(limits::AGENT_HEAD_TIME, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => serve(relay, stream, peer).await,
            Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        },
    }
}

async fn serve<S>(relay: Arc<Relay>, stream: S, peer: IpAddr)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let closing = relay.closing.clone();
    let service = service_fn(move |request| {
        let relay = Arc::clone(&relay);
        async move { Ok::<_, std::convert::Infallible>(http::answer(relay, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::AGENT_HEAD_TIME)
        .max_buf_size(limits::AGENT_HEAD)
        .serve_connection(TokioIo::new(Unstalled::new(stream)), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = closing.cancelled() => {
            // Calls in flight fail as their apps are hung up on, and their agents are still told so.
            connection.as_mut().graceful_shutdown();
            timeout(limits::CLOSE_GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Forgets expired sessions, so that held ones do not pile up.
pub(super) async fn sweep(relay: Arc<Relay>) {
    let mut ticks = tokio::time::interval(relay.config.hold.min(limits::HOLD_SWEEP));
    loop {
        tokio::select! {
            _ = ticks.tick() => relay.registry.sweep(),
            () = relay.closing.cancelled() => return,
        }
    }
}
