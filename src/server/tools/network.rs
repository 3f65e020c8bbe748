//! `POST /network`: what a page asked for, what came of it, and what the proxy refused.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::listing::{found_text, limit, listed, near, since};
use crate::browser::fold::short;
use crate::browser::journal::requests::{Header, Request, State, Wanted};
use crate::browser::page::{Body, PageError};
use crate::browser::pipe::CallError;
use crate::policy::limits::{BODY, BODY_REPLY, EVAL_VALUE_MOST};
use crate::proxy::RefusedHost;
use crate::server::answer::{Answer, Code, Refused};
use crate::server::arguments::parse;
use crate::server::pages::Opened;
use crate::server::session::{Outcome, Session};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    page: String,
    since: Option<u64>,
    kind: Option<String>,
    find: Option<String>,
    #[serde(default)]
    failed: bool,
    request: Option<u64>,
    #[serde(default)]
    body: bool,
    max_bytes: Option<usize>,
    limit: Option<usize>,
}

/// The requests, or one of them in detail.
pub(super) async fn post(session: &Session, body: &str) -> Outcome {
    let arguments: Arguments = parse(body)?;
    let opened = session.pages.get(&arguments.page)?;
    let refused = session.kit.proxy.refusals(opened.page.user());
    match arguments.request {
        Some(number) => one(&opened, number, &arguments, &refused).await,
        None if arguments.body => Err(Refused::new(
            Code::BadArguments,
            "`body` is of one request",
            "name it: {\"page\":\"p1\",\"request\":3,\"body\":true}",
        )),
        None => list(&opened, &arguments, &refused),
    }
}

fn list(opened: &Opened, arguments: &Arguments, refused: &[RefusedHost]) -> Outcome {
    let limit = limit(arguments.limit)?;
    let wanted = Wanted {
        kind: arguments.kind.as_ref().map(|kind| kind.to_lowercase()),
        find: found_text(arguments.find.as_deref()),
        failed: arguments.failed,
    };
    let journal = opened.page.observed.journal();
    let picked = journal.requests.pick(arguments.since, &wanted, limit);
    let lines = picked.entries.iter();
    let lines = lines.map(|seen| line(seen.number, seen.entry, refused).into());
    let mut reply = listed(
        "requests",
        lines.collect(),
        &picked,
        journal.requests.dropped(),
    );
    if !refused.is_empty() {
        let hosts = refused.iter().take(limit);
        let hosts = hosts.map(|host| json!({ "host": host.host, "reason": host.reason, "count": host.count, "fix": host.fix }));
        reply["refused_hosts"] = hosts.collect::<Vec<_>>().into();
    }
    Ok(Answer::Json(reply))
}

/// `7 GET 200 script 1234B 34ms js/app.js`
fn line(number: u64, request: &Request, refused: &[RefusedHost]) -> String {
    let took = request
        .took
        .map_or("…".to_owned(), |ms| format!("{ms:.0}ms"));
    let from = request
        .from
        .map_or(String::new(), |from| format!(" ({from})"));
    let frames = match request.frames {
        (0, 0) => String::new(),
        (sent, received) => format!(" frames:{sent}/{received}"),
    };
    format!(
        "{number} {} {} {} {}B {took}{from}{frames} {}",
        request.method,
        outcome(request, refused),
        request.kind,
        request.bytes,
        short(near(&request.url)),
    )
}

/// The status, or why there is none.
fn outcome(request: &Request, refused: &[RefusedHost]) -> String {
    let status = request.status.map(|status| status.to_string());
    match (&request.state, status) {
        _ if refusal(request, refused).is_some() => {
            let reason = refusal(request, refused).map(|host| host.reason);
            format!("refused:{}", reason.unwrap_or_default())
        }
        (State::Failed { canceled: true, .. }, status) => {
            format!(
                "{}canceled",
                status.map_or(String::new(), |status| status + ",")
            )
        }
        (State::Failed { error, .. }, _) => error.replace(' ', "_"),
        (State::Pending, None) => "pending".to_owned(),
        (State::Pending | State::Done, Some(status)) => status,
        (State::Done, None) => "done".to_owned(),
    }
}

/// What the proxy says of a request that came to nothing.
fn refusal<'a>(request: &Request, refused: &'a [RefusedHost]) -> Option<&'a RefusedHost> {
    let stopped = matches!(
        request.state,
        State::Failed {
            canceled: false,
            ..
        }
    ) || request.status == Some(403) && request.url.starts_with("http:");
    if !stopped {
        return None;
    }
    let url = url::Url::parse(&request.url).ok()?;
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    let with_port = format!("{host}:{port}");
    refused
        .iter()
        .find(|known| known.host == with_port || known.host == host)
}

