//! What an app answered, as an HTTP response that no browser runs.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};

use super::calls::Outcome;
use super::denied::Denied;
use super::tasks::Polled;
use crate::relay::frames::body::{Answer, AnswerBody};
use crate::relay::wire::Object;

const JSON: &str = "application/json; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Types that a browser would run or style; they go out as plain text. So does every `+xml`.
const DOWNGRADED: [&str; 5] = [
    "text/html",
    "application/xhtml+xml",
    "image/svg+xml",
    "application/xml",
    "text/xml",
];

/// The response to a call.
pub(super) fn to_call(outcome: Outcome) -> Response<Full<Bytes>> {
    match outcome {
        Outcome::Answer(answer) => to_answer(answer),
        Outcome::Denied(denied) => denied.response(),
        Outcome::Task(id) => {
            let body = Object::empty().text("taskId", &id).finish();
            plain(
                StatusCode::ACCEPTED,
                HeaderValue::from_static(JSON),
                body.into(),
            )
        }
    }
}

/// The response to a poll.
pub(super) fn to_poll(id: &str, polled: Polled) -> Response<Full<Bytes>> {
    match polled {
        Polled::Unknown => {
            Denied::NotFound("no such task, or its answer was fetched already").response()
        }
        Polled::Finished(answer) => to_answer(answer),
        Polled::Pending => {
            let body = Object::empty()
                .text("taskId", id)
                .json("completed", "false")
                .finish();
            guarded(
                StatusCode::ACCEPTED,
                HeaderValue::from_static(JSON),
                body.into(),
            )
        }
    }
}

/// A document of the relay itself.
pub(super) fn document(content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::OK, HeaderValue::from_static(content_type), body);
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn to_answer(answer: Answer) -> Response<Full<Bytes>> {
    let status = answer
        .status
        .and_then(|status| StatusCode::from_u16(status).ok());
    let Some(status) = status else {
        return Denied::BadReply("the app's status is not a whole number from 200 to 599")
            .response();
    };
    let wants_no_body = matches!(status.as_u16(), 204 | 205 | 304);
    match answer.body {
        AnswerBody::None => guarded(status, HeaderValue::from_static(JSON), Bytes::new()),
        _ if wants_no_body => Denied::BadReply("the app's status wants no body").response(),
        AnswerBody::Json(json) => guarded(status, HeaderValue::from_static(JSON), json),
        AnswerBody::Text { content_type, text } => match safe_type(&content_type) {
            Some(content_type) => guarded(status, content_type, text),
            None => Denied::BadReply("the app's content type is no header value").response(),
        },
    }
}

/// The content type, or plain text in its place.
fn safe_type(content_type: &str) -> Option<HeaderValue> {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if DOWNGRADED.contains(&essence.as_str()) || essence.ends_with("+xml") {
        return Some(HeaderValue::from_static(PLAIN));
    }
    HeaderValue::from_str(content_type).ok()
}

/// With the headers that keep a browser from making anything of it.
fn guarded(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = plain(status, content_type, body);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox; default-src 'none'"),
    );
    response
}

fn plain(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_would_run_goes_out_as_plain_text() {
        for active in [
            "text/html",
            "Text/HTML; charset=x",
            "image/svg+xml",
            "application/xml",
            " text/xml ;a",
            "application/atom+xml",
            "application/xhtml+xml",
        ] {
            assert_eq!(safe_type(active).unwrap(), PLAIN, "{active}");
        }
        for inert in [
            "text/plain",
            "text/markdown; charset=utf-8",
            "application/json",
            "text/css",
            "application/xmlish",
        ] {
            assert_eq!(safe_type(inert).unwrap(), inert);
        }
        assert!(safe_type("text/plain\r\nx: y").is_none());
    }

    #[test]
    fn a_status_without_a_body_gets_none() {
        let answer = |status, body| {
            to_answer(Answer {
                status: Some(status),
                body,
            })
            .status()
            .as_u16()
        };
        for status in [204, 205, 304] {
            assert_eq!(answer(status, AnswerBody::None), status);
            assert_eq!(answer(status, AnswerBody::Json("null".into())), 502);
        }
        assert_eq!(answer(200, AnswerBody::Json("null".into())), 200);
        assert_eq!(
            to_answer(Answer {
                status: None,
                body: AnswerBody::None
            })
            .status(),
            502
        );
    }
}
