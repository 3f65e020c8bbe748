//! The state that a page's events are folded into: of bounded size, whatever the page does.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::Serialize;
use serde_json::Value;

use super::journal::line::arguments;
use crate::policy::limits::{PAGE_TEXT, VERDICT_LIST};

/// Requests under way whose addresses are remembered, for the report of a failure.
const REQUESTS: usize = 1_024;
/// Documents whose coming is remembered, so that a navigation finds its own among later ones.
const DOCUMENTS: usize = 16;

/// The first few of many, and how many there were.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Capped<T> {
    /// At most [`VERDICT_LIST`].
    pub items: Vec<T>,
    /// All of them.
    pub count: u64,
}

impl<T> Default for Capped<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            count: 0,
        }
    }
}

impl<T> Capped<T> {
    /// Counts one, and keeps it where there is room.
    pub fn add(&mut self, item: impl FnOnce() -> T) {
        self.count += 1;
        if self.items.len() < VERDICT_LIST {
            self.items.push(item());
        }
    }
}

/// A request that came to nothing.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct FailedRequest {
    /// The address.
    pub url: String,
    /// The status, or Chromium's word.
    pub reason: String,
}

/// A dialog that was closed.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct ClosedDialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    /// Its text.
    pub message: String,
}

/// What a page did since it was last asked.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// `console.error` and what the browser itself logs as an error.
    pub console_errors: Capped<String>,
    /// Errors that no script caught.
    pub page_errors: Capped<String>,
    /// Requests that failed or were answered with 400 or more.
    pub failed_requests: Capped<FailedRequest>,
    /// Dialogs that were closed.
    pub dialogs: Capped<ClosedDialog>,
    /// Windows that were opened and closed again.
    pub popups: Capped<String>,
    /// Downloads that were refused.
    pub downloads: Capped<String>,
}

/// The document that the page shows.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Its number; a new one for each.
    pub loader: String,
    /// The HTTP status it came with.
    pub status: Option<u16>,
    /// Lifecycle events that it has had: `DOMContentLoaded`, `load`, `networkIdle`, …
    pub reached: HashSet<String>,
}

/// Whether the page is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Life {
    /// It is.
    #[default]
    Alive,
    /// Its renderer crashed.
    Crashed,
    /// It was closed, or the browser is gone.
    Closed,
}

/// All that is folded of a page.
#[derive(Default)]
pub(super) struct Fold {
    pub(super) events: Events,
    pub(super) document: Document,
    pub(super) earlier: VecDeque<String>,
    pub(super) statuses: HashMap<String, u16>,
    pub(super) requests: HashMap<String, String>,
    /// Frames of the page, so that a download, which names only its frame, finds it.
    pub(super) frames: HashSet<String>,
    pub(super) life: Life,
}

impl Fold {
    /// A new document, where the frame is the page's own.
    pub(super) fn navigated(&mut self, frame: &Value) {
        if self.frames.len() < REQUESTS {
            self.frames.insert(text(&frame["id"]));
        }
        if frame["parentId"].is_string() {
            return;
        }
        let loader = text(&frame["loaderId"]);
        if loader == self.document.loader {
            return;
        }
        let status = self.statuses.get(&loader).copied();
        let document = Document {
            loader,
            status,
            reached: HashSet::new(),
        };
        let last = std::mem::replace(&mut self.document, document);
        self.earlier.push_back(last.loader);
        if self.earlier.len() > DOCUMENTS {
            self.earlier.pop_front();
        }
        self.statuses.clear();
    }

    /// `init` of a document comes before `frameNavigated` does, and is of no use.
    pub(super) fn lifecycle(&mut self, _session: Option<&str>, value: &Value) {
        if value["loaderId"].as_str() == Some(&self.document.loader) {
            self.document.reached.insert(text(&value["name"]));
        }
    }

