//! The other parties of the protocol, for tests: an agent with nothing but HTTP, and an app with nothing but a WebSocket.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of the stage"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests open connections and start tasks of their own"
)]

pub mod fake;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use gpu_browser::relay::embedded::{EmbeddedRelay, RelayConfig};
use gpu_browser::relay::frames::Body;
use gpu_browser::relay::link::{
    Call, Ending, Link, LinkConfig, LinkEvent, LinkTiming, Minted, Reply, Trouble,
};
use gpu_browser::relay::registration::{Registration, ToolSpec};
use http_body_util::{BodyExt as _, Full};
use hyper::header::HOST;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};

/// Nothing in these tests takes this long unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What must come, comes.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("this should not hang")
}

// --- the agent

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The relay's error code, or nothing.
    pub fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

pub async fn ask(address: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    soon(try_ask(address, request)).await.unwrap()
}

pub async fn try_ask(
    address: SocketAddr,
    mut request: Request<Full<Bytes>>,
) -> hyper::Result<Answer> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    if !request.headers().contains_key(HOST) {
        request
            .headers_mut()
            .insert(HOST, address.to_string().parse().unwrap());
    }
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    connection.abort();
    Ok(Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
    })
}

pub fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(Full::new(body.into()))
        .unwrap()
}

pub async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, request("GET", path, "")).await
}

pub async fn post(address: SocketAddr, path: &str, body: impl Into<Bytes>) -> Answer {
    ask(address, request("POST", path, body)).await
}

// --- the app

/// An app that sends exactly what a test says.
pub struct App {
    socket: WebSocketStream<TcpStream>,
    asked: u64,
}

impl App {
    pub async fn connect(address: SocketAddr, query: &str) -> Self {
        Self::try_connect(address, query).await.unwrap()
    }

    pub async fn try_connect(
        address: SocketAddr,
        query: &str,
    ) -> Result<Self, tokio_tungstenite::tungstenite::Error> {
        let stream = TcpStream::connect(address).await.unwrap();
        let (socket, _) = client_async(format!("ws://{address}/v1/_ws{query}"), stream).await?;
        Ok(Self { socket, asked: 0 })
    }

    /// Registers with one tool for each `METHOD /path`; the reply says who we are.
    pub async fn registered(address: SocketAddr, tools: &[&str]) -> (Self, Session) {
        let mut app = Self::connect(address, "").await;
        app.send(registration(tools)).await;
        let reply = app.frame().await;
        assert_eq!(reply["ok"], true, "{reply}");
        let session = Session {
            id: text(&reply["sessionId"]),
            secret: text(&reply["resumeSecret"]),
        };
        (app, session)
    }

    pub async fn send(&mut self, frame: Value) {
        self.send_text(frame.to_string()).await;
    }

    pub async fn send_text(&mut self, text: impl Into<Utf8Bytes>) {
        soon(self.socket.send(Message::Text(text.into())))
            .await
            .unwrap();
    }

    pub async fn send_message(&mut self, message: Message) {
        soon(self.socket.send(message)).await.unwrap();
    }

    /// The next text frame.
    pub async fn frame(&mut self) -> Value {
        match soon(self.message()).await {
            Some(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("no frame but {other:?}"),
        }
    }

    async fn message(&mut self) -> Option<Message> {
        loop {
            match self.socket.next().await?.ok()? {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return Some(message),
            }
        }
    }

    /// The code that the relay closes with; frames before it are passed over.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            match soon(self.message()).await {
                Some(Message::Close(Some(frame))) => return frame.code.into(),
                Some(Message::Close(None)) | None => return 0,
                Some(_) => {}
            }
        }
    }

    /// Sends a request and gives its reply.
    pub async fn request(&mut self, mut frame: Value) -> Value {
        self.asked += 1;
        frame["id"] = json!(format!("q{}", self.asked));
        self.send(frame.clone()).await;
        let reply = self.frame().await;
        assert_eq!(reply["id"], frame["id"], "{reply}");
        reply
    }

    /// The path of a new link, `/v1/t/<token>`.
    pub async fn mint(&mut self) -> String {
        let reply = self
            .request(json!({ "type": "mint_agent_token", "label": "l" }))
            .await;
        format!("/v1/t/{}", text(&reply["token"]))
    }

    /// Answers the next call with these fields.
    pub async fn answer(&mut self, fields: Value) -> Value {
        let call = self.frame().await;
        assert_eq!(call["type"], "tool_call", "{call}");
        self.reply(&call, fields).await;
        call
    }

    pub async fn reply(&mut self, call: &Value, mut fields: Value) {
        fields["type"] = json!("tool_reply");
        fields["id"] = call["id"].clone();
        self.send(fields).await;
    }

    pub async fn close(mut self, code: u16) {
        let frame = CloseFrame {
            code: code.into(),
            reason: "".into(),
        };
        let _ = soon(self.socket.close(Some(frame))).await;
        while soon(self.socket.next())
            .await
            .is_some_and(|message| message.is_ok())
        {}
    }

    /// Ends the TCP connection without a word.
    pub fn cut(self) {
        drop(self);
    }
}

pub struct Session {
    pub id: String,
    pub secret: String,
}

impl Session {
    pub fn query(&self) -> String {
        format!("?session={}", self.id)
    }

    pub fn resume(&self, tools: &[&str]) -> Value {
        let mut frame = registration(tools);
        frame["type"] = json!("resume");
        frame["sessionId"] = json!(self.id);
        frame["secret"] = json!(self.secret);
        frame
    }
}

pub fn registration(tools: &[&str]) -> Value {
    let tool = |tool: &&str| {
        let (method, path) = tool.split_once(' ').unwrap();
        json!({ "method": method, "path": path, "description": "d" })
    };
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    json!({ "type": "register", "appId": "app", "agentsMd": "tools.json", "appDescription": "d", "tools": tools })
}

pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

// --- the relay and the link

pub async fn relay() -> EmbeddedRelay {
    EmbeddedRelay::bind(RelayConfig::local()).await.unwrap()
}

/// A relay whose time limits are other ones.
pub async fn relay_with(change: impl FnOnce(&mut RelayConfig)) -> EmbeddedRelay {
    let mut config = RelayConfig::local();
    change(&mut config);
    EmbeddedRelay::bind(config).await.unwrap()
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
