//! The embedded relay under load: agents call a small tool as fast as they are answered. `make bench` runs it.
//!
//! The relay, an app that answers at once, and the agents share one process and one machine, so the figures are what is
//! left beside the load generator. One JSON line a row: calls a second, latency in microseconds, memory of the process.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement, not the product"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gpu_browser::relay::embedded::{EmbeddedRelay, RelayConfig};
use gpu_browser::relay::frames::Body;
use gpu_browser::relay::link::{Link, LinkConfig, LinkEvent, LinkTiming, Reply};
use gpu_browser::relay::registration::{Registration, ToolSpec};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const SECONDS: Duration = Duration::from_secs(3);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let relay = EmbeddedRelay::bind(RelayConfig::local()).await.unwrap();
        let address = relay.address();
        let tool = ToolSpec {
            method: "POST".to_owned(),
            path: "/echo".to_owned(),
            description: String::new(),
            input_schema: None,
        };
        let registration = Registration::new("bench", "", "# bench tools.json", &[tool]).unwrap();
        let (link, mut events) = Link::open(LinkConfig {
            relay: relay.local_address(),
            registration,
            timing: LinkTiming::default(),
            extra_roots: Vec::new(),
        });
        while !matches!(events.recv().await, Some(LinkEvent::Up { .. })) {}
        let minted = link.mint("bench").await.unwrap();
        let base = format!("/v1/t/{}", minted.token);
        let answering = link.clone();
        let mut app = JoinSet::new();
        app.spawn(async move {
            while let Some(event) = events.recv().await {
                if let LinkEvent::Call(call) = event {
                    let body = Body::Json(serde_json::json!({ "ok": true }));
                    let reply = Reply {
                        id: call.id,
                        status: 200,
                        body,
                        task_id: None,
                    };
                    answering.reply(&reply).unwrap();
                }
            }
        });
        for agents in [1, 10, 100] {
            row(address, &base, agents).await;
        }
        link.close().await;
        relay.close().await;
        app.shutdown().await;
    });
}

async fn row(address: SocketAddr, base: &str, agents: usize) {
    let began = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..agents {
        running.spawn(agent(address, format!("{base}/echo"), began + SECONDS));
    }
    let mut times: Vec<u128> = running.join_all().await.into_iter().flatten().collect();
    let took = began.elapsed().as_secs_f64();
    times.sort_unstable();
    println!(
        "{}",
        serde_json::json!({
            "row": "relay", "agents": agents,
            "calls_per_second": (times.len() as f64 / took).round(),
            "p50_us": u64::try_from(times[times.len() / 2]).unwrap(),
            "p99_us": u64::try_from(times[times.len() * 99 / 100]).unwrap(),
            "process_mb": resident_mb(),
        })
    );
}

async fn agent(address: SocketAddr, path: String, until: Instant) -> Vec<u128> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut times = Vec::new();
    while Instant::now() < until {
        let request = hyper::Request::post(&path)
            .header("host", address.to_string())
            .body(Full::new(Bytes::from_static(b"{\"n\":1}")))
            .unwrap();
        let began = Instant::now();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
        times.push(began.elapsed().as_micros());
    }
    times
}

fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0.0);
    (kib / 102.4).round() / 10.0
}
