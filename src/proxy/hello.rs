//! The first record of a TLS connection: a ClientHello, and the host that it names (RFC 8446, 4.1.2; RFC 6066, 3).
//!
//! ```text
//! record     type 22 · version 3.x · length u16 ≤ 16,384 · one whole handshake message
//! handshake  type 1 · length u24 · version · random 32 · session id u8+… · suites u16+… · compression u8+… · extensions u16+…
//! extension  type u16 · length u16 · …       0 is server_name: list u16 · { type 0 · length u16 · name }
//! ```
//!
//! Chromium sends one record with the name in clear, whatever GREASE stands beside it; it knows no ECH keys behind a proxy, for
//! it asks no name server. A hello split over records, with no name, two names or bytes to spare is refused, not worked around.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::policy::host::Host;
use crate::policy::limits::{CLIENT_HELLO, CLIENT_HELLO_TIME};
use crate::policy::refusal::Refusal;

const RECORD_HEAD: usize = 5;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO_TYPE: u8 = 1;
const SERVER_NAME: u16 = 0;

/// What the bytes so far are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello<'a> {
    /// Not a whole record yet.
    Partial,
    /// A ClientHello that names this host; the name as it was sent.
    Names(&'a str),
    /// A ClientHello with no name or an ambiguous one.
    Nameless,
    /// Not a ClientHello.
    NotTls,
}

/// Reads the bytes that a client sent first.
pub fn parse(bytes: &[u8]) -> Hello<'_> {
    match bytes {
        [] => return Hello::Partial,
        [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, _] | [HANDSHAKE, 3, _, _] => {
            return Hello::Partial;
        }
        [HANDSHAKE, 3, ..] => {}
        _ => return Hello::NotTls,
    }
    let length = usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
    if length > CLIENT_HELLO {
        return Hello::NotTls;
    }
    match bytes[RECORD_HEAD..].get(..length) {
        Some(record) => record_names(record),
        // What is no ClientHello is told at once, however long it claims to be.
        None if bytes
            .get(RECORD_HEAD)
            .is_some_and(|kind| *kind != CLIENT_HELLO_TYPE) =>
        {
            Hello::NotTls
        }
        None => Hello::Partial,
    }
}

fn record_names(record: &[u8]) -> Hello<'_> {
    let Some(extensions) = extensions(record) else {
        return Hello::NotTls;
    };
    match server_name(extensions) {
        Some(name) => Hello::Names(name),
        None => Hello::Nameless,
    }
}

/// The extensions of the one handshake message that fills the record.
fn extensions(record: &[u8]) -> Option<Cursor<'_>> {
    let mut record = Cursor(record);
    if record.number(1)? != usize::from(CLIENT_HELLO_TYPE) {
        return None;
    }
    let mut hello = record.vector(3)?;
    record.at_end()?;
    hello.take(2 + 32)?;
    hello.vector(1)?;
    hello.vector(2)?;
    hello.vector(1)?;
    let extensions = hello.vector(2)?;
    hello.at_end()?;
    Some(extensions)
}

/// The one host name of the one server_name extension.
fn server_name(mut extensions: Cursor<'_>) -> Option<&str> {
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let mut content = extensions.vector(2)?;
        if kind != usize::from(SERVER_NAME) {
            continue;
        }
        let mut list = content.vector(2)?;
        content.at_end()?;
        let host_name = list.number(1)? == 0;
        let name = list.vector(2)?;
        list.at_end()?;
        if !host_name || found.is_some() {
            return None;
        }
        found = Some(std::str::from_utf8(name.0).ok()?);
    }
    found
}

/// Bytes yet to be read; every step says whether there were enough.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A big-endian number of up to three bytes.
    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(
            self.take(bytes)?
                .iter()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    }

    /// What stands behind a length of so many bytes.
    fn vector(&mut self, length_bytes: usize) -> Option<Self> {
        let length = self.number(length_bytes)?;
        self.take(length).map(Cursor)
    }

    fn at_end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Reads on until a whole ClientHello that names the host is there, and gives all bytes read. `Ok(None)` is a client that
/// left without a word, which is no offence.
pub(super) async fn read(
    client: &mut (impl AsyncRead + Unpin),
    early: &[u8],
    host: &Host,
) -> io::Result<Result<Option<Vec<u8>>, Refusal>> {
    let mut bytes = early.to_vec();
    let whole = async {
        loop {
            match parse(&bytes) {
                Hello::Partial if bytes.len() <= RECORD_HEAD + CLIENT_HELLO => {}
                Hello::Names(name) if same_host(name, host) => {
                    return Ok(Ok(Some(std::mem::take(&mut bytes))));
                }
                Hello::Names(_) | Hello::Nameless => return Ok(Err(Refusal::SniMismatch)),
                Hello::Partial | Hello::NotTls => return Ok(Err(Refusal::NotTls)),
            }
            if client.read_buf(&mut bytes).await? == 0 {
                return Ok(if bytes.is_empty() {
                    Ok(None)
                } else {
                    Err(Refusal::NotTls)
                });
            }
        }
    };
    timeout(CLIENT_HELLO_TIME, whole)
        .await
        .unwrap_or(Ok(Err(Refusal::HelloTimeout)))
}

fn same_host(name: &str, host: &Host) -> bool {
    Host::parse(name).is_ok_and(|named| named == *host)
}
