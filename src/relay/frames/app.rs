//! What an app sends: written by the link, read by the embedded relay.

use serde_json::value::RawValue;
use std::borrow::Cow;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::body::{Answer, Body, TaskAnswer};
use super::{Frame, TooLarge};
use crate::relay::registration::Registration;
use crate::relay::wire::{self, Fields, Object, Parsed, quoted};

/// The first frame of a new session.
pub(in crate::relay) fn register(registration: &Registration) -> Result<Frame, TooLarge> {
    let frame = Object::frame("register", registration.size());
    Frame::measured(registration.write(frame).finish())
}

/// The first frame of an app that comes back.
pub(in crate::relay) fn resume(
    session: &str,
    secret: &str,
    revoked: &[String],
    registration: &Registration,
) -> Result<Frame, TooLarge> {
    let revoked = wire::array(revoked.iter().map(|token| quoted(token)));
    let frame = Object::frame("resume", registration.size())
        .text("sessionId", session)
        .text("secret", secret)
        .json("revokeTokens", &revoked);
    Frame::measured(registration.write(frame).finish())
}

/// Ends a session that the app is away from.
pub(in crate::relay) fn end(session: &str, secret: &str) -> Result<Frame, TooLarge> {
    let frame = Object::frame("end", 0)
        .text("sessionId", session)
        .text("secret", secret);
    Frame::measured(frame.finish())
}

/// Asks for a link.
pub(in crate::relay) fn mint(id: &str, label: &str) -> Result<Frame, TooLarge> {
    Frame::measured(
        Object::frame("mint_agent_token", 0)
            .text("id", id)
            .text("label", label)
            .finish(),
    )
}

/// Kills a link.
pub(in crate::relay) fn revoke(id: &str, token: &str) -> Result<Frame, TooLarge> {
    Frame::measured(
        Object::frame("revoke_agent_token", 0)
            .text("id", id)
            .text("token", token)
            .finish(),
    )
}

/// Asks for all links.
pub(in crate::relay) fn list(id: &str) -> Result<Frame, TooLarge> {
    Frame::measured(
        Object::frame("list_agent_tokens", 0)
            .text("id", id)
            .finish(),
    )
}

/// Replaces tools and briefing.
pub(in crate::relay) fn update_tools(
    id: &str,
    registration: &Registration,
) -> Result<Frame, TooLarge> {
    let frame = Object::frame("update_tools", registration.size()).text("id", id);
    Frame::measured(registration.write_tools(frame).finish())
}

/// Answers a call.
pub(in crate::relay) fn tool_reply(
    id: &str,
    status: u16,
    body: &Body,
    task_id: Option<&str>,
) -> Result<Frame, TooLarge> {
    let frame = Object::frame("tool_reply", body.size())
        .text("id", id)
        .json("status", &status.to_string())
        .json_if("taskId", task_id.map(quoted).as_deref());
    Frame::measured(body.write(frame).finish())
}

/// Ends an asynchronous call.
pub(in crate::relay) fn task_complete(answer: &TaskAnswer) -> Result<Frame, TooLarge> {
    let frame = Object::frame("task_complete", answer.body.size())
        .text("taskId", &answer.task_id)
        .json("status", &answer.status.to_string());
    Frame::measured(answer.body.write(frame).finish())
}

/// A frame of an app, read as far as the relay needs it.
pub(in crate::relay) enum AppFrame<'a> {
    Register(Claim<'a>),
    Resume {
        secret: Cow<'a, str>,
        revoked: Vec<String>,
        claim: Claim<'a>,
    },
    End {
        secret: Cow<'a, str>,
    },
    Mint {
        id: Id<'a>,
        label: Cow<'a, str>,
    },
    Revoke {
        id: Id<'a>,
        token: Cow<'a, str>,
    },
    List {
        id: Id<'a>,
    },
    UpdateTools {
        id: &'a RawValue,
        tools: Option<&'a RawValue>,
        briefing: Option<&'a RawValue>,
    },
    ToolReply {
        id: Cow<'a, str>,
        answer: Answer,
        task_id: Option<&'a RawValue>,
    },
    TaskComplete {
        task_id: Cow<'a, str>,
        answer: Answer,
    },
    Ping {
        id: Id<'a>,
    },
    /// An object or an array without a meaning: a sign of life and no more.
    Unknown,
    /// Not even a sign of life.
    Noise,
}

/// An id, echoed as it came.
pub(in crate::relay) type Id<'a> = Option<&'a RawValue>;

/// What an app claims to be, not yet judged.
pub(in crate::relay) struct Claim<'a> {
    pub(in crate::relay) app_id: Option<Cow<'a, str>>,
    pub(in crate::relay) briefing: Option<Cow<'a, str>>,
    pub(in crate::relay) description: Cow<'a, str>,
    pub(in crate::relay) tools: Option<&'a RawValue>,
}

impl<'a> AppFrame<'a> {
    /// Reads a frame's text. Bodies stay slices of it.
    pub(in crate::relay) fn parse(frame: &'a Utf8Bytes) -> Self {
        match Fields::parse(frame) {
            Parsed::Object(fields) => Self::read(&fields, frame).unwrap_or(Self::Unknown),
            Parsed::Array => Self::Unknown,
            Parsed::Nothing => Self::Noise,
        }
    }

