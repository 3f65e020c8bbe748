//! An agent: nothing but HTTP.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::HOST;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::soon;

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
