//! Every refusal of the relay, and the one place that gives it a status and a code.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};

use crate::policy::limits;
use crate::relay::wire::Object;

/// Why an agent, or an app that opens a socket, gets no for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denied {
    /// `/v1/_ws` without an upgrade.
    ExpectedUpgrade,
    /// `?session=` that is no session id.
    BadSession,
    /// An upgrade on an agent's address.
    UpgradeForAgent,
    /// A body that broke off.
    BrokenBody,
    /// Unknown or revoked token of a live session.
    TokenInvalid,
    /// A call that a web page made.
    Csrf,
    /// Nothing there.
    NotFound(&'static str),
    /// A request for another host's name.
    WrongHost,
    BodyTooLarge,
    TooManyInflight,
    RateLimited,
    /// What the app replied makes no response.
    BadReply(&'static str),
    /// No session, or one whose app is away for this long.
    Offline(Option<Duration>),
    TooManyTasks,
    Timeout(Duration),
}

impl Denied {
    fn status(&self) -> StatusCode {
        match self {
            Self::ExpectedUpgrade | Self::BadSession | Self::UpgradeForAgent | Self::BrokenBody => {
                StatusCode::BAD_REQUEST
            }
            Self::TokenInvalid => StatusCode::UNAUTHORIZED,
            Self::Csrf => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooManyInflight | Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::BadReply(_) => StatusCode::BAD_GATEWAY,
            Self::Offline(_) | Self::TooManyTasks => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::ExpectedUpgrade
            | Self::BadSession
            | Self::UpgradeForAgent
            | Self::BrokenBody
            | Self::BadReply(_) => "protocol_error",
            Self::TokenInvalid => "token_invalid",
            Self::Csrf => "csrf_denied",
            Self::NotFound(_) => "not_found",
            Self::WrongHost => "wrong_host",
            Self::BodyTooLarge => "body_too_large",
            Self::TooManyInflight => "too_many_inflight",
            Self::RateLimited => "rate_limited",
            Self::Offline(_) => "app_offline",
            Self::TooManyTasks => "too_many_tasks",
            Self::Timeout(_) => "tool_timeout",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::ExpectedUpgrade => "expected a WebSocket upgrade (version 13, with a key)".into(),
            Self::BadSession => "the session parameter is no session id".into(),
            Self::UpgradeForAgent => "an agent's address takes no upgrade".into(),
            Self::BrokenBody => "the request body broke off".into(),
            Self::TokenInvalid => "this link is unknown or was revoked".into(),
            Self::Csrf => "tool calls are not taken from web pages".into(),
            Self::NotFound(what) => (*what).into(),
            Self::WrongHost => "this relay is not reached under that host name; \
                use its own address, or start it with the name it is to answer to"
                .into(),
            Self::BodyTooLarge => {
                format!("a request body has at most {} bytes", limits::REQUEST_BODY)
            }
            Self::TooManyInflight => format!(
                "at most {} calls at once; wait for a reply",
                limits::CALLS_IN_FLIGHT
            ),
            Self::RateLimited => "too many connections from this address; wait 10 s".into(),
            Self::BadReply(what) => (*what).into(),
            Self::Offline(None) => "no app is connected for this link".into(),
            Self::Offline(Some(away)) => format!(
                "the app has been offline for {}; retry shortly",
                span(*away)
            ),
            Self::TooManyTasks => format!("at most {} pending tasks", limits::PENDING_TASKS),
            Self::Timeout(limit) => format!("the tool gave no reply in {}", span(*limit)),
        }
    }

    /// The response, `{"error":{"code","message"}}`.
    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let error = Object::empty()
            .text("code", self.code())
            .text("message", &self.message())
            .finish();
        let body = Object::empty().json("error", &error).finish();
        let mut response = Response::new(Full::from(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/json; charset=utf-8"),
        );
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if matches!(self, Self::Offline(Some(_))) {
            headers.insert(RETRY_AFTER, HeaderValue::from(limits::RETRY_AFTER));
        }
        response
    }
}

/// A length of time as people say it: `45 s`, `12 min`, `3 h`.
fn span(time: Duration) -> String {
    match time.as_secs() {
        0 if time.subsec_millis() > 0 => format!("{} ms", time.as_millis()),
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_as_people_say_them() {
        for (milliseconds, expected) in [
            (0, "0 s"),
            (300, "300 ms"),
            (45_900, "45 s"),
            (60_000, "1 min"),
            (3_599_000, "59 min"),
            (10_900_000, "3 h"),
        ] {
            assert_eq!(span(Duration::from_millis(milliseconds)), expected);
        }
    }

    #[test]
    fn only_a_held_session_says_when_to_retry() {
        let held = Denied::Offline(Some(Duration::from_secs(45))).response();
        assert_eq!(held.headers()["retry-after"], "2");
        assert!(
            !Denied::Offline(None)
                .response()
                .headers()
                .contains_key("retry-after")
        );
        assert_eq!(held.headers()["x-content-type-options"], "nosniff");
        assert!(!held.headers().contains_key("content-security-policy"));
    }
}
