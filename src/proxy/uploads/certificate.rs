//! The certificate of the run: ECDSA P-256, for one name, in memory alone. (Chromium takes no Ed25519.)

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::ResolvesServerCertUsingSni;
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};

/// Why the certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// No key, or no signature.
    #[error(transparent)]
    Make(#[from] rcgen::Error),
    /// TLS does not take it.
    #[error(transparent)]
    Use(#[from] rustls::Error),
}

/// A TLS configuration that answers to one name, and the base64 of the SHA-256 of its public key.
pub(super) fn make(name: &str) -> Result<(ServerConfig, String), CertificateError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = CertificateParams::new([name.to_owned()])?.self_signed(&key)?;
    let spki = STANDARD.encode(Sha256::digest(key.subject_public_key_info()));
    let provider = Arc::new(ring::default_provider());
    let chain = vec![certificate.der().clone()];
    let certified = CertifiedKey::from_der(
        chain,
        PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        &provider,
    )?;
    // A hello for any other name finds no certificate: this key opens every name for the browser that trusts it.
    let mut by_name = ResolvesServerCertUsingSni::new();
    by_name.add(name, certified)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(by_name));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((config, spki))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_key_of_its_own() {
        let (one, other) = (make("a.example").unwrap().1, make("a.example").unwrap().1);
        assert_ne!(one, other);
        assert_eq!(STANDARD.decode(one).unwrap().len(), 32);
    }
}
