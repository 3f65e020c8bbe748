//! The browser's side of the proxy, byte by byte: what an attacker in a page or beside it could send.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gpu_browser::proxy::Credential;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection to the proxy.
pub struct Client {
    pub stream: TcpStream,
    /// Bytes read and not yet looked at.
    ahead: Vec<u8>,
}

/// An answer's head, or a whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(held, _)| held == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

pub fn authorization(credential: &Credential) -> String {
    let pair = format!("{}:{}", credential.user, credential.password);
    format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(pair))
}

/// The head of a CONNECT as Chromium sends it.
pub fn connect(target: &str, credential: Option<&Credential>) -> String {
    let secret = credential.map_or(String::new(), authorization);
    format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Connection: keep-alive\r\n{secret}\r\n"
    )
}

/// The head of a plain request as Chromium sends it.
pub fn get(url: &str, credential: Option<&Credential>) -> String {
    let host = url
        .strip_prefix("http://")
        .unwrap_or(url)
        .split('/')
        .next()
        .unwrap();
    let secret = credential.map_or(String::new(), authorization);
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nProxy-Connection: keep-alive\r\n{secret}\r\n")
}

impl Client {
    pub async fn to(proxy: SocketAddr) -> Self {
        let stream = TcpStream::connect(proxy).await.unwrap();
        Self {
            stream,
            ahead: Vec::new(),
        }
    }

    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.unwrap();
    }

    /// Sends a request and reads the whole answer.
    pub async fn ask(&mut self, request: &str) -> Answer {
        self.send(request).await;
        self.answer().await
    }

    /// Reads an answer's head.
    pub async fn head(&mut self) -> Answer {
        let end = loop {
            if let Some(at) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let read = self.stream.read_buf(&mut self.ahead).await.unwrap();
            assert_ne!(
                read,
                0,
                "the proxy hung up after {:?}",
                String::from_utf8_lossy(&self.ahead)
            );
        };
        let head = String::from_utf8(self.ahead.drain(..end).collect()).unwrap();
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Answer {
            status,
            headers,
            body: Vec::new(),
        }
    }

    /// Reads a whole answer, its body by its length or its chunks.
    pub async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if let Some(length) = answer.header("content-length") {
            answer.body = self.exactly(length.parse().unwrap()).await;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line().await, 16).unwrap();
                answer.body.extend(self.exactly(size).await);
                self.line().await;
                if size == 0 {
                    break;
                }
            }
        }
        answer
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(self.exactly(1).await);
        }
        String::from_utf8(line[..line.len() - 2].to_vec()).unwrap()
    }

    /// Reads so many bytes.
    pub async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.ahead.len() < count {
            let read = self.stream.read_buf(&mut self.ahead).await.unwrap();
            assert_ne!(read, 0, "the proxy hung up");
        }
        self.ahead.drain(..count).collect()
    }

    /// Reads to the end; a reset is an end too.
    pub async fn rest(mut self) -> Vec<u8> {
        while self
            .stream
            .read_buf(&mut self.ahead)
            .await
            .is_ok_and(|read| read > 0)
        {}
        self.ahead
    }

    /// TLS with whoever is at the other end of the tunnel, believing what the verifier believes.
    pub async fn tls(
        self,
        name: &str,
        trust: Trust,
        alpn: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        assert!(self.ahead.is_empty());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(trust))
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, self.stream)
            .await
    }
}

/// Which certificates are believed.
#[derive(Debug)]
pub enum Trust {
    /// The one with this key, as Chromium does with `--ignore-certificate-errors-spki-list`.
    Spki(String),
    /// Any: the test looks at what is inside.
    Any,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = rustls::server::ParsedCertificate::try_from(end_entity)?;
        let spki = STANDARD.encode(Sha256::digest(certificate.subject_public_key_info()));
        match self {
            Self::Spki(believed) if *believed != spki => {
                Err(rustls::Error::General(format!("unknown key {spki}")))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
