//! The way to a relay: name, TCP, TLS, upgrade; and which of them failed.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Host;

use super::trouble::Trouble;
use crate::policy::limits;
use crate::relay::address::RelayAddress;

/// A byte stream to a relay, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(super) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Opens a socket to register on, or to resume or end `session` on.
pub(super) async fn open(
    relay: &RelayAddress,
    session: Option<&str>,
    tls: Option<&TlsConnector>,
    limit: Duration,
) -> Result<Socket, Trouble> {
    let late = || unreachable(relay, &format!("no answer in {} s", limit.as_secs()));
    timeout(limit, open_unhurried(relay, session, tls))
        .await
        .unwrap_or_else(|_| Err(late()))
}

async fn open_unhurried(
    relay: &RelayAddress,
    session: Option<&str>,
    tls: Option<&TlsConnector>,
) -> Result<Socket, Trouble> {
    let stream = dial(relay)
        .await
        .map_err(|error| unreachable(relay, &error.to_string()))?;
    // Small frames must not wait for a full packet; a failure costs time and nothing else.
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(tls) => Box::new(handshake(relay, tls, stream).await?),
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits::INBOUND_FRAME))
        .max_frame_size(Some(limits::INBOUND_FRAME));
    let upgraded = client_async_with_config(relay.socket(session), stream, Some(config)).await;
    upgraded
        .map(|(socket, _)| socket)
        .map_err(|error| refused(relay, error))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the link's one connection, to the relay that the owner named"
)]
async fn dial(relay: &RelayAddress) -> std::io::Result<TcpStream> {
    match relay.host() {
        Host::Domain(name) => TcpStream::connect((name.as_str(), relay.port())).await,
        Host::Ipv4(address) => TcpStream::connect((*address, relay.port())).await,
        Host::Ipv6(address) => TcpStream::connect((*address, relay.port())).await,
    }
}

async fn handshake(
    relay: &RelayAddress,
    tls: &TlsConnector,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Trouble> {
    let name = match relay.host() {
        Host::Domain(name) => ServerName::try_from(name.clone())
            .map_err(|error| no_name(relay, &error.to_string()))?,
        Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(*address)),
        Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(*address)),
    };
    tls.connect(name, stream)
        .await
        .map_err(|error| tls_trouble(relay, &error))
}

/// rustls tells in the error's inside whether the certificate is at fault, or no TLS is spoken at all.
fn tls_trouble(relay: &RelayAddress, error: &std::io::Error) -> Trouble {
    let inside = error
        .get_ref()
        .and_then(|inside| inside.downcast_ref::<rustls::Error>());
    let relay = relay.to_string();
    match inside {
        Some(rustls::Error::InvalidCertificate(cause)) => Trouble::BadCertificate {
            relay,
            cause: cause.to_string(),
        },
        Some(other) => Trouble::NotARelay {
            relay,
            cause: format!("no TLS there ({other})"),
        },
        None => Trouble::HungUp {
            relay,
            cause: format!("the TLS handshake broke off ({error})"),
        },
    }
}

fn no_name(relay: &RelayAddress, cause: &str) -> Trouble {
    Trouble::BadCertificate {
        relay: relay.to_string(),
        cause: format!("no certificate can name this host ({cause})"),
    }
}

fn refused(relay: &RelayAddress, error: Error) -> Trouble {
    let not_a_relay = |cause: String| Trouble::NotARelay {
        relay: relay.to_string(),
        cause,
    };
    let hung_up = |cause: String| Trouble::HungUp {
        relay: relay.to_string(),
        cause,
    };
    match error {
        Error::Http(response) => match response.status() {
            StatusCode::NOT_FOUND => Trouble::WrongPath {
                relay: relay.to_string(),
            },
            StatusCode::TOO_MANY_REQUESTS => Trouble::RateLimited,
            // What stands in front of a relay says these while the relay restarts.
            status if status.is_server_error() => {
                unreachable(relay, &format!("the server says {status}"))
            }
            status => not_a_relay(format!("it answers {status} to a WebSocket upgrade")),
        },
        Error::Io(error) => hung_up(error.to_string()),
        Error::Protocol(ProtocolError::HandshakeIncomplete) => {
            hung_up("no answer at all".to_owned())
        }
        other => not_a_relay(other.to_string()),
    }
}

fn unreachable(relay: &RelayAddress, cause: &str) -> Trouble {
    Trouble::Unreachable {
        relay: relay.to_string(),
        cause: cause.to_owned(),
    }
}

/// TLS with the system's own roots, so that a company's certificate works, and those given. Reads files: not for the
/// runtime's own threads.
pub(super) fn tls_connector(
    extra_roots: &[CertificateDer<'static>],
) -> Result<TlsConnector, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a root certificate of the system could not be read");
    }
    roots.add_parsable_certificates(found.certs);
    roots.add_parsable_certificates(extra_roots.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A WebSocket needs HTTP/1.1; some servers would choose HTTP/2 for a client that does not say so.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
