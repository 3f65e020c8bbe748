//! Plain http, request by request: each is judged and dialled on its own, whatever the connection carried before.
//!
//! A head is parsed, judged and written anew; nothing of its bytes is passed on raw. Headers that belong to one hop stay on it,
//! those that `Connection` names included. A 407 of a site is not passed on: to Chromium it would mean that the proxy no
//! longer takes the password, and the context would lose it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::answers::{Body, BodyError};
use super::connection::{Place, Reached};
use super::failure::{Failure, Stop};
use super::leash::End;
use super::ledger::Entry;
use crate::policy::limits::{TUNNEL_IDLE, UPSTREAM_HEAD};

/// Headers of one hop, whether `Connection` names them or not; everything that begins with `proxy-` is one hop's too.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Drives the connection to the site, and resolves when it has to end.
type Carry = Pin<Box<dyn Future<Output = End> + Send + Sync>>;

/// Sends a request to its site and gives the answer back, its body as it comes.
pub(super) async fn forward(
    to: Reached,
    head: Parts,
    path: PathAndQuery,
    body: Incoming,
) -> Result<Response<Body>, Stop> {
    let request = outgoing(head, path, &to, body)?;
    let mut client = http1::Builder::new();
    client.max_buf_size(UPSTREAM_HEAD);
    let shaken = client.handshake(TokioIo::new(to.stream)).await;
    let (mut sender, connection) = shaken.map_err(|_| Failure::Upstream)?;
    let (mut leash, host, entry) = (to.leash, to.host, to.entry);
    let mut carry: Carry = Box::pin(async move {
        let connection = async {
            // Its end is seen by the one who waits for the answer.
            let _ = connection.await;
            std::future::pending().await
        };
        tokio::select! {
            end = connection => end,
            end = leash.cut(&host) => end,
        }
    });
    let response = tokio::select! {
        answered = timeout(TUNNEL_IDLE, sender.send_request(request)) => match answered {
            Ok(Ok(response)) => response,
            _ => return Err(Failure::Upstream.into()),
        },
        end = &mut carry => {
            entry.ends(end.as_str());
            return Err(end.into());
        }
    };
    incoming(response, carry, entry, to.place)
}

/// The request as the site gets it.
fn outgoing(
    head: Parts,
    path: PathAndQuery,
    to: &Reached,
    body: Incoming,
) -> Result<Request<Timed<Incoming>>, Failure> {
    let entry = to.entry.clone();
    let mut request = Request::new(Timed::new(body, move |bytes| entry.sent(bytes)));
    *request.method_mut() = head.method;
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = head.headers;
    let headers = request.headers_mut();
    strip_hop(headers);
    headers.remove(EXPECT);
    let host = HeaderValue::from_str(to.host.as_str()).map_err(|_| Failure::Upstream)?;
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// The answer as the browser gets it.
fn incoming(
    response: Response<Incoming>,
    carry: Carry,
    entry: Arc<Entry>,
    place: Place,
) -> Result<Response<Body>, Stop> {
    let status = response.status();
    if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED || status.is_informational() {
        return Err(Failure::Upstream.into());
    }
    let (mut head, body) = response.into_parts();
    strip_hop(&mut head.headers);
    head.extensions.clear();
    if body.is_end_stream() {
        entry.ends(End::Closed.as_str());
    }
    let counter = entry.clone();
    let body = Carried {
        body: Timed::new(body, move |bytes| counter.received(bytes)),
        carry,
        entry,
        _place: place,
    };
    Ok(Response::from_parts(head, body.boxed()))
}

fn strip_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let proxy: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("proxy-"))
        .cloned()
        .collect();
    for name in named.iter().chain(&proxy) {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(*name);
    }
}

/// A body whose bytes are counted, and that breaks when nothing of it came for the idle limit.
struct Timed<B> {
    body: B,
    idle: Pin<Box<Sleep>>,
    count: Count,
}

/// Where the bytes of a body are counted.
type Count = Box<dyn Fn(usize) + Send + Sync>;

impl<B> Timed<B> {
    fn new(body: B, count: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Self {
            body,
            idle: Box::pin(sleep(TUNNEL_IDLE)),
            count: Box::new(count),
        }
    }
}

impl<B> HttpBody for Timed<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.idle.as_mut().reset(Instant::now() + TUNNEL_IDLE);
            if let Some(Ok(data)) = frame
                .as_ref()
                .map(|frame| frame.as_ref().map(Frame::data_ref))
            {
                (self.count)(data.map_or(0, Bytes::len));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        self.idle
            .as_mut()
            .poll(cx)
            .map(|()| Some(Err(BodyError::from("nothing came for too long"))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A site's body with the connection that brings it. There is no task beside it: the browser's own reading drives both.
struct Carried {
    body: Timed<Incoming>,
    carry: Carry,
    entry: Arc<Entry>,
    _place: Place,
}

impl HttpBody for Carried {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(end) = self.carry.as_mut().poll(cx) {
            self.entry.ends(end.as_str());
            return Poll::Ready(Some(Err(end.as_str().into())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        // A reader that knows where the body ends does not ask for what comes after it.
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.entry.ends(End::Closed.as_str());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::StreamBody;

    #[test]
    fn headers_of_one_hop_stay_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private"),
            ("connection", "x-other"),
            ("x-private", "1"),
            ("x-other", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "Basic secret"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authenticate", "Basic"),
            ("accept", "*/*"),
            ("cookie", "a=b"),
        ] {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        strip_hop(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["accept", "cookie"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_breaks_after_the_idle_limit() {
        let silent = StreamBody::new(futures_util::stream::pending::<
            Result<Frame<Bytes>, std::io::Error>,
        >());
        let started = Instant::now();
        let error = Timed::new(silent, |_| {})
            .frame()
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), started.elapsed()),
            ("nothing came for too long", TUNNEL_IDLE)
        );
    }
}
