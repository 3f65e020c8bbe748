//! What the proxy itself answers: the challenge, the priming page, refusals. All of it inert text.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, PROXY_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::uri::PathAndQuery;
use hyper::{Response, StatusCode};

use super::failure::{Failure, Stop};
use super::uploads;
use crate::policy::refusal::Refusal;

/// The body of anything that the proxy sends to the browser.
pub(super) type Body = BoxBody<Bytes, BodyError>;
/// What can break a body half-way; the connection is then closed, so that half an answer is not taken for a whole one.
pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The priming page: no icon to ask for, nothing else to load.
const PRIME_PAGE: &str = "<!doctype html><link rel=icon href=data:,>";

pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed()
}

fn text(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Asks for the password, on the priming page alone: there somebody answers. Anywhere else Chromium would wait for a
/// person to log in, and the page with it. The only 407 there is, so no policy is ever told by it.
pub(super) fn challenge() -> Response<Body> {
    let mut response = text(
        StatusCode::PROXY_AUTHENTICATION_REQUIRED,
        "The proxy asks for its password.\n".to_owned(),
    );
    response.headers_mut().insert(
        PROXY_AUTHENTICATE,
        HeaderValue::from_static("Basic realm=\"gpu-browser\""),
    );
    response
}

/// Refuses who does not know the password, or has lost it.
pub(super) fn unknown() -> Response<Body> {
    text(
        StatusCode::FORBIDDEN,
        "gpu-browser: no_password. The browser has lost its password; navigate the page again.\n"
            .to_owned(),
    )
}

pub(super) fn primed() -> Response<Body> {
    let mut response = text(StatusCode::OK, PRIME_PAGE.to_owned());
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    response
}

/// The answer that opens a tunnel.
pub(super) fn established() -> Response<Body> {
    Response::new(full(Bytes::new()))
}

/// Sends a page that asked for the uploads over plain http to where they are.
pub(super) fn to_uploads(path: &PathAndQuery) -> Response<Body> {
    let mut response = text(
        StatusCode::PERMANENT_REDIRECT,
        "The uploads are served over https.\n".to_owned(),
    );
    if let Ok(target) = HeaderValue::try_from(format!("{}{path}", uploads::ORIGIN)) {
        response.headers_mut().insert(LOCATION, target);
    }
    response
}

/// Says no, or what broke. For plain http a browser shows this as a page of the denied origin, so it is inert.
pub(super) fn stopped(stop: Stop) -> Response<Body> {
    let status = match stop {
        Stop::Refused(Refusal::BadRequest) => StatusCode::BAD_REQUEST,
        Stop::Refused(Refusal::TooManyTunnels) => StatusCode::SERVICE_UNAVAILABLE,
        Stop::Refused(_) => StatusCode::FORBIDDEN,
        Stop::Failed(Failure::Connect | Failure::NameServer) => StatusCode::GATEWAY_TIMEOUT,
        Stop::Failed(_) => StatusCode::BAD_GATEWAY,
    };
    text(
        status,
        format!("gpu-browser: {}. {}\n", stop.as_str(), stop.fix()),
    )
}
