//! A relay that does what a test says, right or wrong; and a wire that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use super::soon;

/// Where a link connects to, to meet a [`FakeSocket`].
pub struct FakeRelay {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl FakeRelay {
    pub async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    /// The next TCP connection, with nothing said on it.
    pub async fn tcp(&self) -> TcpStream {
        soon(self.listener.accept()).await.unwrap().0
    }

    /// Answers the next connection with these bytes and hangs up.
    pub async fn say(&self, bytes: &[u8]) {
        let mut stream = self.tcp().await;
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let _ = soon(tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest)).await;
    }

    /// The next WebSocket, not yet answered.
    pub async fn accept(&self) -> FakeSocket {
        let stream = self.tcp().await;
        let mut path = String::new();
        let socket = accept_hdr_async(stream, |request: &Request, response: Response| {
            path = request.uri().to_string();
            Ok(response)
        });
        let socket = soon(socket).await.unwrap();
        FakeSocket { socket, path }
    }

    /// The next WebSocket, registered or resumed as session `ABCDEFGH`.
    pub async fn welcome(&self) -> FakeSocket {
        let mut socket = self.accept().await;
        let first = socket.frame().await;
        socket.admit(first["type"] == "resume").await;
        socket
    }
}

pub struct FakeSocket {
    pub socket: WebSocketStream<TcpStream>,
    /// Path and query of the upgrade.
    pub path: String,
}

impl FakeSocket {
    pub async fn admit(&mut self, resumed: bool) {
        self.send(json!({ "type": "register_reply", "ok": true, "sessionId": "ABCDEFGH", "resumeSecret": "s3cret", "resumed": resumed })).await;
    }

    pub async fn send(&mut self, frame: Value) {
        self.send_text(frame.to_string()).await;
    }

    pub async fn send_text(&mut self, text: impl Into<Utf8Bytes>) {
        soon(self.socket.send(Message::Text(text.into())))
            .await
            .unwrap();
    }

    pub async fn frame(&mut self) -> Value {
        match soon(self.socket.next()).await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
            other => panic!("no frame but {other:?}"),
        }
    }

    /// The next frame of this type; heartbeats and others are passed over.
    pub async fn frame_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// Answers the link's next request with these fields.
    pub async fn answer(&mut self, kind: &str, mut fields: Value) -> Value {
        let asked = self.frame_of(kind).await;
        fields["type"] = json!(format!("{kind}_reply"));
        fields["id"] = asked["id"].clone();
        self.send(fields).await;
        asked
    }

    pub async fn mint(&mut self, token: &str) -> Value {
        self.answer(
            "mint_agent_token",
            json!({ "ok": true, "token": token, "label": "l" }),
        )
        .await
    }

    pub async fn call(&mut self, id: &str) {
        self.send(json!({ "type": "tool_call", "id": id, "method": "POST", "path": "/echo", "body": "", "headers": {} })).await;
    }

    pub async fn close(&mut self, code: u16) {
        let frame = CloseFrame {
            code: code.into(),
            reason: "".into(),
        };
        let _ = soon(self.socket.close(Some(frame))).await;
    }

    /// The code that the link closes with; 0 where it is cut.
    pub async fn close_code(&mut self) -> u16 {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    // The answer to it goes out with the next read.
                    assert!(soon(self.socket.next()).await.is_none());
                    return frame.code.into();
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return 0,
            }
        }
    }
}

/// A wire to a relay that can be cut, any number of times.
pub struct Wire {
    pub address: SocketAddr,
    scissors: Arc<Notify>,
    forwarding: JoinHandle<()>,
}

impl Wire {
    pub async fn to(relay: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scissors = Arc::new(Notify::new());
        let cut = Arc::clone(&scissors);
        let forwarding = tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let cut = Arc::clone(&cut);
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(relay).await else {
                        return;
                    };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        () = cut.notified() => {}
                    }
                });
            }
        });
        Self {
            address,
            scissors,
            forwarding,
        }
    }

    /// Cuts every connection that is open, in the middle of whatever it carries.
    pub fn cut(&self) {
        self.scissors.notify_waiters();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.forwarding.abort();
    }
}
