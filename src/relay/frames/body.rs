//! Bodies of replies: as an app writes them, and as a relay reads them without copying.

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::policy::limits;
use crate::relay::units::units;
use crate::relay::wire::{self, Fields, Object, quoted};

/// What an app answers an agent with.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Nothing: an empty response.
    None,
    /// JSON.
    Json(Value),
    /// A text that goes out as it is, with its type.
    Text {
        /// The response's content type; the relay turns what a browser would run into plain text.
        content_type: String,
        /// The text.
        text: String,
    },
}

impl Body {
    /// Adds `body` and, for a text, the `headers` that let it out as it is.
    pub(super) fn write(&self, frame: Object) -> Object {
        match self {
            Self::None => frame,
            Self::Json(value) => frame.json("body", &value.to_string()),
            Self::Text { content_type, text } => {
                let headers = Object::empty().text("content-type", content_type).finish();
                frame.json("headers", &headers).text("body", text)
            }
        }
    }

    /// Bytes that [`Body::write`] takes at least.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::None | Self::Json(_) => 0,
            Self::Text { content_type, text } => content_type.len() + text.len() + 64,
        }
    }
}

/// The end of an asynchronous call.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskAnswer {
    /// The id that the call was answered with.
    pub task_id: String,
    /// The final status, 200 to 599.
    pub status: u16,
    /// The final body, at most 65,536 bytes as JSON.
    pub body: Body,
}

/// Why a relay would drop a task's answer in silence, so that it is not even sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskAnswerError {
    /// Not `[A-Za-z0-9_-]{1,64}`.
    #[error("{0:?} is no task id")]
    Id(String),
    /// Outside 200 to 599.
    #[error("a task cannot end with status {0}")]
    Status(u16),
    /// A body over the limit.
    #[error("a task's answer has {0} bytes as JSON, {most} at most", most = limits::TASK_RESULT)]
    TooLarge(usize),
    /// A content type over the limit.
    #[error("a task's content type has {0} characters, {most} at most", most = limits::TASK_CONTENT_TYPE_UNITS)]
    ContentType(usize),
}

impl TaskAnswer {
    /// Refuses what the relay would drop without a word.
    pub(in crate::relay) fn check(&self) -> Result<(), TaskAnswerError> {
        if !is_task_id(&self.task_id) {
            return Err(TaskAnswerError::Id(self.task_id.clone()));
        }
        if !(200..=599).contains(&self.status) {
            return Err(TaskAnswerError::Status(self.status));
        }
        let size = match &self.body {
            Body::None => 0,
            Body::Json(value) => value.to_string().len(),
            Body::Text { text, .. } => quoted(text).len(),
        };
        if size > limits::TASK_RESULT {
            return Err(TaskAnswerError::TooLarge(size));
        }
        match &self.body {
            Body::Text { content_type, .. }
                if units(content_type) > limits::TASK_CONTENT_TYPE_UNITS =>
            {
                Err(TaskAnswerError::ContentType(units(content_type)))
            }
            _ => Ok(()),
        }
    }
}

/// `[A-Za-z0-9_-]{1,64}`
pub(in crate::relay) fn is_task_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

/// A status and a body as they came from an app; bodies are slices of the frame wherever they can be.
#[derive(Debug)]
pub(in crate::relay) struct Answer {
    /// `None` where the app sent something that is no status.
    pub(in crate::relay) status: Option<u16>,
    pub(in crate::relay) body: AnswerBody,
}

/// The body of an [`Answer`].
#[derive(Debug, Clone)]
pub(in crate::relay) enum AnswerBody {
    None,
    /// JSON text.
    Json(Bytes),
    Text {
        content_type: String,
        text: Bytes,
    },
}

