//! Answers of the uploads host. A body is the store's own chunks, sliced and never copied.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HOST as HOST_HEADER, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, IF_RANGE, LOCATION,
    RANGE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};

use super::path::upload_path;
use super::range::{self, Asked};
use super::store::{Upload, UploadStore};

/// On every answer. COOP and COEP make pages cross-origin isolated, so that `SharedArrayBuffer` works; `credentialless`
/// rather than `require-corp`, because CDNs without a CORP header load under it. An agent that uploads again sees the new
/// file, so nothing is used from a cache unasked. No CORS header: other sites in the browser may show uploads, not read them.
const ALWAYS: &[(&str, &str)] = &[
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "credentialless"),
    ("cross-origin-resource-policy", "cross-origin"),
    ("cache-control", "no-cache"),
];

/// Answers a request.
pub(super) fn answer<B>(store: &UploadStore, request: &Request<B>) -> Response<Chunks> {
    let mut response = route(store, request);
    for (name, value) in ALWAYS {
        response.headers_mut().insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    if request.method() == Method::HEAD {
        response.body_mut().chunks.clear();
    }
    response
}

fn route<B>(store: &UploadStore, request: &Request<B>) -> Response<Chunks> {
    if !is_for_us(request) {
        return text(
            StatusCode::MISDIRECTED_REQUEST,
            "This is the uploads host alone.\n",
        );
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "Uploads are read with GET and HEAD.\n",
        );
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let path = request.uri().path();
    if let Some(upload) = upload_path(path).and_then(|path| store.get(&path)) {
        return file(&upload, request.method(), request.headers());
    }
    // A folder without its slash: relative URLs of its index would point beside it.
    let folder = format!("{path}/");
    if upload_path(&folder).is_some_and(|index| store.get(&index).is_some()) {
        return redirect(&folder);
    }
    text(
        StatusCode::NOT_FOUND,
        "There is no upload at this path. GET /files lists them.\n",
    )
}

/// HTTP/2 carries the host in the URI, HTTP/1.1 in its header.
fn is_for_us<B>(request: &Request<B>) -> bool {
    let in_uri = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let in_header = || {
        request
            .headers()
            .get(HOST_HEADER)
            .and_then(|host| host.to_str().ok())
    };
    let host = in_uri.or_else(in_header).unwrap_or_default();
    host.strip_suffix(":443")
        .unwrap_or(host)
        .eq_ignore_ascii_case(super::HOST)
}

fn file(upload: &Upload, method: &Method, asked: &HeaderMap) -> Response<Chunks> {
    let tag = format!("\"{}\"", upload.sha256());
    let header = |name: HeaderName| asked.get(name).and_then(|value| value.to_str().ok());
    if header(IF_NONE_MATCH).is_some_and(|tags| names_tag(tags, &tag)) {
        let mut response = Response::new(Chunks::default());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        insert(&mut response, ETAG, &tag);
        return response;
    }
    // A part of another version than the one the page holds would not fit it.
    let whole =
        header(IF_RANGE).is_some_and(|condition| condition.trim() != tag) || method == Method::HEAD;
    let part = match header(RANGE) {
        Some(range) if !whole => range::parse(range, upload.len),
        _ => Asked::Whole,
    };
    let mut response = match part {
        Asked::Whole => sized(StatusCode::OK, upload, 0..upload.len),
        Asked::Part(range) => {
            let described = format!("bytes {}-{}/{}", range.start, range.end - 1, upload.len);
            let mut response = sized(StatusCode::PARTIAL_CONTENT, upload, range);
            insert(&mut response, CONTENT_RANGE, &described);
            response
        }
        Asked::Unsatisfiable => {
            let mut response = text(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "The upload is shorter than that.\n",
            );
            insert(
                &mut response,
                CONTENT_RANGE,
                &format!("bytes */{}", upload.len),
            );
            return response;
        }
    };
    insert(&mut response, ETAG, &tag);
    insert(&mut response, CONTENT_TYPE, &upload.content_type);
    response
        .headers_mut()
        .insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response
}

/// Whether a list of entity tags names one, compared weakly as RFC 9110 has it for `If-None-Match`.
fn names_tag(tags: &str, tag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|held| held == "*" || held.strip_prefix("W/").unwrap_or(held) == tag)
}

fn sized(status: StatusCode, upload: &Upload, range: Range<usize>) -> Response<Chunks> {
    let length = range.len();
    let mut response = Response::new(Chunks::of(upload, range));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn redirect(to: &str) -> Response<Chunks> {
    let mut response = text(
        StatusCode::PERMANENT_REDIRECT,
        "The folder's path ends with a slash.\n",
    );
    insert(&mut response, LOCATION, to);
    response
}

fn text(status: StatusCode, body: &'static str) -> Response<Chunks> {
    let mut response = Response::new(Chunks {
        chunks: VecDeque::from([Bytes::from_static(body.as_bytes())]),
    });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A value that is no header (an agent's odd content type) is left out.
fn insert(response: &mut Response<Chunks>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A body of slices of the store's chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    chunks: VecDeque<Bytes>,
}

impl Chunks {
    fn of(upload: &Upload, range: Range<usize>) -> Self {
        let mut start = 0;
        let mut chunks = VecDeque::new();
        for chunk in &upload.chunks {
            let from = range.start.clamp(start, start + chunk.len()) - start;
            let to = range.end.clamp(start, start + chunk.len()) - start;
            if from < to {
                chunks.push_back(chunk.slice(from..to));
            }
            start += chunk.len();
        }
        Self { chunks }
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.chunks.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.chunks.iter().map(|chunk| chunk.len() as u64).sum())
    }
}
