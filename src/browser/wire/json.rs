//! CDP as JSON, one message up to each NUL: what browsers before the binary form speak.

use std::collections::HashMap;

use base64::Engine;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Codec, Failure, Message, Payload, WireError};

const BAD: WireError = WireError::Malformed("it is not JSON");

#[derive(Deserialize)]
struct Shallow<'a> {
    id: Option<u64>,
    method: Option<String>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Failure>,
}

pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut out = value.to_string().into_bytes();
    out.push(0);
    out
}

pub(super) fn message(line: &Bytes) -> Result<Message, WireError> {
    let shallow: Shallow<'_> = serde_json::from_slice(line).map_err(|_| BAD)?;
    let payload = shallow
        .params
        .or(shallow.result)
        .map_or_else(Bytes::new, |raw| line.slice_ref(raw.get().as_bytes()));
    let payload = Payload::new(Codec::Json, payload);
    match (shallow.id, shallow.method, shallow.error) {
        (Some(id), _, None) => Ok(Message::Reply {
            id,
            result: Ok(payload),
        }),
        (Some(id), _, Some(failure)) => Ok(Message::Reply {
            id,
            result: Err(failure),
        }),
        (None, Some(method), _) => Ok(Message::Event {
            method,
            session: shallow.session,
            payload,
        }),
        (None, None, _) => Err(WireError::Malformed("neither a reply nor an event")),
    }
}

/// The number of a reply, which Chromium writes first.
pub(super) fn leading_id(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(br#"{"id":"#)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// A payload as a value; a second try replaces lone surrogates, which serde_json refuses and pages may well send.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, WireError> {
    serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_slice(&without_lone_surrogates(bytes)).map_err(|_| BAD))
}

pub(super) fn decode_without(bytes: &[u8], left_out: &str) -> Result<Value, WireError> {
    let mut value = decode(bytes)?;
    if let Value::Object(members) = &mut value {
        members.shift_remove(left_out);
    }
    Ok(value)
}

/// Gives each entry of a list member to `each`.
pub(super) fn entries(
    bytes: &[u8],
    wanted: &str,
    each: &mut dyn FnMut(Value),
) -> Result<(), WireError> {
    let members: HashMap<&str, &RawValue> = serde_json::from_slice(bytes).map_err(|_| BAD)?;
    let Some(list) = members.get(wanted) else {
        return Ok(());
    };
    let list: Vec<&RawValue> = serde_json::from_str(list.get()).map_err(|_| BAD)?;
    for entry in list {
        each(decode(entry.get().as_bytes())?);
    }
    Ok(())
}

pub(super) fn binary(bytes: &[u8], wanted: &str) -> Result<Bytes, WireError> {
    let value = decode(bytes)?;
    let text = value
        .get(wanted)
        .and_then(Value::as_str)
        .ok_or(WireError::Malformed("the binary member is missing"))?;
    let decoded = base64::prelude::BASE64_STANDARD.decode(text);
    decoded
        .map(Bytes::from)
        .map_err(|_| WireError::Malformed("the binary member is not base64"))
}

/// Writes `\ufffd` over each `\ud8xx`…`\udfxx` escape that has no partner.
fn without_lone_surrogates(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at + 1 < out.len() {
        if out[at] != b'\\' {
            at += 1;
            continue;
        }
        match (surrogate(&out, at), surrogate(&out, at + 6)) {
            (Some(0xd8..=0xdb), Some(0xdc..=0xdf)) => at += 12,
            (Some(_), _) => {
                out[at + 2..at + 6].copy_from_slice(b"fffd");
                at += 6;
            }
            (None, _) => at += 2,
        }
    }
    out
}

/// The high byte of the escape (`\u` and four digits) at a place, where it is one half of a surrogate pair.
fn surrogate(bytes: &[u8], at: usize) -> Option<u8> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let high = u8::from_str_radix(std::str::from_utf8(&digits[..2]).ok()?, 16).ok()?;
    (0xd8..=0xdf).contains(&high).then_some(high)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        for (text, expected) in [
            (r#""\ud83d\ude00""#, "\u{1F600}"),
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
        ] {
            assert_eq!(decode(text.as_bytes()).unwrap(), json!(expected), "{text}");
        }
    }

    #[test]
    fn the_entries_of_a_list_come_one_by_one_with_lone_surrogates_replaced() {
        let bytes = br#"{"a":{"nodes":[9]},"nodes":[1,{"b":"\ud800x"}],"c":[3]}"#;
        let mut found = Vec::new();
        entries(bytes, "nodes", &mut |entry| found.push(entry)).unwrap();
        assert_eq!(
            found,
            [Value::from(1), serde_json::json!({"b": "\u{fffd}x"})]
        );
        assert!(entries(br#"{"nodes":{}}"#, "nodes", &mut |_| {}).is_err());
    }

    #[test]
    fn a_reply_an_error_and_an_event_are_told_apart() {
        let reply = Bytes::from_static(br#"{"id":3,"result":{"data":"AQID","n":5}}"#);
        let Ok(Message::Reply {
            id: 3,
            result: Ok(payload),
        }) = message(&reply)
        else {
            panic!("no reply")
        };
        assert_eq!(&payload.binary("data").unwrap()[..], [1, 2, 3]);
        assert_eq!(payload.value_without("data").unwrap(), json!({"n": 5}));
        let refused = Bytes::from_static(br#"{"id":4,"error":{"code":-32000,"message":"no"}}"#);
        assert!(matches!(
            message(&refused),
            Ok(Message::Reply {
                id: 4,
                result: Err(_)
            })
        ));
        let event = Bytes::from_static(br#"{"method":"A.b","params":{},"sessionId":"S"}"#);
        assert!(matches!(message(&event), Ok(Message::Event { session: Some(s), .. }) if s == "S"));
        assert_eq!(leading_id(br#"{"id":345,"result":{"#), Some(345));
    }
}