    pub(super) fn response(&mut self, value: &Value, own: bool) {
        let status = value["response"]["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(0);
        if own && value["type"] == "Document" {
            let loader = text(&value["loaderId"]);
            if loader == self.document.loader {
                self.document.status = self.document.status.or(Some(status));
            } else if self.statuses.len() < DOCUMENTS {
                self.statuses.insert(loader, status);
            }
        }
        if status >= 400 {
            let url = short(value["response"]["url"].as_str().unwrap_or_default());
            self.events.failed_requests.add(|| FailedRequest {
                url,
                reason: status.to_string(),
            });
        }
    }

    pub(super) fn fold(&mut self, method: &str, value: &Value) {
        match method {
            "Network.requestWillBeSent" if self.requests.len() < REQUESTS => {
                let url = short(value["request"]["url"].as_str().unwrap_or_default());
                self.requests.insert(text(&value["requestId"]), url);
            }
            "Network.loadingFinished" => drop(
                self.requests
                    .remove(value["requestId"].as_str().unwrap_or_default()),
            ),
            "Network.loadingFailed" => self.request_failed(value),
            "Runtime.consoleAPICalled"
                if matches!(value["type"].as_str(), Some("error" | "assert")) =>
            {
                self.events
                    .console_errors
                    .add(|| short(&arguments(&value["args"])));
            }
            "Runtime.exceptionThrown" => self
                .events
                .page_errors
                .add(|| thrown(&value["exceptionDetails"])),
            // Failed requests have a list of their own.
            "Log.entryAdded"
                if value["entry"]["level"] == "error" && value["entry"]["source"] != "network" =>
            {
                self.events
                    .console_errors
                    .add(|| short(value["entry"]["text"].as_str().unwrap_or_default()));
            }
            _ => {}
        }
    }

    fn request_failed(&mut self, value: &Value) {
        let url = self
            .requests
            .remove(value["requestId"].as_str().unwrap_or_default())
            .unwrap_or_default();
        let reason = text(&value["errorText"]);
        // What the page itself gave up is no failure.
        if value["canceled"] != true && reason != "net::ERR_ABORTED" {
            self.events
                .failed_requests
                .add(|| FailedRequest { url, reason });
        }
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Text of a page, cut to what a reply carries.
pub fn short(text: &str) -> String {
    match text.char_indices().nth(PAGE_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An uncaught error in one line: what, and where.
fn thrown(details: &Value) -> String {
    let exception = &details["exception"];
    let what = match exception["description"].as_str() {
        Some(description) => description.lines().next().unwrap_or_default().to_owned(),
        None if exception["value"].is_null() => text(&details["text"]),
        None => format!("{} {}", text(&details["text"]), exception["value"]),
    };
    let place = details["url"].as_str().map(|url| {
        let line = details["lineNumber"].as_u64().unwrap_or(0) + 1;
        format!(
            " ({url}:{line}:{})",
            details["columnNumber"].as_u64().unwrap_or(0) + 1
        )
    });
    short(&format!("{what}{}", place.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_capped_and_counted() {
        let mut fold = Fold::default();
        for n in 0..214 {
            fold.fold(
                "Runtime.consoleAPICalled",
                &json!({"type": "error", "args": [{"value": n}, {"value": "x"}]}),
            );
        }
        assert_eq!(fold.events.console_errors.count, 214);
        assert_eq!(
            fold.events.console_errors.items,
            ["0 x", "1 x", "2 x", "3 x", "4 x"]
        );
    }

    #[test]
    fn an_error_says_what_and_where() {
        let details = json!({"text": "Uncaught", "url": "https://a/b.js", "lineNumber": 11, "columnNumber": 4,
            "exception": {"description": "TypeError: no\n    at x"}});
        assert_eq!(thrown(&details), "TypeError: no (https://a/b.js:12:5)");
        assert_eq!(
            thrown(&json!({"text": "Uncaught", "exception": {"value": 7}})),
            "Uncaught 7"
        );
    }

    #[test]
    fn text_is_cut_between_characters() {
        let long = "ü".repeat(PAGE_TEXT + 1);
        assert_eq!(short(&long).chars().count(), PAGE_TEXT + 1);
        assert!(short(&long).ends_with('…'));
    }

    #[test]
    fn a_status_that_comes_before_its_document_is_kept() {
        let mut fold = Fold::default();
        let response = |loader: &str, status: u16| json!({"type": "Document", "loaderId": loader, "response": {"status": status, "url": "u"}});
        fold.response(&response("L1", 404), true);
        fold.navigated(&json!({"loaderId": "L1"}));
        assert_eq!(fold.document.status, Some(404));
        fold.navigated(&json!({"loaderId": "L2"}));
        fold.response(&response("L2", 200), true);
        fold.navigated(&json!({"loaderId": "L3", "parentId": "F"}));
        assert_eq!(
            (fold.document.status, fold.document.loader.as_str()),
            (Some(200), "L2")
        );
    }
}
