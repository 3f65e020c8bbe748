//! The requests of a page, each from its first event to its last. Bodies stay with the browser and are asked of it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::line::cut;
use super::ring::{Picked, Ring};
use crate::policy::limits::{
    REQUEST_HEADER, REQUEST_HEADERS, REQUEST_URL, REQUESTS, REQUESTS_BYTES,
};

/// Bytes of an entry beside its texts.
const ENTRY: usize = 512;

/// How a request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Under way.
    Pending,
    /// All of it has come.
    Done,
    /// It came to nothing: Chromium's word, and whether the page itself gave it up.
    Failed {
        /// `net::ERR_…`, or the reason for which the browser blocked it.
        error: String,
        /// Whether the page gave it up.
        canceled: bool,
    },
}

/// A header: name and value, both cut.
pub type Header = (String, String);

/// When its steps were done, milliseconds after its beginning, as far as they were needed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timing {
    /// Name resolved.
    pub dns: Option<f64>,
    /// Connected.
    pub connect: Option<f64>,
    /// Sent.
    pub sent: Option<f64>,
    /// The first byte of the answer.
    pub first_byte: Option<f64>,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// Chromium's name for it.
    pub id: String,
    /// The session that it belongs to; `None` for the page's own.
    pub session: Option<Arc<str>>,
    /// `GET`.
    pub method: String,
    /// Its address, cut.
    pub url: String,
    /// `document`, `script`, `fetch`, `websocket`, …
    pub kind: String,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The content type of the answer.
    pub mime: String,
    /// Where the answer came from, where that was no server.
    pub from: Option<&'static str>,
    /// Bytes that came over the wire, headers included.
    pub bytes: u64,
    /// When it began, milliseconds of the epoch.
    pub began: f64,
    /// How long it took, milliseconds.
    pub took: Option<f64>,
    /// How it stands.
    pub state: State,
    /// What was sent.
    pub request_headers: Vec<Header>,
    /// What was answered.
    pub response_headers: Vec<Header>,
    /// Its steps.
    pub timing: Timing,
    /// What made it, `address:line`.
    pub initiator: Option<String>,
    /// Frames of a WebSocket: sent and received.
    pub frames: (u64, u64),
    /// The monotonic time of its beginning, seconds.
    start: f64,
}

/// Which requests are wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Of this kind.
    pub kind: Option<String>,
    /// With this text in the address, in lower case.
    pub find: Option<String>,
    /// Only those that failed, or were answered with 400 or more.
    pub failed: bool,
}

/// The requests of a page.
#[derive(Debug)]
pub struct Requests {
    ring: Ring<Request>,
    /// The newest request of an id: a redirect keeps the id.
    known: HashMap<String, u64>,
    /// The first request of the document that is shown.
    from: u64,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            ring: Ring::new(REQUESTS, REQUESTS_BYTES),
            known: HashMap::new(),
            from: 0,
        }
    }
}

impl Requests {
    pub(super) fn fold(&mut self, method: &str, session: Option<&Arc<str>>, value: &Value) {
        let id = value["requestId"].as_str().unwrap_or_default();
        match method {
            "Network.requestWillBeSent" => self.began(id, session, value),
            "Network.webSocketCreated" => self.socket(id, session, value),
            "Network.responseReceived" => self.change(id, |request| {
                request.answered(&value["response"]);
                if let Some(kind) = value["type"].as_str() {
                    request.kind = kind.to_lowercase();
                }
            }),
            "Network.webSocketHandshakeResponseReceived" => {
                self.change(id, |request| request.answered(&value["response"]));
            }
            "Network.loadingFinished" => self.change(id, |request| {
                request.bytes = whole(&value["encodedDataLength"]);
                request.ended(value, State::Done);
            }),
            "Network.webSocketClosed" => self.change(id, |request| {
                if request.state == State::Pending {
                    request.ended(value, State::Done);
                }
            }),
            "Network.loadingFailed" => self.change(id, |request| request.failed(value)),
            "Network.webSocketFrameError" => self.change(id, |request| {
                let error = cut(
                    value["errorMessage"].as_str().unwrap_or_default(),
                    REQUEST_HEADER,
                );
                let canceled = false;
                request.ended(value, State::Failed { error, canceled });
            }),
            "Network.webSocketFrameSent" => self.change(id, |request| request.frames.0 += 1),
            "Network.webSocketFrameReceived" => self.change(id, |request| request.frames.1 += 1),
            _ => {}
        }
    }

