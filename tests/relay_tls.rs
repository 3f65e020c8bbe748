//! TLS at both ends, with a certificate authority of the test's own.

#![allow(clippy::unwrap_used, reason = "a test fails where something does")]

mod relay_stage;

use std::net::{Ipv4Addr, SocketAddr};

use gpu_browser::relay::address::{PlainHttp, RelayAddress};
use gpu_browser::relay::embedded::{BindError, EmbeddedRelay, RelayConfig, TlsFiles};
use gpu_browser::relay::link::{Link, LinkConfig, Trouble};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use relay_stage::*;
use rustls::pki_types::CertificateDer;

/// A root, and a certificate for `localhost` that it vouches for, as files.
struct Authority {
    root: CertificateDer<'static>,
    files: TlsFiles,
    _folder: tempfile::TempDir,
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()])
        .unwrap()
        .signed_by(&leaf_key, &issuer)
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = TlsFiles {
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
    };
    std::fs::write(&files.certificate, leaf.pem()).unwrap();
    std::fs::write(&files.key, leaf_key.serialize_pem()).unwrap();
    Authority {
        root: root.der().clone(),
        files,
        _folder: folder,
    }
}

async fn secure_relay(authority: &Authority) -> EmbeddedRelay {
    relay_with(|config| config.tls = Some(authority.files.clone())).await
}

fn secure_config(address: SocketAddr, roots: &[&Authority]) -> LinkConfig {
    let relay = format!("https://localhost:{}", address.port());
    LinkConfig {
        relay: RelayAddress::parse(&relay, PlainHttp::LoopbackOnly).unwrap(),
        extra_roots: roots
            .iter()
            .map(|authority| authority.root.clone())
            .collect(),
        ..link_config(address)
    }
}

#[tokio::test]
async fn a_link_over_tls_registers_and_mints() {
    let authority = authority("localhost");
    let relay = secure_relay(&authority).await;
    let (link, mut events) = Link::open(secure_config(relay.address(), &[&authority]));
    assert!(!up(&mut events).await);
    let minted = link.mint("x").await.unwrap();
    assert!(minted.link.starts_with(&format!(
        "https://localhost:{}/v1/t/as_",
        relay.address().port()
    )));
    link.close().await;
    relay.close().await;
}

#[tokio::test]
async fn certificates_of_unknown_roots_and_other_names_are_bad() {
    let (known, other) = (authority("localhost"), authority("other.example"));
    let relay = secure_relay(&known).await;
    let (_link, mut events) = Link::open(secure_config(relay.address(), &[]));
    assert!(matches!(
        away(&mut events).await,
        Trouble::BadCertificate { .. }
    ));
    let relay = secure_relay(&other).await;
    let (_link, mut events) = Link::open(secure_config(relay.address(), &[&other]));
    assert!(matches!(
        away(&mut events).await,
        Trouble::BadCertificate { .. }
    ));
}

#[tokio::test]
async fn the_wrong_scheme_is_no_relay_and_not_a_bad_certificate() {
    let authority = authority("localhost");
    let plain = relay().await;
    let (_link, mut events) = Link::open(secure_config(plain.address(), &[&authority]));
    assert!(matches!(away(&mut events).await, Trouble::NotARelay { .. }));
    let secure = secure_relay(&authority).await;
    let (_link, mut events) = Link::open(link_config(secure.address()));
    assert!(matches!(
        away(&mut events).await,
        Trouble::NotARelay { .. } | Trouble::HungUp { .. }
    ));
}

#[tokio::test]
async fn beyond_loopback_a_relay_wants_tls_or_an_explicit_word() {
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let refused = EmbeddedRelay::bind(RelayConfig::at(everywhere)).await;
    assert!(matches!(refused, Err(BindError::Exposed(_))));
    let insecure = RelayConfig {
        insecure: true,
        ..RelayConfig::at(everywhere)
    };
    assert!(EmbeddedRelay::bind(insecure).await.is_ok());
    let authority = authority("localhost");
    let secure = RelayConfig {
        tls: Some(authority.files.clone()),
        ..RelayConfig::at(everywhere)
    };
    assert!(EmbeddedRelay::bind(secure).await.is_ok());
}

#[tokio::test]
async fn files_that_are_no_certificate_are_named() {
    let (one, other) = (authority("localhost"), authority("localhost"));
    let swapped = TlsFiles {
        certificate: one.files.key.clone(),
        key: one.files.key.clone(),
    };
    let foreign = TlsFiles {
        certificate: one.files.certificate.clone(),
        key: other.files.key.clone(),
    };
    let missing = TlsFiles {
        certificate: "/none.pem".into(),
        key: one.files.key.clone(),
    };
    for files in [swapped, foreign, missing] {
        let config = RelayConfig {
            tls: Some(files),
            ..RelayConfig::local()
        };
        match EmbeddedRelay::bind(config).await {
            Err(error @ BindError::Tls(_)) => {
                assert!(error.to_string().contains("; "), "no way out: {error}");
            }
            other => panic!("{:?}", other.err()),
        }
    }
    let taken = relay().await;
    let config = RelayConfig::at(taken.address());
    assert!(matches!(
        EmbeddedRelay::bind(config).await,
        Err(BindError::Listen { .. })
    ));
}
