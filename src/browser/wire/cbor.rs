//! The part of CBOR (RFC 8949) that Chromium speaks.
//!
//! Every map and list stands in an envelope: tag 24 (`d8 18`), a byte string with a 32-bit length (`5a` + 4 bytes,
//! big-endian), in it an indefinite map (`bf … ff`) or list (`9f … ff`). Text is UTF-8 where it is ASCII and otherwise a
//! bare byte string of UTF-16LE; binary is a byte string under tag 22 ("base64 expected").

use base64::Engine;
use bytes::Bytes;
use serde_json::{Map, Number, Value};

use super::{Codec, ENVELOPE, Failure, Message, Payload, WireError};

mod entries;
pub(super) use entries::entries;

/// Maps in maps that a message may hold; what is deeper is malformed, so that no input overflows the stack.
const DEPTH: usize = 512;

const MAP: u8 = 0xbf;
const LIST: u8 = 0x9f;
const BREAK: u8 = 0xff;
const TAG_BINARY: u8 = 0xd6;
const TAG_ENVELOPE: [u8; 2] = [0xd8, 0x18];

const SHORT: WireError = WireError::Malformed("it ends in the middle of a value");

/// A command in CBOR, in its envelopes.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(yes) => out.push(if *yes { 0xf5 } else { 0xf4 }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => {
            write_head(0x60, text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Array(items) => enveloped(out, LIST, |out| {
            items.iter().for_each(|item| write(item, out));
        }),
        Value::Object(members) => enveloped(out, MAP, |out| {
            for (key, member) in members {
                write_head(0x60, key.len() as u64, out);
                out.extend_from_slice(key.as_bytes());
                write(member, out);
            }
        }),
    }
}

fn enveloped(out: &mut Vec<u8>, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&TAG_ENVELOPE);
    out.push(0x5a);
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(kind);
    content(out);
    out.push(BREAK);
    let length = u32::try_from(out.len() - length_at - 4).unwrap_or(u32::MAX);
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Chromium's integers are 32 bits wide; everything else is a double.
fn write_number(number: &Number, out: &mut Vec<u8>) {
    match number.as_i64().and_then(|n| i32::try_from(n).ok()) {
        Some(n) if n >= 0 => write_head(0x00, u64::from(n.unsigned_abs()), out),
        Some(n) => write_head(0x20, u64::from(n.unsigned_abs()) - 1, out),
        None => {
            out.push(0xfb);
            out.extend_from_slice(&number.as_f64().unwrap_or(0.0).to_be_bytes());
        }
    }
}

