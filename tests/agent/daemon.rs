//! A running `gpu-browser start --dev`, and the calls of an agent that holds its link.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A call is answered within this: the relay's 30 s, and a machine that is busy with other tests.
const ANSWERED: Duration = Duration::from_secs(32);
/// The daemon ends in order within 5 s; the rest is for a busy machine.
const ENDED: Duration = Duration::from_secs(10);

/// A daemon of a test's own, or of several; ended and reaped when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    /// The link without `/agents.md`.
    pub(crate) base: String,
    reader: Option<JoinHandle<()>>,
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}

impl Daemon {
    /// Starts one and waits for its link.
    pub(crate) fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gpu-browser"))
            .args(["start", "--dev", "--json", "--relay", "local"])
            // Whatever the tester has there, and nothing of ours is left there.
            .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let link = lines.by_ref().map(Result::unwrap).find_map(|line| {
            let event: Value = serde_json::from_str(&line).unwrap();
            (event["event"] == "ready").then(|| event["link"].as_str().unwrap().to_owned())
        });
        let Some(link) = link else {
            panic!("no link; the daemon ended with {:?}", child.wait());
        };
        let base = link.strip_suffix("/agents.md").unwrap().to_owned();
        // A pipe that nobody reads would stop the daemon.
        let reader = std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            base,
            reader: Some(reader),
        }
    }

    /// The one that running tests share: started by the first, ended with the last.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Daemon>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let daemon = Arc::new(Self::start());
            *shared = Arc::downgrade(&daemon);
            daemon
        })
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// One HTTP request on a connection of its own.
    pub(crate) async fn send(&self, method: Method, tool: &str, body: impl Into<Bytes>) -> Reply {
        let body = body.into();
        timeout(ANSWERED, self.exchange(method, tool, body))
            .await
            .unwrap_or_else(|_| panic!("{tool} was not answered within {ANSWERED:?}"))
    }

    async fn exchange(&self, method: Method, tool: &str, body: Bytes) -> Reply {
        let url = self.base.strip_prefix("http://").unwrap();
        let (authority, prefix) = url.split_once('/').unwrap();
        let stream = TcpStream::connect(authority).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let request = Request::builder()
            .method(method)
            .uri(format!("/{prefix}/{}", tool.trim_start_matches('/')))
            .header("host", authority)
            .header("content-type", "application/json")
            .body(Full::new(body))
            .unwrap();
        let answered = async move {
            let response = sender.send_request(request).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            Reply { status, body }
        };
        let (answered, connection) = tokio::join!(answered, connection);
        connection.unwrap();
        answered
    }

    pub(crate) async fn post(&self, tool: &str, body: Value) -> (u16, Value) {
        let reply = self.send(Method::POST, tool, body.to_string()).await;
        (reply.status, reply.json())
    }

    pub(crate) async fn get(&self, tool: &str) -> Value {
        let reply = self.send(Method::GET, tool, "").await;
        assert_eq!(reply.status, 200, "{tool}: {}", reply.text());
        reply.json()
    }

    /// A call that must go well.
    pub(crate) async fn ok(&self, tool: &str, body: Value) -> Value {
        let (status, reply) = self.post(tool, body.clone()).await;
        let asked: String = body.to_string().chars().take(200).collect();
        assert_eq!(status, 200, "{tool} {asked}: {reply}");
        reply
    }

    /// A call that must be refused: with this status and code, a message, and a fix.
    pub(crate) async fn refused(&self, tool: &str, body: Value, status: u16, code: &str) -> Value {
        let reply = self.send(Method::POST, tool, body.to_string()).await;
        judge_refusal(&reply, &body.to_string(), status, code)
    }

    /// A page that shows a document.
    pub(crate) async fn open(&self, html: &str, width: u32, height: u32) -> String {
        let body = json!({"html": html, "width": width, "height": height});
        let verdict = self.ok("page", body).await;
        assert_eq!(verdict["status"], 200, "{verdict}");
        assert!(verdict.get("page_errors").is_none(), "{verdict}");
        verdict["page"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn close(&self, page: &str) {
        self.ok("close", json!({ "page": page })).await;
    }

    /// The value of a script in a page.
    pub(crate) async fn eval(&self, page: &str, js: &str) -> Value {
        self.ok("eval", json!({"page": page, "js": js})).await["value"].take()
    }
}

/// Checks that an answer is a refusal of this kind, small and with its fix.
pub(crate) fn judge_refusal(reply: &Reply, asked: &str, status: u16, code: &str) -> Value {
    let asked: String = asked.chars().take(200).collect();
    let body = reply.json();
    let error = &body["error"];
    assert_eq!(
        (reply.status, error["code"].as_str()),
        (status, Some(code)),
        "{asked}: {body}"
    );
    for word in ["message", "fix"] {
        assert!(
            error[word].as_str().is_some_and(|text| !text.is_empty()),
            "{asked}: {body}"
        );
    }
    assert!(
        reply.body.len() < 2_048,
        "{asked}: {} bytes",
        reply.body.len()
    );
    error.clone()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.pid());
        let _ = kill(pid, Signal::SIGINT);
        let deadline = Instant::now() + ENDED;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