impl Answer {
    pub(super) fn read(fields: &Fields<'_>, frame: &Utf8Bytes) -> Self {
        let status = fields
            .integer("status")
            .and_then(|status| u16::try_from(status).ok());
        let headers = fields.raw("headers").and_then(Fields::of);
        let content_type =
            headers.and_then(|headers| headers.text("content-type").map(String::from));
        let body = match fields.raw("body") {
            None => AnswerBody::None,
            Some(raw) => read_body(raw, content_type, frame),
        };
        Self {
            status: status.filter(|status| (200..=599).contains(status)),
            body,
        }
    }

    /// The same without the frame that it came in.
    pub(in crate::relay) fn detached(self) -> Self {
        let copy = |bytes: Bytes| Bytes::copy_from_slice(&bytes);
        let body = match self.body {
            AnswerBody::None => AnswerBody::None,
            AnswerBody::Json(json) => AnswerBody::Json(copy(json)),
            AnswerBody::Text { content_type, text } => AnswerBody::Text {
                content_type,
                text: copy(text),
            },
        };
        Self { body, ..self }
    }

    /// Whether a task's answer is small enough to be stored.
    pub(in crate::relay) fn fits_a_task(&self) -> bool {
        match &self.body {
            AnswerBody::None => true,
            AnswerBody::Json(json) => {
                json.len() <= limits::TASK_RESULT || compact(json) <= limits::TASK_RESULT
            }
            AnswerBody::Text { content_type, text } => {
                let text = String::from_utf8_lossy(text);
                units(content_type) <= limits::TASK_CONTENT_TYPE_UNITS
                    && quoted(&text).len() <= limits::TASK_RESULT
            }
        }
    }
}

fn read_body(raw: &RawValue, content_type: Option<String>, frame: &Utf8Bytes) -> AnswerBody {
    let whole: &Bytes = frame.as_ref();
    match content_type.and_then(|content_type| Some((content_type, wire::string(raw)?))) {
        None => AnswerBody::Json(whole.slice_ref(raw.get().as_bytes())),
        Some((content_type, text)) => {
            let text = match text {
                std::borrow::Cow::Borrowed(text) => whole.slice_ref(text.as_bytes()),
                std::borrow::Cow::Owned(text) => text.into(),
            };
            AnswerBody::Text { content_type, text }
        }
    }
}

/// The length of JSON without needless spaces and escapes; what cannot be told counts as it came.
fn compact(json: &[u8]) -> usize {
    let value: Result<Value, _> = serde_json::from_slice(json);
    value.map_or(json.len(), |value| value.to_string().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(task_id: &str, status: u16, body: Body) -> Result<(), TaskAnswerError> {
        TaskAnswer {
            task_id: task_id.into(),
            status,
            body,
        }
        .check()
    }

    fn text(content_type: usize, text: usize) -> Body {
        Body::Text {
            content_type: "a".repeat(content_type),
            text: "b".repeat(text),
        }
    }

    #[test]
    fn a_task_answer_that_the_relay_would_drop_is_refused_here() {
        let quotes = 2;
        assert_eq!(
            answer("t-1_A", 200, text(256, limits::TASK_RESULT - quotes)),
            Ok(())
        );
        assert_eq!(
            answer("", 200, Body::None),
            Err(TaskAnswerError::Id(String::new()))
        );
        assert_eq!(
            answer("t", 199, Body::None),
            Err(TaskAnswerError::Status(199))
        );
        assert_eq!(
            answer("t", 600, Body::None),
            Err(TaskAnswerError::Status(600))
        );
        assert_eq!(
            answer("t", 200, text(257, 1)),
            Err(TaskAnswerError::ContentType(257))
        );
        assert_eq!(
            answer("t", 200, text(1, limits::TASK_RESULT)),
            Err(TaskAnswerError::TooLarge(65_538))
        );
        let json = Body::Json(Value::String("\u{1}".repeat(20_000)));
        assert_eq!(
            answer("t", 200, json),
            Err(TaskAnswerError::TooLarge(120_002))
        );
    }
}
