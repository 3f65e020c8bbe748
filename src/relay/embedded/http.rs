//! The relay's HTTP, in the order of the protocol's checks.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::Relay;
use super::agent;
use super::answers::document;
use super::denied::Denied;
use super::socket::{serve, socket_config};
use crate::relay::tokens::{AgentToken, SessionId};

pub(super) type Answered = Response<Full<Bytes>>;

const PAGE: &str = "<!doctype html><meta charset=utf-8><title>agent-socket relay</title>
<p>This is an agent-socket relay. It passes the calls of agents on to the apps that are connected to it.
<p>Apps connect at <code>/v1/_ws</code>; an agent needs a link of the form <code>/v1/t/&lt;token&gt;/agents.md</code>.
";

/// Answers one request.
pub(super) async fn answer(
    relay: Arc<Relay>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Answered {
    let path = resolved(request.uri());
    let answered = match host(&request) {
        host if !relay.hosts.allows(host.as_deref()) => Err(Denied::WrongHost),
        _ if path == "/" => Ok(document(
            "text/html; charset=utf-8",
            Bytes::from_static(PAGE.as_bytes()),
        )),
        _ if path == "/v1/_ws" => upgrade(&relay, peer, request),
        _ => route(&relay, &path, request).await,
    };
    answered.unwrap_or_else(|denied| denied.response())
}

/// An agent's address: `/v1/t/<token>` and a path of the app's.
async fn route(
    relay: &Arc<Relay>,
    path: &str,
    request: Request<Incoming>,
) -> Result<Answered, Denied> {
    let rest = path
        .strip_prefix("/v1/t/")
        .ok_or(Denied::NotFound("no such address"))?;
    let (token, path) = rest
        .find('/')
        .map_or((rest, "/"), |slash| rest.split_at(slash));
    let token = AgentToken::parse(token).ok_or(Denied::NotFound("this is no agent's link"))?;
    if is_upgrade(request.headers()) {
        return Err(Denied::UpgradeForAgent);
    }
    agent::answer(relay, token, path, request).await
}

/// The path with its dot segments resolved, as the WHATWG does it: the query is dropped, percent escapes stay.
fn resolved(uri: &Uri) -> String {
    let path = uri.path();
    let is_plain = path.starts_with('/') && !path.contains(['.', '%', '\\']);
    // Without dots, escapes and backslashes there is nothing to resolve.
    if is_plain || path.matches('.').count() == 1 && path.ends_with("/agents.md") {
        return path.to_owned();
    }
    match url::Url::parse(&format!("http://relay{path}")) {
        Ok(url) => url.path().to_owned(),
        Err(_) => path.to_owned(),
    }
}

fn host(request: &Request<Incoming>) -> Option<String> {
    let named = request.uri().authority().map(ToString::to_string);
    named.or_else(|| Some(request.headers().get(HOST)?.to_str().ok()?.to_owned()))
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Makes a WebSocket of the connection and leaves it to a task of its own.
fn upgrade(
    relay: &Arc<Relay>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Result<Answered, Denied> {
    let is_get = request.method() == Method::GET;
    let accept = accept_key(request.headers())
        .filter(|_| is_get)
        .ok_or(Denied::ExpectedUpgrade)?;
    if !relay.rate.admit(peer) {
        return Err(Denied::RateLimited);
    }
    let wanted = wanted_session(request.uri().query())?;
    let served = Arc::clone(relay);
    relay.tasks.spawn(async move {
        match hyper::upgrade::on(request).await {
            Ok(upgraded) => {
                let io = TokioIo::new(upgraded);
                let socket =
                    WebSocketStream::from_raw_socket(io, Role::Server, Some(socket_config())).await;
                serve(&served, socket, wanted).await;
            }
            Err(error) => tracing::debug!(%error, "an upgrade broke off"),
        }
    });
    Ok(switching(accept))
}

fn switching(accept: HeaderValue) -> Answered {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// What proves to the app that this is a WebSocket server; `None` where the request asks for none.
fn accept_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let get = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let connection = headers
        .get(CONNECTION)
        .and_then(|value| value.to_str().ok());
    let changes = connection.is_some_and(|tokens| {
        tokens
            .split(',')
            .any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
    });
    let asks = changes && is_upgrade(headers) && get(SEC_WEBSOCKET_VERSION) == Some(b"13");
    let key = get(SEC_WEBSOCKET_KEY).filter(|_| asks)?;
    HeaderValue::from_str(&derive_accept_key(key)).ok()
}

/// The first `session` of the query, where there is one.
fn wanted_session(query: Option<&str>) -> Result<Option<SessionId>, Denied> {
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    match pairs.find(|(name, _)| name == "session") {
        None => Ok(None),
        Some((_, id)) => SessionId::parse(&id).map(Some).ok_or(Denied::BadSession),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_are_resolved_and_escapes_stay() {
        for (uri, path) in [
            ("/", "/"),
            ("/v1/t/x/agents.md", "/v1/t/x/agents.md"),
            ("/v1/t/x/a/../b?c=/../d", "/v1/t/x/b"),
            ("/v1/t/x/./a", "/v1/t/x/a"),
            ("/v1/%2e%2e/t", "/t"),
            ("/a%20b", "/a%20b"),
            ("/../../etc", "/etc"),
            ("/a/..", "/"),
            ("/a/../agents.md", "/agents.md"),
            ("//x/y", "//x/y"),
        ] {
            assert_eq!(resolved(&uri.parse().unwrap()), path, "{uri}");
        }
    }

    #[test]
    fn a_session_parameter_is_a_session_id_or_refused() {
        let wanted = |query| wanted_session(Some(query)).map(|id| id.map(|id| id.to_string()));
        assert_eq!(wanted("a=b"), Ok(None));
        assert_eq!(wanted("a=b&session=0123ABCD"), Ok(Some("0123ABCD".into())));
        for bad in [
            "session=",
            "session",
            "session=0123abcd",
            "session=0123ABCDE",
            "session=x&session=0123ABCD",
        ] {
            assert_eq!(wanted(bad), Err(Denied::BadSession), "{bad}");
        }
    }
}
