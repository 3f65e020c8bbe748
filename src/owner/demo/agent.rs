//! The demo as an agent: plain HTTP to the link, and nothing else.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::Url;

use crate::policy::limits::FRAME_BYTES;

/// Why a call gave nothing to go on with.
#[derive(Debug, thiserror::Error)]
pub(in crate::owner) enum AgentError {
    /// The link is none.
    #[error("the link {0:?} has no host, or does not end in /agents.md")]
    Link(String),
    /// The relay cannot be reached.
    #[error("{call}: cannot connect: {cause}")]
    Connect {
        /// The call.
        call: String,
        /// The system's words.
        cause: std::io::Error,
    },
    /// The exchange broke.
    #[error("{call}: {cause}")]
    Exchange {
        /// The call.
        call: String,
        /// What broke.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer is an error.
    #[error("{call}: {status}: {body}")]
    Status {
        /// The call.
        call: String,
        /// The HTTP status.
        status: u16,
        /// What the answer says.
        body: String,
    },
}

/// Whoever holds the link.
pub(in crate::owner) struct Agent {
    host: String,
    port: u16,
    /// The path of the link without `/agents.md`.
    base: String,
}

impl Agent {
    /// From a link of a relay on this machine.
    pub(in crate::owner) fn new(link: &str) -> Result<Self, AgentError> {
        let parts = Url::parse(link).ok().and_then(|url| {
            Some(Self {
                host: url.host_str()?.to_owned(),
                port: url.port_or_known_default()?,
                base: url.path().strip_suffix("/agents.md")?.to_owned(),
            })
        });
        parts.ok_or_else(|| AgentError::Link(link.to_owned()))
    }

    /// `GET $BASE<path>`.
    pub(in crate::owner) async fn get(&self, path: &str) -> Result<Bytes, AgentError> {
        self.call(Method::GET, path, Bytes::new()).await
    }

    /// `POST $BASE<path>` with a JSON body.
    pub(in crate::owner) async fn post(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<Bytes, AgentError> {
        self.call(Method::POST, path, body.to_string().into()).await
    }

    async fn call(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, AgentError> {
        let call = format!("{method} {path}");
        let (status, answer) = self.exchange(method, path, body, &call).await?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let body = String::from_utf8_lossy(&answer).into_owned();
        Err(AgentError::Status { call, status, body })
    }

    /// One connection a call, like `curl`.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        call: &str,
    ) -> Result<(u16, Bytes), AgentError> {
        let broken = |cause: Box<dyn std::error::Error + Send + Sync>| AgentError::Exchange {
            call: call.to_owned(),
            cause,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the demo plays the agent, which calls the embedded relay on this machine"
        )]
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = connecting.await.map_err(|cause| AgentError::Connect {
            call: call.to_owned(),
            cause,
        })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(error.into()))?;
        // Ends with this call: dropping the set ends what it holds.
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("host", format!("{}:{}", self.host, self.port))
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| broken(error.into()))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| broken(error.into()))?;
        let status = response.status().as_u16();
        let answer = Limited::new(response.into_body(), FRAME_BYTES)
            .collect()
            .await
            .map_err(broken)?;
        Ok((status, answer.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_base_with_a_briefing() {
        let agent = Agent::new("http://127.0.0.1:8080/v1/t/as_x/agents.md").unwrap();
        assert_eq!((agent.host.as_str(), agent.port), ("127.0.0.1", 8080));
        assert_eq!(agent.base, "/v1/t/as_x");
        for wrong in ["", "agents.md", "http://127.0.0.1/v1/t/as_x"] {
            assert!(matches!(Agent::new(wrong), Err(AgentError::Link(_))));
        }
    }
}