    fn read(fields: &Fields<'a>, frame: &'a Utf8Bytes) -> Option<Self> {
        let id = fields.raw("id");
        let text = |name| fields.text(name).unwrap_or_default();
        Some(match &*fields.text("type")? {
            "register" => Self::Register(Claim::read(fields)),
            "resume" => Self::Resume {
                secret: text("secret"),
                revoked: revoked(fields),
                claim: Claim::read(fields),
            },
            "end" => Self::End {
                secret: text("secret"),
            },
            "mint_agent_token" => Self::Mint {
                id,
                label: text("label"),
            },
            "revoke_agent_token" => Self::Revoke {
                id,
                token: text("token"),
            },
            "list_agent_tokens" => Self::List { id },
            "update_tools" => Self::UpdateTools {
                id: id.filter(|id| id.get().starts_with('"'))?,
                tools: fields.raw("tools"),
                briefing: fields.raw("agentsMd"),
            },
            "tool_reply" => Self::ToolReply {
                id: fields.text("id")?,
                answer: Answer::read(fields, frame),
                task_id: fields.raw("taskId"),
            },
            "task_complete" => Self::TaskComplete {
                task_id: fields.text("taskId")?,
                answer: Answer::read(fields, frame),
            },
            "ping" => Self::Ping { id },
            _ => Self::Unknown,
        })
    }
}

impl<'a> Claim<'a> {
    fn read(fields: &Fields<'a>) -> Self {
        Self {
            app_id: fields.text("appId"),
            briefing: fields.text("agentsMd"),
            description: fields.text("appDescription").unwrap_or_default(),
            tools: fields.raw("tools").filter(|tools| tools.get() != "null"),
        }
    }
}

fn revoked(fields: &Fields<'_>) -> Vec<String> {
    let list = fields.raw("revokeTokens").map(RawValue::get);
    let tokens: Option<Vec<&RawValue>> = list.and_then(|list| serde_json::from_str(list).ok());
    let tokens = tokens.unwrap_or_default().into_iter();
    tokens
        .filter_map(|token| wire::string(token).map(String::from))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::frames::body::AnswerBody;
    use proptest::prelude::*;

    #[test]
    fn a_large_text_body_is_a_slice_of_its_frame() {
        let body = Body::Text {
            content_type: "text/plain".into(),
            text: "QUJD".repeat(900_000),
        };
        let frame = tool_reply("c1", 200, &body, None).unwrap().into_text();
        let AppFrame::ToolReply { answer, .. } = AppFrame::parse(&frame) else {
            panic!("no reply")
        };
        let AnswerBody::Text { text, content_type } = answer.body else {
            panic!("no text")
        };
        assert_eq!(
            (text.len(), content_type.as_str()),
            (3_600_000, "text/plain")
        );
        let inside = frame.as_str().as_bytes().as_ptr_range();
        assert!(inside.contains(&text.as_ptr()));
    }

    #[test]
    fn statuses_outside_200_to_599_are_none() {
        for (status, expected) in [
            ("200", Some(200)),
            ("599", Some(599)),
            ("199", None),
            ("600", None),
            ("\"200\"", None),
            ("70000", None),
        ] {
            let frame = Utf8Bytes::from(format!(
                r#"{{"type":"tool_reply","id":"c","status":{status}}}"#
            ));
            let AppFrame::ToolReply { answer, .. } = AppFrame::parse(&frame) else {
                panic!("no reply")
            };
            assert_eq!(answer.status, expected, "{status}");
        }
    }

    #[test]
    fn an_update_without_a_string_id_is_ignored() {
        for (id, known) in [("\"a\"", true), ("7", false), ("null", false)] {
            let frame =
                Utf8Bytes::from(format!(r#"{{"type":"update_tools","id":{id},"tools":[]}}"#));
            assert_eq!(
                matches!(AppFrame::parse(&frame), AppFrame::UpdateTools { .. }),
                known,
                "{id}"
            );
        }
    }

    #[test]
    fn noise_is_told_from_signs_of_life() {
        for noise in [
            "",
            "hello",
            "7",
            "\"ping\"",
            "null",
            "{",
            "[1",
            "{\"type\":\"ping\"} x",
        ] {
            assert!(
                matches!(AppFrame::parse(&noise.into()), AppFrame::Noise),
                "{noise}"
            );
        }
        for life in ["{}", "[]", " [1] ", "{\"type\":7}", "{\"type\":\"news\"}"] {
            assert!(
                matches!(AppFrame::parse(&life.into()), AppFrame::Unknown),
                "{life}"
            );
        }
    }

    proptest! {
        #[test]
        fn decoding_never_panics(text in any::<String>(), kind in "register|resume|end|tool_reply|task_complete|update_tools|ping", value in r#"null|7|"x"|\[\]|\{\}|\[7\]|true|1e999"#) {
            let _ = AppFrame::parse(&text.into());
            for field in ["id", "tools", "body", "headers", "status", "taskId", "revokeTokens", "agentsMd"] {
                let frame = format!(r#"{{"type":"{kind}","id":"1","{field}":{value}}}"#);
                let _ = AppFrame::parse(&frame.into());
            }
        }
    }
}
