//! What is fuzzed, as plain functions: libFuzzer calls them for hours, `tests/fuzz_short.rs` for a moment in every run.
//! Each panics when a promise is broken.

#![allow(
    unreachable_pub,
    reason = "each target and the short run use their part"
)]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use gpu_browser::policy::host::{Host, Port};
use gpu_browser::policy::limits::CLIENT_HELLO;
use gpu_browser::policy::refusal::Refusal;
use gpu_browser::proxy::hello::{Hello, parse};
use gpu_browser::proxy::request::{self, Ask, Destination};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

/// Heads as the proxy gets them, through hyper: what is taken names one host in its wire spelling, and that spelling is
/// in the bytes.
pub fn fuzz_connect_head(data: &[u8]) {
    let taken: Arc<Mutex<Vec<Ask>>> = Arc::default();
    let service = service_fn(|request: Request<Incoming>| {
        let (head, _) = request.into_parts();
        if let Ok(ask) = request::parse(&head) {
            taken.lock().expect("one thread").push(ask);
        }
        async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(data.len().max(1) + 64 * 1024);
        client.write_all(data).await.expect("it holds all");
        client.shutdown().await.expect("it is open");
        let http = hyper::server::conn::http1::Builder::new();
        // Broken heads end it with an error, which is as good an end as any.
        let _ = http.serve_connection(TokioIo::new(server), service).await;
    });
    for ask in taken.lock().expect("one thread").iter() {
        if let Ask::Connect(Destination::Site(host), _) | Ask::Plain(Destination::Site(host), _) =
            ask
        {
            let lower = data.to_ascii_lowercase();
            let name = host.as_str().as_bytes();
            assert!(
                lower.windows(name.len()).any(|window| window == name),
                "{host} is not in the head"
            );
        }
    }
}

/// The host grammar: what is taken is a name in its one spelling, and no address to anybody.
pub fn fuzz_host(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(host) = Host::parse(text) {
        assert_eq!(Host::parse(host.as_str()).as_ref(), Ok(&host));
        assert!(host.as_str().parse::<std::net::IpAddr>().is_err());
    }
    match Port::split(text) {
        Ok((host, port)) => assert_eq!(format!("{host}:{}", port.number()), text),
        Err(refusal) => assert_ne!(refusal, Refusal::HostNotAllowed),
    }
}

/// The first bytes of a tunnel to 443: what is taken names a host that is in the bytes, and every prefix of it waits.
pub fn fuzz_client_hello(data: &[u8]) {
    match parse(data) {
        Hello::Names(name) => {
            assert!(
                data.windows(name.len())
                    .any(|window| window == name.as_bytes())
            );
            let end = 5 + usize::from(u16::from_be_bytes([data[3], data[4]]));
            assert!((0..end).all(|length| parse(&data[..length]) == Hello::Partial));
        }
        Hello::Partial => assert!(data.len() < 5 + CLIENT_HELLO),
        Hello::Nameless | Hello::NotTls => {}
    }
}

/// The archives of uploads: whatever the bytes, no path and no size that an upload may not have.
pub fn fuzz_archive(data: &[u8]) {
    gpu_browser::server::archive::fuzz(data);
}
