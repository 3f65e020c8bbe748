//! The relay's own certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::config::TlsFiles;

/// Why a certificate is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read, or is no PEM of the right kind.
    #[error(
        "cannot use {path}: {cause}; --tls-cert takes a certificate chain and --tls-key its private key, both as PEM files that can be read here"
    )]
    File {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        cause: rustls::pki_types::pem::Error,
    },
    /// A key that does not fit its certificate.
    #[error(
        "certificate and key do not go together: {0}; give the key that the certificate was made with"
    )]
    Pair(#[from] rustls::Error),
}

/// What takes TLS connections with these files. HTTP/1.1 only, which WebSockets need.
pub(super) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause| TlsError::File { path, cause }
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed(&files.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(failed(&files.key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
