//! The uploads host: files that the agent uploaded, held in memory and served to its pages.
//!
//! The proxy itself answers TLS here, and nowhere else, with a certificate made for the run. Chromium takes that key for
//! **every** host name, so it lives in memory alone, answers to this one name, and dies with the run.

mod certificate;
mod path;
mod range;
mod serve;
pub mod store;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

pub use self::certificate::CertificateError;
pub use self::store::UploadStore;
use crate::policy::limits::{PROXY_HEAD, PROXY_HEAD_TIME};

/// The origin that uploads are served at; matched before the resolver, so the name never goes to DNS.
pub const ORIGIN: &str = "https://uploads.gpu-browser.internal";
/// The host name of [`ORIGIN`].
pub const HOST: &str = "uploads.gpu-browser.internal";

/// The uploads host of one run.
pub(super) struct UploadsHost {
    store: Arc<UploadStore>,
    tls: TlsAcceptor,
    spki: String,
}

impl UploadsHost {
    /// Makes the certificate of the run.
    pub(super) fn new(store: Arc<UploadStore>) -> Result<Self, CertificateError> {
        let (config, spki) = certificate::make(HOST)?;
        Ok(Self {
            store,
            tls: TlsAcceptor::from(Arc::new(config)),
            spki,
        })
    }

    pub(super) fn spki(&self) -> &str {
        &self.spki
    }

    /// Serves a tunnel that was opened to this host, whose first bytes may have come with its CONNECT.
    pub(super) async fn serve(&self, client: TcpStream, early: Bytes) {
        let (reader, writer) = client.into_split();
        let client = tokio::io::join(std::io::Cursor::new(early).chain(reader), writer);
        let tls = match timeout(PROXY_HEAD_TIME, self.tls.accept(client)).await {
            Ok(Ok(tls)) => tls,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS with the uploads host broke off"),
            Err(_) => return,
        };
        let h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        let service = service_fn(|request| {
            let answer = serve::answer(&self.store, &request);
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let served = if h2 {
            let mut http = http2::Builder::new(Streams::default());
            http.timer(TokioTimer::new())
                .serve_connection(TokioIo::new(tls), service)
                .await
        } else {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(PROXY_HEAD_TIME)
                .max_buf_size(PROXY_HEAD);
            http.serve_connection(TokioIo::new(tls), service).await
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection to the uploads host broke off");
        }
    }
}

/// The tasks of the streams of one HTTP/2 connection; they end with it.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while streams.try_join_next().is_some() {}
        streams.spawn(async {
            stream.await;
        });
    }
}
