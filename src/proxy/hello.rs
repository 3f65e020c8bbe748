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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// What rustls really sends to a host.
    fn hello_to(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = name.to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// A hello with these server names and nothing else of note.
    fn hello_naming(names: &[(u8, &[u8])], twice: bool) -> Vec<u8> {
        let sized = |bytes: Vec<u8>| {
            [
                &u16::try_from(bytes.len()).unwrap().to_be_bytes()[..],
                &bytes,
            ]
            .concat()
        };
        let list = names
            .iter()
            .flat_map(|(kind, name)| [vec![*kind], sized(name.to_vec())].concat())
            .collect();
        let extension = [vec![0, 0], sized(sized(list))].concat();
        let extensions = if twice {
            [extension.clone(), extension].concat()
        } else {
            extension
        };
        let body = [
            &[3, 3][..],
            &[7; 32],
            &[0],
            &[0, 2, 0x13, 1],
            &[1, 0],
            &sized(extensions),
        ]
        .concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [&[1][..], &length[1..], &body].concat();
        [&[22, 3, 1][..], &sized(message)].concat()
    }

    #[test]
    fn a_real_hello_names_its_host_and_every_prefix_of_it_waits() {
        let hello = hello_to("a.example");
        assert_eq!(parse(&hello), Hello::Names("a.example"));
        for length in 0..hello.len() {
            assert_eq!(parse(&hello[..length]), Hello::Partial, "{length}");
        }
        assert_eq!(parse(&hello_to("93.184.215.14")), Hello::Nameless);
        let more = [hello, b"early data".to_vec()].concat();
        assert_eq!(parse(&more), Hello::Names("a.example"));
    }

    #[test]
    fn an_ambiguous_name_is_none() {
        assert_eq!(
            parse(&hello_naming(&[(0, b"a.example")], false)),
            Hello::Names("a.example")
        );
        for ambiguous in [
            hello_naming(&[(0, b"a.example"), (0, b"b.example")], false),
            hello_naming(&[(0, b"a.example")], true),
            hello_naming(&[(1, b"a.example")], false),
            hello_naming(&[(0, b"\xff\xfe")], false),
            hello_naming(&[], false),
        ] {
            assert_eq!(parse(&ambiguous), Hello::Nameless);
        }
    }

    #[test]
    fn what_is_no_hello_is_told_at_once() {
        for (bytes, told) in [
            (&b"GET / HTTP/1.1\r\n"[..], Hello::NotTls),
            (b"\x15\x03\x01\x00\x02\x02\x28", Hello::NotTls),
            (b"\x16\x02\x00\x00\x01\x01", Hello::NotTls),
            (b"\x16\x03\x01\x40\x01\x01", Hello::NotTls),
            (b"\x16\x03\x01\x01\x00\x02", Hello::NotTls),
            (b"\x16\x03\x01\x00\x00", Hello::NotTls),
            (b"\x16\x03\x01\x40\x00\x01", Hello::Partial),
        ] {
            assert_eq!(parse(bytes), told, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn a_hello_that_comes_in_pieces_is_given_back_whole() {
        let hello = hello_to("a.example");
        let (early, late) = hello.split_at(20);
        let mut client = in_two_pieces(late);
        let host = Host::parse("A.Example.").unwrap();
        assert_eq!(
            read(&mut client, early, &host).await.unwrap(),
            Ok(Some(hello.clone()))
        );
        let other = Host::parse("b.example").unwrap();
        assert_eq!(
            read(&mut &hello[..], &[], &other).await.unwrap(),
            Err(Refusal::SniMismatch)
        );
        assert_eq!(
            read(&mut &hello[..50], &[], &host).await.unwrap(),
            Err(Refusal::NotTls)
        );
        assert_eq!(
            read(&mut &[][..], &[], &host).await.unwrap(),
            Ok(None),
            "a client that leaves is no offence"
        );
    }

    /// A reader that gives its bytes in two pieces.
    fn in_two_pieces(bytes: &[u8]) -> impl AsyncRead + Unpin {
        let (first, second) = bytes.split_at(7);
        first.chain(second)
    }
}
