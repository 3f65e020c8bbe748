//! One request of an agent: body, session, token, and then what it asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use tokio::time::timeout;

use super::Relay;
use super::answers::{document, to_call, to_poll};
use super::denied::Denied;
use super::http::Answered;
use super::session::{Asked, Session};
use crate::policy::limits;
use crate::relay::tokens::AgentToken;

/// Answers an agent. The body's size is judged before anything is told about the session.
pub(super) async fn answer(
    relay: &Arc<Relay>,
    token: AgentToken,
    path: &str,
    request: Request<Incoming>,
) -> Result<Answered, Denied> {
    let (head, body) = request.into_parts();
    let body = read_body(relay, body).await?;
    let session = relay
        .registry
        .find(token.session)
        .ok_or(Denied::Offline(None))?;
    session.admit(&token)?;
    if let Some(answered) = document_of(&session, path)? {
        return Ok(answered);
    }
    if is_from_a_page(&head.headers) {
        return Err(Denied::Csrf);
    }
    let asked = Asked {
        method: head.method.as_str().to_uppercase(),
        path: path.to_owned(),
        body,
        headers: forwarded(&head.headers),
    };
    call(relay, &session, asked).await
}

/// What the relay answers itself, to any method.
fn document_of(session: &Session, path: &str) -> Result<Option<Answered>, Denied> {
    Ok(Some(match path {
        "/agents.md" => document("text/markdown; charset=utf-8", session.briefing()),
        "/tools.json" => document("application/json; charset=utf-8", session.tools_json()),
        _ => match path.strip_prefix("/_as_tasks/") {
            Some(task) => to_poll(task, session.poll(task)),
            None if path.starts_with("/_as_") => return Err(Denied::NotFound("no such address")),
            None => return Ok(None),
        },
    }))
}

async fn call(relay: &Relay, session: &Session, asked: Asked) -> Result<Answered, Denied> {
    let limit = relay.config.tool_timeout;
    let outcome = session.call(asked)?;
    match timeout(limit, outcome).await {
        Ok(Ok(outcome)) => Ok(to_call(outcome)),
        // Whoever gives up a place says why; only the end of the relay itself does not.
        Ok(Err(_)) => Err(Denied::Offline(None)),
        Err(_) => Err(Denied::Timeout(limit)),
    }
}

/// Browsers always send this header and pages cannot forge it; `none` is a person's own doing.
fn is_from_a_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    site.is_some_and(|site| !site.is_empty() && site != b"none")
}

/// The content type and the agent's own `x-` headers, but none that tells where the agent is.
fn forwarded(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let name = name.as_str();
        let tells_where = name == "x-real-ip" || name.starts_with("x-forwarded-");
        if name == CONTENT_TYPE.as_str() || name.starts_with("x-") && !tells_where {
            let value = String::from_utf8_lossy(value.as_bytes());
            kept.entry(name.to_owned())
                .and_modify(|joined| *joined = format!("{joined}, {value}"))
                .or_insert_with(|| value.into_owned());
        }
    }
    kept
}

/// The whole body, or the refusal as soon as it is too large.
async fn read_body(relay: &Arc<Relay>, mut body: Incoming) -> Result<Bytes, Denied> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let announced = body.size_hint().lower();
    let fits = usize::try_from(announced).is_ok_and(|bytes| bytes <= limits::REQUEST_BODY);
    let read = match fits {
        true => timeout(limits::AGENT_BODY_TIME, collect(&mut body))
            .await
            .unwrap_or(Err(Denied::BrokenBody)),
        false => Err(Denied::BodyTooLarge),
    };
    if read == Err(Denied::BodyTooLarge) {
        swallow(relay, body);
    }
    read
}

async fn collect(body: &mut Incoming) -> Result<Bytes, Denied> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Denied::BrokenBody)?.into_data() else {
            continue;
        };
        if whole.len() + data.len() > limits::REQUEST_BODY {
            return Err(Denied::BodyTooLarge);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Reads on for a while after the answer, or an agent that only writes would see a reset in the answer's place.
fn swallow(relay: &Arc<Relay>, mut body: Incoming) {
    let closing = relay.closing.clone();
    relay.tasks.spawn(async move {
        let rest = async {
            let mut left = limits::REFUSED_BODY;
            while let Some(Ok(frame)) = body.frame().await {
                let size = frame.data_ref().map_or(0, Bytes::len);
                match left.checked_sub(size) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        };
        tokio::select! {
            _ = timeout(limits::AGENT_BODY_TIME, rest) => {}
            () = closing.cancelled() => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn only_the_content_type_and_the_agents_own_headers_go_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "a/b"),
            ("x-one", "1"),
            ("x-one", "2"),
            ("x-real-ip", "192.0.2.1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("authorization", "secret"),
            ("cookie", "secret"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let kept = forwarded(&headers);
        let expected = [("content-type", "a/b"), ("x-one", "1, 2")];
        assert!(
            kept.iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .eq(expected)
        );
    }

    #[test]
    fn web_pages_are_known_by_one_header() {
        for (site, refused) in [
            (None, false),
            (Some(""), false),
            (Some("none"), false),
            (Some("None"), true),
            (Some("same-origin"), true),
            (Some("cross-site"), true),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(site) = site {
                headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            }
            assert_eq!(is_from_a_page(&headers), refused, "{site:?}");
        }
    }
}