fn write_head(major: u8, length: u64, out: &mut Vec<u8>) {
    match (
        u8::try_from(length),
        u16::try_from(length),
        u32::try_from(length),
    ) {
        (Ok(short @ 0..24), _, _) => out.push(major | short),
        (Ok(byte), _, _) => out.extend_from_slice(&[major | 24, byte]),
        (_, Ok(two), _) => {
            out.push(major | 25);
            out.extend_from_slice(&two.to_be_bytes());
        }
        (_, _, Ok(four)) => {
            out.push(major | 26);
            out.extend_from_slice(&four.to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// The length in an envelope's head.
pub(super) fn envelope_length(head: &[u8; ENVELOPE]) -> Option<usize> {
    let known = head[..2] == TAG_ENVELOPE && head[2] == 0x5a;
    known.then(|| u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize)
}

/// The number of a reply, which Chromium writes first.
pub(super) fn leading_id(front: &[u8]) -> Option<u64> {
    let mut reader = Reader {
        bytes: front,
        at: 0,
    };
    (reader.byte().ok()? == MAP && reader.text().ok()? == "id")
        .then(|| reader.value(0).ok()?.as_u64())?
}

/// Takes a message in: `body` is what is inside the outermost envelope.
pub(super) fn message(body: &Bytes) -> Result<Message, WireError> {
    let mut reader = Reader { bytes: body, at: 0 };
    let (mut id, mut method, mut session, mut error) = (None, None, None, None);
    let mut payload = Bytes::new();
    reader.members(|key, reader| {
        match key {
            "id" => id = reader.value(0)?.as_u64(),
            "method" => method = Some(reader.text()?),
            "sessionId" => session = Some(reader.text()?),
            "error" => error = Some(reader.value(0)?),
            "params" | "result" => payload = body.slice(reader.skip()?),
            _ => {
                reader.skip()?;
            }
        }
        Ok(())
    })?;
    let payload = Payload::new(Codec::Cbor, payload);
    match (id, method, error) {
        (Some(id), _, None) => Ok(Message::Reply {
            id,
            result: Ok(payload),
        }),
        (Some(id), _, Some(error)) => {
            let failure: Failure =
                serde_json::from_value(error).map_err(|_| WireError::Malformed("a bad error"))?;
            Ok(Message::Reply {
                id,
                result: Err(failure),
            })
        }
        (None, Some(method), _) => Ok(Message::Event {
            method,
            session,
            payload,
        }),
        (None, None, _) => Err(WireError::Malformed("neither a reply nor an event")),
    }
}

/// A payload as a value.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, WireError> {
    Reader { bytes, at: 0 }.value(0)
}

/// A payload as a value, without one of its members.
pub(super) fn decode_without(bytes: &[u8], left_out: &str) -> Result<Value, WireError> {
    let mut members = Map::new();
    Reader { bytes, at: 0 }.enveloped_members(|key, reader| {
        if key == left_out {
            reader.skip()?;
        } else {
            members.insert(key.to_owned(), reader.value(1)?);
        }
        Ok(())
    })?;
    Ok(Value::Object(members))
}

/// A binary member of a payload, as a slice of it.
pub(super) fn binary(bytes: &Bytes, wanted: &str) -> Result<Bytes, WireError> {
    let mut found = None;
    Reader { bytes, at: 0 }.enveloped_members(|key, reader| {
        let range = reader.skip()?;
        if key == wanted {
            found = Some(range);
        }
        Ok(())
    })?;
    let range = found.ok_or(WireError::Malformed("the binary member is missing"))?;
    let mut reader = Reader {
        bytes,
        at: range.start,
    };
    if reader.byte()? != TAG_BINARY {
        return Err(WireError::Malformed("the member is not binary"));
    }
    let (major, length) = reader.head()?;
    if major != 2 {
        return Err(WireError::Malformed("the member is not binary"));
    }
    let start = reader.at;
    reader.take(length)?;
    Ok(bytes.slice(start..start + length))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Result<u8, WireError> {
        self.bytes.get(self.at).copied().ok_or(SHORT)
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let end = self.at.checked_add(length).ok_or(SHORT)?;
        let taken = self.bytes.get(self.at..end).ok_or(SHORT)?;
        self.at = end;
        Ok(taken)
    }

    /// The major type of the next item and its argument.
    fn head(&mut self) -> Result<(u8, usize), WireError> {
        let initial = self.byte()?;
        let argument = match initial & 0x1f {
            short @ 0..24 => u64::from(short),
            size @ 24..=27 => self
                .take(1 << (size - 24))?
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
            _ => {
                return Err(WireError::Malformed(
                    "an indefinite length where none belongs",
                ));
            }
        };
        Ok((initial >> 5, usize::try_from(argument).map_err(|_| SHORT)?))
    }

    /// Steps over the head of an envelope.
    fn envelope(&mut self) -> Result<usize, WireError> {
        let head: &[u8; ENVELOPE] = self.take(ENVELOPE)?.try_into().map_err(|_| SHORT)?;
        envelope_length(head).ok_or(WireError::Malformed("no envelope"))
    }

    /// Steps over one value and returns where it lies; an envelope is skipped by its length.
    fn skip(&mut self) -> Result<std::ops::Range<usize>, WireError> {
        let start = self.at;
        match self.peek()? {
            0xd8 => {
                let length = self.envelope()?;
                self.take(length)?;
            }
            TAG_BINARY => {
                self.at += 1;
                self.skip()?;
            }
            0xf4..=0xf6 => self.at += 1,
            0xfb => drop(self.take(9)?),
            _ => {
                let (major, length) = self.head()?;
                if matches!(major, 2 | 3) {
                    self.take(length)?;
                }
            }
        }
        Ok(start..self.at)
    }

    fn text(&mut self) -> Result<String, WireError> {
        match self.value(0)? {
            Value::String(text) => Ok(text),
            _ => Err(WireError::Malformed("a text was expected")),
        }
    }

    /// Walks the members of a map whose first byte comes next.
    fn members(
        &mut self,
        mut each: impl FnMut(&str, &mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        if self.byte()? != MAP {
            return Err(WireError::Malformed("a map was expected"));
        }
        while self.peek()? != BREAK {
            let key = self.text()?;
            each(&key, self)?;
        }
        self.at += 1;
        Ok(())
    }

    fn enveloped_members(
        &mut self,
        each: impl FnMut(&str, &mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        self.envelope()?;
        self.members(each)
    }

    fn value(&mut self, depth: usize) -> Result<Value, WireError> {
        if depth > DEPTH {
            return Err(WireError::Malformed("it is nested too deeply"));
        }
        match self.peek()? {
            0xd8 => self.collection(depth),
            TAG_BINARY => {
                self.at += 1;
                let (_, length) = self.head()?;
                Ok(Value::String(
                    base64::prelude::BASE64_STANDARD.encode(self.take(length)?),
                ))
            }
            0xf4 | 0xf5 => Ok(Value::Bool(self.byte()? == 0xf5)),
            0xf6 => {
                self.at += 1;
                Ok(Value::Null)
            }
            0xfb => {
                let bytes: [u8; 8] = self.take(9)?[1..].try_into().map_err(|_| SHORT)?;
                Ok(number(f64::from_be_bytes(bytes)))
            }
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Result<Value, WireError> {
        let (major, argument) = self.head()?;
        match major {
            0 => Ok(Value::from(argument)),
            1 => Ok(Value::from(
                -1 - i64::try_from(argument).map_err(|_| SHORT)?,
            )),
            2 => Ok(Value::String(utf16(self.take(argument)?))),
            3 => Ok(Value::String(
                String::from_utf8_lossy(self.take(argument)?).into_owned(),
            )),
            _ => Err(WireError::Malformed("a value of an unknown kind")),
        }
    }

    fn collection(&mut self, depth: usize) -> Result<Value, WireError> {
        self.envelope()?;
        if self.peek()? == MAP {
            let mut members = Map::new();
            self.members(|key, reader| {
                members.insert(key.to_owned(), reader.value(depth + 1)?);
                Ok(())
            })?;
            return Ok(Value::Object(members));
        }
        if self.byte()? != LIST {
            return Err(WireError::Malformed("an envelope without a map or a list"));
        }
        let mut items = Vec::new();
        while self.peek()? != BREAK {
            items.push(self.value(depth + 1)?);
        }
        self.at += 1;
        Ok(Value::Array(items))
    }
}

/// A double as JSON has it: whole numbers as integers, so that `2` does not come back as `2.0`.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT && !(value == 0.0 && value.is_sign_negative()) {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn utf16(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests;
