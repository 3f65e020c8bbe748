//! Our two ends, set up for a test.

use std::net::SocketAddr;
use std::time::Duration;

use gpu_browser::relay::embedded::{EmbeddedRelay, RelayConfig};
use gpu_browser::relay::frames::Body;
use gpu_browser::relay::link::{
    Call, Ending, Link, LinkConfig, LinkEvent, LinkTiming, Minted, Reply, Trouble,
};
use gpu_browser::relay::registration::{Registration, ToolSpec};
use tokio::sync::mpsc;

use super::{App, soon};

pub async fn relay() -> EmbeddedRelay {
    EmbeddedRelay::bind(RelayConfig::local()).await.unwrap()
}

/// A relay whose time limits are other ones.
pub async fn relay_with(change: impl FnOnce(&mut RelayConfig)) -> EmbeddedRelay {
    let mut config = RelayConfig::local();
    change(&mut config);
    EmbeddedRelay::bind(config).await.unwrap()
}

/// A relay, its address, an app with `POST /a` and `GET /g`, and the path of a link.
pub async fn staged(
    change: impl FnOnce(&mut RelayConfig),
) -> (EmbeddedRelay, SocketAddr, App, String) {
    let relay = relay_with(change).await;
    let address = relay.address();
    let (mut app, _session) = App::registered(address, &["POST /a", "GET /g"]).await;
    let base = app.mint().await;
    (relay, address, app, base)
}

pub fn link_config(address: SocketAddr) -> LinkConfig {
    let tool = |path: &str| ToolSpec {
        method: "POST".into(),
        path: path.into(),
        description: "d".into(),
        input_schema: None,
    };
    let tools = [tool("/echo"), tool("/slow")];
    LinkConfig {
        relay: gpu_browser::relay::address::RelayAddress::local(address),
        registration: Registration::new("app", "d", "tools.json", &tools).unwrap(),
        timing: LinkTiming {
            backoff_first: Duration::from_millis(20),
            backoff_cap: Duration::from_millis(100),
            ..LinkTiming::default()
        },
        extra_roots: Vec::new(),
    }
}

/// A link that is up, and its first link for agents.
pub async fn linked(address: SocketAddr) -> (Link, mpsc::Receiver<LinkEvent>, Minted) {
    let (link, mut events) = Link::open(link_config(address));
    up(&mut events).await;
    let minted = soon(link.mint("first")).await.unwrap();
    (link, events, minted)
}

/// Waits until the link is up: whether it was resumed.
pub async fn up(events: &mut mpsc::Receiver<LinkEvent>) -> bool {
    loop {
        match soon(events.recv()).await.expect("the link goes on") {
            LinkEvent::Up { resumed, .. } => return resumed,
            LinkEvent::Ended(ending) => panic!("{ending}"),
            _ => {}
        }
    }
}

/// Waits for a call.
pub async fn called(events: &mut mpsc::Receiver<LinkEvent>) -> Call {
    loop {
        match soon(events.recv()).await.expect("the link goes on") {
            LinkEvent::Call(call) => return call,
            LinkEvent::Ended(ending) => panic!("{ending}"),
            _ => {}
        }
    }
}

/// A reply of plain text.
pub fn plain(call: &Call, text: impl Into<String>) -> Reply {
    Reply {
        id: call.id.clone(),
        status: 200,
        body: Body::Text {
            content_type: "text/plain".into(),
            text: text.into(),
        },
        task_id: None,
    }
}

/// The path of a link's tool at its relay.
pub fn tool(minted: &Minted, path: &str) -> String {
    format!("/v1/t/{}{path}", minted.token)
}

/// Waits until the link is away: why.
pub async fn away(events: &mut mpsc::Receiver<LinkEvent>) -> Trouble {
    loop {
        match soon(events.recv()).await.expect("the link goes on") {
            LinkEvent::Away { reason, .. } => return reason,
            LinkEvent::Ended(ending) => panic!("{ending}"),
            _ => {}
        }
    }
}

/// Waits until the link has ended: why.
pub async fn ended(events: &mut mpsc::Receiver<LinkEvent>) -> Ending {
    loop {
        if let LinkEvent::Ended(ending) = soon(events.recv()).await.expect("the link tells its end")
        {
            return ending;
        }
    }
}