    fn began(&mut self, id: &str, session: Option<&Arc<str>>, value: &Value) {
        let redirect = &value["redirectResponse"];
        if redirect.is_object() {
            self.change(id, |request| {
                request.answered(redirect);
                request.ended(value, State::Done);
            });
        }
        let sent = &value["request"];
        let mut request = Request::new(id, session, value);
        request.method = cut(sent["method"].as_str().unwrap_or_default(), 32);
        request.url = cut(sent["url"].as_str().unwrap_or_default(), REQUEST_URL);
        request.kind = value["type"].as_str().unwrap_or("other").to_lowercase();
        request.request_headers = headers(&sent["headers"]);
        request.began = value["wallTime"].as_f64().unwrap_or_default() * 1_000.0;
        self.add(request);
    }

    fn socket(&mut self, id: &str, session: Option<&Arc<str>>, value: &Value) {
        let mut request = Request::new(id, session, value);
        "GET".clone_into(&mut request.method);
        "websocket".clone_into(&mut request.kind);
        request.url = cut(value["url"].as_str().unwrap_or_default(), REQUEST_URL);
        // The event has no time; the newest request's is near.
        if let Some(last) = self.ring.iter().next_back() {
            request.began = last.entry.began;
        }
        self.add(request);
    }

    fn add(&mut self, request: Request) {
        let (id, bytes) = (request.id.clone(), request.weight());
        let number = self.ring.push(request, bytes);
        self.known.insert(id, number);
        self.make_room();
    }

    fn make_room(&mut self) {
        while let Some(old) = self.ring.overflow() {
            // A redirect's id belongs to its newest request.
            if self
                .known
                .get(&old.id)
                .is_some_and(|number| *number <= self.ring.dropped())
            {
                self.known.remove(&old.id);
            }
        }
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Request)) {
        if let Some(number) = self.known.get(id) {
            self.ring.change(*number, |request| {
                change(request);
                request.weight()
            });
            // An answer brings headers, so that a change takes room too.
            self.make_room();
        }
    }

    /// Another document is shown: its own request carries its loader's id. Gives the time when it began.
    pub(super) fn navigated(&mut self, loader: &str) -> Option<f64> {
        let first = self.known.get(loader).copied();
        let Some(first) = first.filter(|number| self.ring.get(*number).is_some()) else {
            self.from = self.ring.next_number();
            return None;
        };
        self.from = first;
        Some(self.ring.get(first)?.began)
    }

    /// The requests since a cursor, or of the document that is shown.
    pub fn pick(&self, since: Option<u64>, wanted: &Wanted, limit: usize) -> Picked<'_, Request> {
        self.ring
            .pick(since, self.from, limit, |request| wanted.fits(request))
    }

    /// A request that is still remembered.
    pub fn get(&self, number: u64) -> Option<&Request> {
        self.ring.get(number)
    }

    /// Requests that made room for newer ones.
    pub fn dropped(&self) -> u64 {
        self.ring.dropped()
    }
}

impl Wanted {
    fn fits(&self, request: &Request) -> bool {
        let kind = self.kind.as_ref().is_none_or(|kind| *kind == request.kind);
        let find = self.find.as_ref();
        let found = find.is_none_or(|find| request.url.to_lowercase().contains(find));
        kind && found && (!self.failed || request.is_failed())
    }
}

impl Request {
    fn new(id: &str, session: Option<&Arc<str>>, value: &Value) -> Self {
        Self {
            id: cut(id, REQUEST_HEADER),
            session: session.cloned(),
            method: String::new(),
            url: String::new(),
            kind: String::new(),
            status: None,
            mime: String::new(),
            from: None,
            bytes: 0,
            began: 0.0,
            took: None,
            state: State::Pending,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
            timing: Timing::default(),
            initiator: initiator(&value["initiator"]),
            frames: (0, 0),
            start: value["timestamp"].as_f64().unwrap_or_default(),
        }
    }