async fn one(
    opened: &Opened,
    number: u64,
    arguments: &Arguments,
    refused: &[RefusedHost],
) -> Outcome {
    let most = arguments.max_bytes.unwrap_or(BODY_REPLY);
    if !(1..=EVAL_VALUE_MOST).contains(&most) {
        return Err(Refused::new(
            Code::BadArguments,
            format!("`max_bytes` is {most}"),
            format!("ask for 1 to {EVAL_VALUE_MOST}"),
        ));
    }
    let (mut reply, id, session) = {
        let journal = opened.page.observed.journal();
        let Some(request) = journal.requests.get(number) else {
            return Err(no_request(number, journal.requests.dropped()));
        };
        let reply = detail(number, request, journal.began, refused);
        (reply, request.id.clone(), request.session.clone())
    };
    if arguments.body {
        let body = opened.page.response_body(&id, session.as_ref()).await;
        put_body(
            &mut reply,
            body.map_err(|error| no_body(&opened.id, number, &error))?,
            most,
        );
    }
    Ok(Answer::Json(reply))
}

fn detail(number: u64, request: &Request, began: f64, refused: &[RefusedHost]) -> Value {
    let mut reply = Map::new();
    let mut put = |name: &str, value: Value| drop(reply.insert(name.to_owned(), value));
    put("request", number.into());
    put("method", request.method.as_str().into());
    put("url", request.url.as_str().into());
    put("kind", request.kind.as_str().into());
    put("status", request.status.into());
    if !request.mime.is_empty() {
        put("content_type", request.mime.as_str().into());
    }
    put("bytes", request.bytes.into());
    put("began_ms", since(request.began, began).into());
    match &request.state {
        State::Pending => put("pending", true.into()),
        State::Done => {}
        State::Failed { error, canceled } => {
            put("error", error.as_str().into());
            if *canceled {
                put("canceled", true.into());
            }
        }
    }
    if let Some(host) = refusal(request, refused) {
        put("refused", json!({ "reason": host.reason, "fix": host.fix }));
    }
    if let Some(ms) = request.took {
        put("ms", since(ms, 0.0).into());
    }
    let timing = request.timing;
    let steps = [
        ("dns", timing.dns),
        ("connect", timing.connect),
        ("sent", timing.sent),
        ("first_byte", timing.first_byte),
    ];
    let steps: Map<String, Value> = steps
        .into_iter()
        .filter_map(|(name, ms)| Some((name.to_owned(), json!(ms?.round()))))
        .collect();
    if !steps.is_empty() {
        put("timing_ms", steps.into());
    }
    if let Some(from) = request.from {
        put("from", from.into());
    }
    if let Some(initiator) = &request.initiator {
        put("initiator", near(initiator).into());
    }
    if request.kind == "websocket" {
        let (sent, received) = request.frames;
        put("frames", json!({ "sent": sent, "received": received }));
    }
    put("request_headers", headers(&request.request_headers));
    put("response_headers", headers(&request.response_headers));
    Value::Object(reply)
}

fn headers(headers: &[Header]) -> Value {
    let members = headers.iter();
    let members: Map<String, Value> = members
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    members.into()
}

/// The body, cut: a text between characters, anything else as base64 between groups of three bytes.
fn put_body(reply: &mut Value, body: Body, most: usize) {
    let size = match body {
        Body::Text(text) => {
            reply["body"] = text[..text.floor_char_boundary(most)].into();
            text.len()
        }
        Body::Binary(bytes) => {
            let cut = &bytes[..bytes.len().min(most / 4 * 3)];
            reply["base64"] = BASE64_STANDARD.encode(cut).into();
            bytes.len()
        }
    };
    reply["body_bytes"] = size.into();
    if size > most {
        reply["truncated"] = true.into();
    }
}

fn no_request(number: u64, dropped: u64) -> Refused {
    if (1..=dropped).contains(&number) {
        let message = format!("request {number} has made room for newer ones");
        return Refused::new(Code::Gone, message, "load the page again and ask sooner");
    }
    Refused::new(
        Code::NotFound,
        format!("there is no request {number}"),
        "`POST /network` with `page` alone lists them",
    )
}

/// A body that the browser has not, or no longer.
fn no_body(page: &str, number: u64, error: &PageError) -> Refused {
    match error {
        PageError::Call(CallError::Refused { .. }) => Refused::new(
            Code::Gone,
            format!(
                "the body of request {number} is not there: not yet, not any more, or larger than {BODY} bytes"
            ),
            "fetch it in the page with `POST /eval`, or load the page again and ask sooner",
        ),
        error => super::refused(page, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_where_it_can_be_read_on() {
        let mut reply = json!({});
        put_body(&mut reply, Body::Text("ü".repeat(10)), 5);
        assert_eq!(
            reply,
            json!({"body": "üü", "body_bytes": 20, "truncated": true})
        );
        let mut reply = json!({});
        put_body(&mut reply, Body::Binary(vec![0; 100]), 9);
        assert_eq!(
            reply,
            json!({"base64": "AAAAAAAA", "body_bytes": 100, "truncated": true})
        );
        let mut reply = json!({});
        put_body(&mut reply, Body::Text(String::new()), 9);
        assert_eq!(reply, json!({"body": "", "body_bytes": 0}));
    }
}
