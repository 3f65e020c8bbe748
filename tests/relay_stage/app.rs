//! An app: nothing but a WebSocket.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::soon;

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