    fn answered(&mut self, response: &Value) {
        self.status = response["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok())
            .filter(|status| *status > 0);
        self.mime = cut(response["mimeType"].as_str().unwrap_or_default(), 128);
        self.from = if response["fromServiceWorker"] == true {
            Some("service-worker")
        } else if response["fromDiskCache"] == true || response["fromPrefetchCache"] == true {
            Some("cache")
        } else {
            None
        };
        self.bytes = whole(&response["encodedDataLength"]);
        self.response_headers = headers(&response["headers"]);
        let timing = &response["timing"];
        let step = |name: &str| timing[name].as_f64().filter(|ms| *ms >= 0.0);
        self.timing = Timing {
            dns: step("dnsEnd"),
            connect: step("connectEnd"),
            sent: step("sendEnd"),
            first_byte: step("receiveHeadersStart").or(step("receiveHeadersEnd")),
        };
    }

    fn ended(&mut self, value: &Value, state: State) {
        let end = value["timestamp"].as_f64();
        self.took = end
            .filter(|_| self.start > 0.0)
            .map(|end| (end - self.start) * 1_000.0);
        self.state = state;
    }

    fn failed(&mut self, value: &Value) {
        let text = |name: &str| value[name].as_str().filter(|text| !text.is_empty());
        let word = text("blockedReason").map(|reason| format!("blocked: {reason}"));
        let cors = value["corsErrorStatus"]["corsError"].as_str();
        let word = word.or_else(|| cors.map(|error| format!("CORS: {error}")));
        let error = word.unwrap_or_else(|| text("errorText").unwrap_or("failed").to_owned());
        let canceled = value["canceled"] == true;
        let error = cut(&error, REQUEST_HEADER);
        self.ended(value, State::Failed { error, canceled });
    }

    /// Whether it came to nothing, or was answered with 400 or more. What the page gave up itself is no failure.
    pub fn is_failed(&self) -> bool {
        let failed = matches!(
            self.state,
            State::Failed {
                canceled: false,
                ..
            }
        );
        failed || self.status.is_some_and(|status| status >= 400)
    }

    fn weight(&self) -> usize {
        let texts = [&self.id, &self.method, &self.url, &self.kind, &self.mime];
        let texts: usize = texts.into_iter().map(String::len).sum();
        let headers = self.request_headers.iter().chain(&self.response_headers);
        let headers: usize = headers
            .map(|(name, value)| 48 + name.len() + value.len())
            .sum();
        let initiator = self.initiator.as_ref().map_or(0, String::len);
        // The id is also the key of the index.
        ENTRY + texts + self.id.len() + headers + initiator
    }
}

/// Headers, at most [`REQUEST_HEADERS`], each cut; the browser's password for the proxy is not among them.
fn headers(value: &Value) -> Vec<Header> {
    let members = value.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| !name.eq_ignore_ascii_case("proxy-authorization"))
        .take(REQUEST_HEADERS)
        .map(|(name, value)| {
            let value = value.as_str().unwrap_or_default();
            (cut(name, REQUEST_HEADER), cut(value, REQUEST_HEADER))
        })
        .collect()
}

fn initiator(value: &Value) -> Option<String> {
    let frame = &value["stack"]["callFrames"][0];
    let place = if frame.is_object() { frame } else { value };
    let url = place["url"].as_str().filter(|url| !url.is_empty())?;
    let line = place["lineNumber"].as_u64().unwrap_or_default() + 1;
    Some(format!("{}:{line}", cut(url, REQUEST_HEADER)))
}

/// A whole number that Chromium may send as a double.
fn whole(value: &Value) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float cast saturates"
    )]
    let whole = value.as_f64().unwrap_or_default() as u64;
    whole
}

#[cfg(test)]
mod tests;
