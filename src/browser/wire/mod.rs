//! How CDP messages look on the descriptor: binary (CBOR) where the browser speaks it, else NUL-separated JSON.
//!
//! A message is taken in shallowly: who it is for and where its payload lies. A picture is then a slice of the frame it
//! came in, and an event that nobody asked for is never parsed.

mod cbor;
mod json;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::policy::limits::CDP_MESSAGE;

/// Bytes of Chromium's envelope before a map or a list: a tag, "byte string with a 32-bit length", the length.
const ENVELOPE: usize = 7;

/// Why a message could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The browser closed its end, or died.
    #[error("the browser closed the pipe")]
    Closed,
    /// The descriptor failed.
    #[error("the pipe to the browser failed: {0}")]
    Io(#[from] std::io::Error),
    /// The bytes are no message.
    #[error("the browser sent something that is no message: {0}")]
    Malformed(&'static str),
}

/// Which of the two forms a browser speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// `--remote-debugging-pipe=cbor`: no base64 and no escapes for pictures and large values.
    Cbor,
    /// `--remote-debugging-pipe`: every browser speaks it.
    Json,
}

/// The parameters of an event or the result of a command, not yet parsed.
#[derive(Debug, Clone)]
pub struct Payload {
    codec: Codec,
    bytes: Bytes,
}

/// A message of the browser.
#[derive(Debug)]
pub enum Message {
    /// The answer to a command.
    Reply {
        /// The command's number.
        id: u64,
        /// The result, or the browser's refusal.
        result: Result<Payload, Failure>,
    },
    /// Something happened.
    Event {
        /// `Domain.event`.
        method: String,
        /// The session it happened in; none on the browser's own.
        session: Option<String>,
        /// Its parameters.
        payload: Payload,
    },
    /// A reply over [`CDP_MESSAGE`]; it was read to its end and thrown away.
    TooLarge {
        /// The command's number, where it could be told.
        id: Option<u64>,
    },
}

/// The browser's own words on why it refused a command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Failure {
    /// The JSON-RPC code.
    #[serde(default)]
    pub code: i64,
    /// The text.
    #[serde(default)]
    pub message: String,
}

impl Codec {
    /// A command as it goes out.
    pub fn encode(self, command: &Value) -> Vec<u8> {
        match self {
            Self::Cbor => cbor::encode(command),
            Self::Json => json::encode(command),
        }
    }

    /// The next message of the browser.
    pub async fn read(self, input: &mut (impl AsyncBufRead + Unpin)) -> Result<Message, WireError> {
        match self {
            Self::Cbor => read_cbor(input).await,
            Self::Json => read_json(input).await,
        }
    }
}

impl Payload {
    fn new(codec: Codec, bytes: Bytes) -> Self {
        Self { codec, bytes }
    }

    /// Its bytes as they came.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The whole payload; binary members become base64 text, lone surrogates U+FFFD.
    pub fn value(&self) -> Result<Value, WireError> {
        if self.bytes.is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        match self.codec {
            Codec::Cbor => cbor::decode(&self.bytes),
            Codec::Json => json::decode(&self.bytes),
        }
    }

    /// The payload as a type that names the fields it needs.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        serde_json::from_value(self.value()?)
            .map_err(|_| WireError::Malformed("a field is missing or of another type"))
    }

    /// The entries of a long list, one by one, so that never all of them are values at once.
    pub fn entries(&self, key: &str, each: &mut dyn FnMut(Value)) -> Result<(), WireError> {
        match self.codec {
            Codec::Cbor => cbor::entries(&self.bytes, key, each),
            Codec::Json => json::entries(&self.bytes, key, each),
        }
    }

    /// A binary member (a picture), without a copy where the browser speaks CBOR.
    pub fn binary(&self, key: &str) -> Result<Bytes, WireError> {
        match self.codec {
            Codec::Cbor => cbor::binary(&self.bytes, key),
            Codec::Json => json::binary(&self.bytes, key),
        }
    }

    /// The members beside a large binary one, which is left out unread.
    pub fn value_without(&self, key: &str) -> Result<Value, WireError> {
        match self.codec {
            Codec::Cbor => cbor::decode_without(&self.bytes, key),
            Codec::Json => json::decode_without(&self.bytes, key),
        }
    }
}

async fn read_cbor(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Message, WireError> {
    let mut head = [0; ENVELOPE];
    if let Err(error) = input.read_exact(&mut head).await {
        return Err(if error.kind() == std::io::ErrorKind::UnexpectedEof {
            WireError::Closed
        } else {
            error.into()
        });
    }
    let length = cbor::envelope_length(&head).ok_or(WireError::Malformed("no envelope"))?;
    if length > CDP_MESSAGE {
        return drain(input, length).await;
    }
    let mut body = Vec::with_capacity(length);
    let read = (&mut *input)
        .take(length as u64)
        .read_to_end(&mut body)
        .await?;
    if read < length {
        return Err(WireError::Closed);
    }
    cbor::message(&Bytes::from(body))
}

/// Reads a message that is too large to its end, keeping only what tells whose it is.
async fn drain(
    input: &mut (impl AsyncBufRead + Unpin),
    length: usize,
) -> Result<Message, WireError> {
    const FRONT: usize = 32;
    let mut front = [0; FRONT];
    input.read_exact(&mut front).await?;
    let mut rest = input.take((length - FRONT) as u64);
    tokio::io::copy_buf(&mut rest, &mut tokio::io::sink()).await?;
    Ok(Message::TooLarge {
        id: cbor::leading_id(&front),
    })
}

async fn read_json(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Message, WireError> {
    let mut line = Vec::new();
    let read = (&mut *input)
        .take(CDP_MESSAGE as u64)
        .read_until(0, &mut line)
        .await?;
    match line.pop() {
        Some(0) => json::message(&Bytes::from(line)),
        None => Err(WireError::Closed),
        Some(_) if read < CDP_MESSAGE => Err(WireError::Closed),
        Some(_) => {
            let id = json::leading_id(&line);
            drop(line);
            skip_to_nul(input).await?;
            Ok(Message::TooLarge { id })
        }
    }
}

async fn skip_to_nul(input: &mut (impl AsyncBufRead + Unpin)) -> Result<(), WireError> {
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Err(WireError::Closed);
        }
        let (skipped, found) = match buffer.iter().position(|byte| *byte == 0) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        input.consume(skipped);
        if found {
            return Ok(());
        }
    }
}
