//! What a relay sends: written by the embedded relay, read by the link.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::app::Id;
use crate::policy::limits;
use crate::relay::units::cut;
use crate::relay::wire::{self, Fields, Object, Parsed};

/// The reply to a registration or a resume that succeeded.
pub(in crate::relay) fn registered(session: &str, secret: &str, resumed: bool) -> String {
    Object::frame("register_reply", 0)
        .json("ok", "true")
        .text("sessionId", session)
        .text("resumeSecret", secret)
        .json_if("resumed", resumed.then_some("true"))
        .finish()
}

/// A request that was refused; `kind` is the reply's type.
pub(in crate::relay) fn refused(kind: &str, id: Id<'_>, code: &str, message: &str) -> String {
    let error = Object::empty()
        .text("code", code)
        .text("message", message)
        .finish();
    reply(kind, id)
        .json("ok", "false")
        .json("error", &error)
        .finish()
}

/// A request that succeeded, or not, without more to say.
pub(in crate::relay) fn done(kind: &str, id: Id<'_>, ok: bool) -> String {
    reply(kind, id)
        .json("ok", if ok { "true" } else { "false" })
        .finish()
}

/// A new link.
pub(in crate::relay) fn minted(id: Id<'_>, token: &str, label: &str) -> String {
    reply("mint_agent_token_reply", id)
        .json("ok", "true")
        .text("token", token)
        .text("url", &base_url(token))
        .text("label", label)
        .json("expiresAt", "null")
        .finish()
}

/// All live links: token, label, and milliseconds since 1970.
pub(in crate::relay) fn listed<'t>(
    id: Id<'_>,
    tokens: impl Iterator<Item = (String, &'t str, u64)>,
) -> String {
    let tokens = tokens.map(|(token, label, minted_at)| {
        Object::empty()
            .text("token", &token)
            .text("url", &base_url(&token))
            .text("label", label)
            .json("mintedAt", &minted_at.to_string())
            .finish()
    });
    reply("list_agent_tokens_reply", id)
        .json("tokens", &wire::array(tokens))
        .finish()
}

/// A call for the app.
pub(in crate::relay) fn tool_call(
    id: &str,
    method: &str,
    path: &str,
    body: &str,
    headers: &BTreeMap<String, String>,
) -> String {
    let headers = headers
        .iter()
        .fold(Object::empty(), |object, (name, value)| {
            object.text(name, value)
        });
    Object::frame("tool_call", body.len() + 256)
        .text("id", id)
        .text("method", method)
        .text("path", path)
        .text("body", body)
        .json("headers", &headers.finish())
        .finish()
}

/// The answer to a ping.
pub(in crate::relay) fn pong(id: Id<'_>) -> String {
    reply("pong", id).finish()
}

fn reply(kind: &str, id: Id<'_>) -> Object {
    Object::frame(kind, 0).json_if("id", id.map(RawValue::get))
}

/// The app puts the relay's address, as it knows it, in the place of `__BASE__`.
fn base_url(token: &str) -> String {
    format!("__BASE__/v1/t/{token}/agents.md")
}

/// A frame of a relay, read as far as the app needs it.
#[derive(Debug)]
pub(in crate::relay) enum RelayFrame<'a> {
    Registered {
        session: Cow<'a, str>,
        secret: Cow<'a, str>,
        resumed: bool,
    },
    RegistrationRefused(WireError),
    /// A reply to one of our requests.
    Reply {
        id: Cow<'a, str>,
        outcome: Result<ReplyValue, WireError>,
    },
    Call {
        id: Cow<'a, str>,
        method: Cow<'a, str>,
        path: Cow<'a, str>,
        body: Cow<'a, str>,
        headers: BTreeMap<String, String>,
    },
    Ended {
        ok: bool,
    },
    Ping {
        id: Id<'a>,
    },
    /// Nothing that asks for something; the pong too, since any frame is a sign of life.
    Other,
}

/// What a request of ours brought.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::relay) enum ReplyValue {
    Minted { token: String, label: String },
    Revoked { was_live: bool },
    Listed(Vec<ListedToken>),
    Updated,
}

/// A live link, as the relay lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::relay) struct ListedToken {
    pub(in crate::relay) token: String,
    pub(in crate::relay) label: String,
    pub(in crate::relay) minted_at: u64,
}

/// `error` of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::relay) struct WireError {
    pub(in crate::relay) code: String,
    pub(in crate::relay) message: String,
}

impl<'a> RelayFrame<'a> {
    /// Reads a frame's text; what makes no sense is [`RelayFrame::Other`].
    pub(in crate::relay) fn parse(frame: &'a Utf8Bytes) -> Self {
        match Fields::parse(frame) {
            Parsed::Object(fields) => Self::read(&fields).unwrap_or(Self::Other),
            Parsed::Array | Parsed::Nothing => Self::Other,
        }
    }

    fn read(fields: &Fields<'a>) -> Option<Self> {
        Some(match &*fields.text("type")? {
            "tool_call" => Self::Call {
                id: fields.text("id")?,
                method: fields.text("method")?,
                path: fields.text("path")?,
                body: fields.text("body").unwrap_or_default(),
                headers: fields.raw("headers").map(read_headers).unwrap_or_default(),
            },
            "register_reply" if fields.is_true("ok") => Self::Registered {
                session: fields.text("sessionId").filter(|id| is_name(id))?,
                // Relays of before resume give none.
                secret: fields.text("resumeSecret").unwrap_or_default(),
                resumed: fields.is_true("resumed"),
            },
            "register_reply" => Self::RegistrationRefused(WireError::read(fields)),
            "end_reply" => Self::Ended {
                ok: fields.is_true("ok"),
            },
            "ping" => Self::Ping {
                id: fields.raw("id"),
            },
            kind => Self::Reply {
                id: fields.text("id")?,
                outcome: read_reply(kind, fields)?,
            },
        })
    }
}

