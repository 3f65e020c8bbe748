//! Web servers of the world's internet, and traps that count who comes.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::PublicKeyData;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::net::{Side, World};

/// How often somebody connected.
#[derive(Debug, Clone, Default)]
pub struct Visits(Arc<AtomicUsize>);

impl Visits {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Starts a server in a namespace; each connection is handed to its own task.
pub fn serve<F>(
    side: &Side,
    at: SocketAddr,
    handle: impl Fn(TcpStream) -> F + Send + 'static,
) -> Visits
where
    F: Future<Output = ()> + Send + 'static,
{
    let visits = Visits::default();
    let seen = visits.clone();
    let listener = side.on_thread(move || {
        let listener = std::net::TcpListener::bind(at).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    });
    side.start(async move {
        let listener = TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            seen.0.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(handle(stream));
        }
    });
    visits
}

/// A server that must not be reached.
pub fn trap(side: &Side, at: SocketAddr) -> Visits {
    serve(side, at, |mut stream| async move {
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
            .await;
    })
}

/// A site of the internet that sends back what it gets.
pub fn echo(world: &World, at: &str) -> Visits {
    let at = at.parse().unwrap();
    world.holds(at);
    serve(&world.internet, at, |mut stream| async move {
        let (mut reader, mut writer) = stream.split();
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
        let _ = writer.shutdown().await;
    })
}

/// A site that answers every request with the request's own head, and closes.
pub fn mirror(world: &World, at: &str) -> Visits {
    canned(world, at, None)
}

/// A site that answers every request with this, and closes.
pub fn answering(world: &World, at: &str, answer: &'static str) -> Visits {
    canned(world, at, Some(answer))
}

fn canned(world: &World, at: &str, answer: Option<&'static str>) -> Visits {
    let at = at.parse().unwrap();
    world.holds(at);
    serve(&world.internet, at, move |mut stream| async move {
        let request = head(&mut stream).await;
        let mirrored = || {
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{request}",
                request.len()
            )
        };
        let reply = answer.map_or_else(mirrored, str::to_owned);
        let _ = stream.write_all(reply.as_bytes()).await;
    })
}

/// Reads a request's head.
pub async fn head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The heads of the requests that a site got.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// The paths that were asked for.
    pub fn paths(&self) -> BTreeSet<String> {
        let heads = self.0.lock().unwrap();
        let path = |head: &String| head.split(' ').nth(1).map(str::to_owned);
        heads.iter().filter_map(path).collect()
    }
}

/// A site that any other may read; it answers every request with a page, which is empty for most paths. What is below
/// `/endless` begins and never ends.
pub fn open(world: &World, at: &str, page: impl Fn(&str) -> String + Send + 'static) -> Requests {
    let at = at.parse().unwrap();
    world.holds(at);
    let requests = Requests::default();
    let seen = requests.clone();
    let page = Arc::new(Mutex::new(page));
    serve(&world.internet, at, move |stream| {
        answer(stream, seen.clone(), Arc::clone(&page))
    });
    requests
}

/// The same over TLS, with the base64 of the SHA-256 of its key.
pub fn open_tls(world: &World, at: &str) -> (Requests, String) {
    let (acceptor, spki) = acceptor();
    let at = at.parse().unwrap();
    world.holds(at);
    let requests = Requests::default();
    let seen = requests.clone();
    let page = Arc::new(Mutex::new(|_: &str| String::new()));
    serve(&world.internet, at, move |stream| {
        let (acceptor, seen, page) = (acceptor.clone(), seen.clone(), Arc::clone(&page));
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream, seen, page).await;
            }
        }
    });
    (requests, spki)
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: Requests,
    page: Arc<Mutex<impl Fn(&str) -> String>>,
) {
    let head = head(&mut stream).await;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = (page.lock().unwrap())(&path);
    if !head.is_empty() {
        requests.0.lock().unwrap().push(head);
    }
    let is_endless = path.starts_with("/endless");
    let kind = if path.ends_with(".js") {
        "text/javascript"
    } else {
        "text/html"
    };
    let length = body.len() + usize::from(is_endless);
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nAccess-Control-Allow-Origin: *\r\n\
        Cross-Origin-Resource-Policy: cross-origin\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let _ = stream.write_all(reply.as_bytes()).await;
    if is_endless {
        // The last byte never comes; the other side hangs up.
        let _ = stream.read_u8().await;
    }
    let _ = stream.shutdown().await;
}

/// A key and a certificate, and how a browser is told of the key.
fn acceptor() -> (TlsAcceptor, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["site.example".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let mut config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let spki = STANDARD.encode(Sha256::digest(key.subject_public_key_info()));
    (TlsAcceptor::from(Arc::new(config)), spki)
}

/// A TLS site that greets whoever asks.
pub fn tls(world: &World, at: &str) -> Visits {
    let (acceptor, _) = acceptor();
    let at = at.parse().unwrap();
    world.holds(at);
    serve(&world.internet, at, move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            head(&mut stream).await;
            let _ = stream
                .write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
                )
                .await;
            let _ = stream.shutdown().await;
        }
    })
}
