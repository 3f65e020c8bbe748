//! What a tool gives back: an answer, or a refusal that names its fix. Only the router turns either into a frame.

use serde_json::{Map, Value, json};

/// What a tool has to say when all went well.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A JSON reply with status 200.
    Json(Value),
    /// A `text/plain` reply with status 200: a part of a picture, as base64.
    Text(String),
    /// Status 202: the answer comes later, under `_as_tasks/<task>`.
    Accepted {
        /// The task to poll.
        task: String,
    },
}

/// The stable codes of refusals. A code is a promise to agents: it is never renamed, and the briefing explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The body is not JSON, or not of the tool's shape, or a value is out of its bounds.
    BadArguments,
    /// A path that no upload may have.
    BadPath,
    /// A text that should be base64 and is not.
    BadBase64,
    /// An archive that cannot be unpacked, or holds what it must not.
    BadArchive,
    /// An address that no page may open.
    BadUrl,
    /// A host that can never be allowed.
    BadHost,
    /// A selector that is invalid, or matches nothing in time.
    BadSelector,
    /// A ref of a snapshot that means nothing any more.
    StaleRef,
    /// The element is not one that a person could use: covered, not visible, disabled.
    Covered,
    /// There is no such page, upload, image or tool.
    NotFound,
    /// The picture or recording was there and has made room for newer ones.
    Gone,
    /// A chunk does not begin where the file ends.
    OffsetMismatch,
    /// The uploads would pass their limits.
    UploadsFull,
    /// All pages are taken.
    TooManyPages,
    /// The owner has denied this host already.
    AlreadyDenied,
    /// Too many requests for hosts.
    TooManyRequests,
    /// The script threw, or its promise was rejected.
    EvalThrew,
    /// The call's own time ran out.
    TimedOut,
    /// The page did not react and was killed.
    PageHung,
    /// The page's renderer crashed.
    PageCrashed,
    /// The browser was lost; a new one is being, or has been, started.
    BrowserRestarted,
    /// Something of ours broke; the owner's log says what.
    Internal,
}

impl Code {
    /// All codes, so that the briefing can be held against them.
    pub const ALL: [Self; 22] = [
        Self::BadArguments,
        Self::BadPath,
        Self::BadBase64,
        Self::BadArchive,
        Self::BadUrl,
        Self::BadHost,
        Self::BadSelector,
        Self::StaleRef,
        Self::Covered,
        Self::NotFound,
        Self::Gone,
        Self::OffsetMismatch,
        Self::UploadsFull,
        Self::TooManyPages,
        Self::AlreadyDenied,
        Self::TooManyRequests,
        Self::EvalThrew,
        Self::TimedOut,
        Self::PageHung,
        Self::PageCrashed,
        Self::BrowserRestarted,
        Self::Internal,
    ];

    /// The HTTP status and the name on the wire: the one place where they are decided.
    pub fn wire(self) -> (u16, &'static str) {
        match self {
            Self::BadArguments => (400, "bad_arguments"),
            Self::BadPath => (400, "bad_path"),
            Self::BadBase64 => (400, "bad_base64"),
            Self::BadArchive => (400, "bad_archive"),
            Self::BadUrl => (400, "bad_url"),
            Self::BadHost => (400, "bad_host"),
            Self::BadSelector => (400, "bad_selector"),
            Self::AlreadyDenied => (403, "already_denied"),
            Self::NotFound => (404, "not_found"),
            Self::Gone => (404, "gone"),
            Self::StaleRef => (409, "stale_ref"),
            Self::Covered => (409, "covered"),
            Self::OffsetMismatch => (409, "offset_mismatch"),
            Self::UploadsFull => (413, "uploads_full"),
            Self::EvalThrew => (422, "eval_threw"),
            Self::TooManyPages => (429, "too_many_pages"),
            Self::TooManyRequests => (429, "too_many_requests"),
            Self::Internal => (500, "internal"),
            Self::PageCrashed => (502, "page_crashed"),
            Self::BrowserRestarted => (503, "browser_restarted"),
            Self::TimedOut => (504, "timed_out"),
            Self::PageHung => (504, "page_hung"),
        }
    }
}

/// A call that was refused: what was wrong, and what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: &'static str,
    /// What was wrong, for a reader; never a path of the owner's machine, never a stack.
    pub message: String,
    /// What to do next.
    pub fix: String,
    /// Values that a program needs to go on, beside the message: the right offset, the number of parts.
    details: Vec<(&'static str, Value)>,
}

impl Refused {
    /// A refusal with its message and its fix.
    pub fn new(code: Code, message: impl Into<String>, fix: impl Into<String>) -> Self {
        let (status, code) = code.wire();
        Self {
            status,
            code,
            message: message.into(),
            fix: fix.into(),
            details: Vec::new(),
        }
    }

    /// Adds a value that a program needs to go on.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.details.push((name, value.into()));
        self
    }

    /// The reply's body: `{"error":{"code","message","fix",…}}`.
    pub fn body(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".into(), self.code.into());
        error.insert("message".into(), self.message.as_str().into());
        error.insert("fix".into(), self.fix.as_str().into());
        for (name, value) in &self.details {
            error.insert((*name).to_owned(), value.clone());
        }
        json!({ "error": error })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_refusal_reads_code_message_fix_in_this_order() {
        let refused =
            Refused::new(Code::OffsetMismatch, "wrong", "send the rest").with("offset", 7);
        assert_eq!(refused.status, 409);
        assert_eq!(
            refused.body().to_string(),
            r#"{"error":{"code":"offset_mismatch","message":"wrong","fix":"send the rest","offset":7}}"#
        );
    }

    #[test]
    fn each_code_is_on_the_list_once_and_has_an_error_status() {
        let names: BTreeSet<_> = Code::ALL.iter().map(|code| code.wire().1).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(
            Code::ALL
                .iter()
                .all(|code| (400..600).contains(&code.wire().0))
        );
    }
}