fn read_reply(kind: &str, fields: &Fields<'_>) -> Option<Result<ReplyValue, WireError>> {
    let ok = fields.is_true("ok");
    Some(match kind {
        "revoke_agent_token_reply" if fields.raw("error").is_none() => {
            Ok(ReplyValue::Revoked { was_live: ok })
        }
        "list_agent_tokens_reply" if fields.raw("tokens").is_some() => {
            Ok(ReplyValue::Listed(read_tokens(fields)))
        }
        "mint_agent_token_reply" if ok => match fields.text("token").filter(|token| is_name(token))
        {
            Some(token) => Ok(ReplyValue::Minted {
                token: token.into(),
                label: fields.text("label").unwrap_or_default().into(),
            }),
            None => Err(WireError {
                code: "protocol_error".into(),
                message: "a malformed token".into(),
            }),
        },
        "update_tools_reply" if ok => Ok(ReplyValue::Updated),
        kind if kind.ends_with("_reply") => Err(WireError::read(fields)),
        _ => return None,
    })
}

fn read_tokens(fields: &Fields<'_>) -> Vec<ListedToken> {
    let list = fields
        .raw("tokens")
        .and_then(|raw| serde_json::from_str::<Vec<Fields<'_>>>(raw.get()).ok());
    let read = |token: &Fields<'_>| {
        Some(ListedToken {
            token: token.text("token").filter(|token| is_name(token))?.into(),
            label: token.text("label").unwrap_or_default().into(),
            minted_at: token
                .integer("mintedAt")
                .and_then(|at| u64::try_from(at).ok())
                .unwrap_or_default(),
        })
    };
    list.unwrap_or_default().iter().filter_map(read).collect()
}

/// Session ids and tokens become parts of addresses.
fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=limits::TOKEN).contains(&text.len()) && text.bytes().all(allowed)
}

fn read_headers(raw: &RawValue) -> BTreeMap<String, String> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

impl WireError {
    fn read(fields: &Fields<'_>) -> Self {
        let error = fields.raw("error").and_then(Fields::of).unwrap_or_default();
        // Shown to the owner, and so not at any length.
        let text =
            |name| cut(&error.text(name).unwrap_or_default(), limits::LABEL_UNITS).to_owned();
        Self {
            code: text("code"),
            message: text("message"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.into()).unwrap()
    }

    #[test]
    fn replies_are_read_as_they_are_written() {
        let one = id("\"1\"");
        let value = |text: String| match RelayFrame::parse(&text.into()) {
            RelayFrame::Reply { id, outcome } => (id.into_owned(), outcome),
            other => panic!("{other:?}"),
        };
        let minted = value(minted(Some(&one), "as_T", "l"));
        assert_eq!(
            minted,
            (
                "1".into(),
                Ok(ReplyValue::Minted {
                    token: "as_T".into(),
                    label: "l".into()
                })
            )
        );
        let revoked = value(done("revoke_agent_token_reply", Some(&one), false));
        assert_eq!(revoked.1, Ok(ReplyValue::Revoked { was_live: false }));
        let listed = value(listed(
            Some(&one),
            [("as_T".to_owned(), "l", 7)].into_iter(),
        ));
        let token = ListedToken {
            token: "as_T".into(),
            label: "l".into(),
            minted_at: 7,
        };
        assert_eq!(listed.1, Ok(ReplyValue::Listed(vec![token])));
        let refused = value(refused(
            "mint_agent_token_reply",
            Some(&one),
            "too_many_tokens",
            "m",
        ));
        assert_eq!(refused.1.unwrap_err().code, "too_many_tokens");
    }

    #[test]
    fn ids_are_echoed_as_they_came() {
        assert_eq!(
            pong(Some(&id(r#"{"a":[1]}"#))),
            r#"{"type":"pong","id":{"a":[1]}}"#
        );
        assert_eq!(pong(None), r#"{"type":"pong"}"#);
    }

    proptest! {
        #[test]
        fn a_call_is_read_as_it_is_written(body in any::<String>(), value in any::<String>()) {
            let headers = BTreeMap::from([("x-a".to_owned(), value)]);
            let frame = Utf8Bytes::from(tool_call("c", "POST", "/p", &body, &headers));
            let RelayFrame::Call { body: read, headers: read_headers, .. } = RelayFrame::parse(&frame) else {
                panic!("no call")
            };
            prop_assert_eq!(read, body);
            prop_assert_eq!(read_headers, headers);
        }

        #[test]
        fn decoding_never_panics(text in any::<String>(), value in r#"null|7|"x"|\[\]|\{\}|\[7\]|true"#) {
            let _ = RelayFrame::parse(&text.into());
            for kind in ["tool_call", "register_reply", "list_agent_tokens_reply", "mint_agent_token_reply"] {
                for field in ["id", "tokens", "error", "headers", "sessionId"] {
                    let frame = format!(r#"{{"type":"{kind}","id":"1","method":"M","path":"/","{field}":{value}}}"#);
                    let _ = RelayFrame::parse(&frame.into());
                }
            }
        }
    }
}
