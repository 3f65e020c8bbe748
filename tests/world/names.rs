//! A scripted name server, on real UDP and TCP sockets.
//!
//! ```text
//! message   id · flags · counts of questions, answers, authorities, additionals (u16 each)
//! question  labels (u8 length, bytes) … 0 · type u16 · class u16
//! answer    name · type u16 · class u16 · ttl u32 · length u16 · data       (a name 0xC00C is the question's)
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::net::Side;

const UDP_MOST: usize = 1_200;

/// What a name server says to a question.
#[derive(Debug, Clone)]
pub enum Says {
    /// These addresses of the asked family, with this time to live.
    Addresses(Vec<IpAddr>, u32),
    /// Another name, which has these addresses.
    Alias(String, Vec<IpAddr>),
    /// There is no such name.
    Nothing,
    /// Not a word.
    Silence,
}

pub fn addresses(texts: &[&str]) -> Says {
    Says::Addresses(texts.iter().map(|text| text.parse().unwrap()).collect(), 60)
}

/// The questions asked so far: name and type.
pub type Asked = Arc<Mutex<Vec<(String, u16)>>>;
/// The script: name, how often it was asked before for that type, and what to say.
pub type Script = Arc<dyn Fn(&str, usize) -> Says + Send + Sync>;

/// Starts a name server in a namespace, and gives the list of what it is asked.
pub fn serve(
    side: &Side,
    at: SocketAddr,
    script: impl Fn(&str, usize) -> Says + Send + Sync + 'static,
) -> Asked {
    let asked = Asked::default();
    let script: Script = Arc::new(script);
    let (udp, tcp) = side.on_thread(move || {
        let (udp, tcp) = (
            std::net::UdpSocket::bind(at).unwrap(),
            std::net::TcpListener::bind(at).unwrap(),
        );
        udp.set_nonblocking(true).unwrap();
        tcp.set_nonblocking(true).unwrap();
        (udp, tcp)
    });
    side.start(over_udp(udp, asked.clone(), script.clone()));
    side.start(over_tcp(tcp, asked.clone(), script));
    asked
}

async fn over_udp(socket: std::net::UdpSocket, asked: Asked, script: Script) {
    let socket = UdpSocket::from_std(socket).unwrap();
    let mut buffer = [0; 1_500];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        if let Some(mut reply) = answer(&buffer[..length], &asked, &script) {
            if reply.len() > UDP_MOST {
                // Cut after the question, with the flag that sends the client to TCP.
                reply.truncate(length.min(reply.len()));
                reply[2] |= 0x02;
                reply[6..12].fill(0);
                reply.truncate(12 + question_length(&reply));
            }
            let _ = socket.send_to(&reply, from).await;
        }
    }
}

async fn over_tcp(listener: std::net::TcpListener, asked: Asked, script: Script) {
    let listener = TcpListener::from_std(listener).unwrap();
    while let Ok((mut stream, _)) = listener.accept().await {
        while let Ok(length) = stream.read_u16().await {
            let mut question = vec![0; usize::from(length)];
            if stream.read_exact(&mut question).await.is_err() {
                break;
            }
            let Some(reply) = answer(&question, &asked, &script) else {
                continue;
            };
            let mut framed = u16::try_from(reply.len()).unwrap().to_be_bytes().to_vec();
            framed.extend(reply);
            let _ = stream.write_all(&framed).await;
        }
    }
}

fn question_length(message: &[u8]) -> usize {
    message[12..].iter().position(|byte| *byte == 0).unwrap() + 5
}

fn answer(message: &[u8], asked: &Asked, script: &Script) -> Option<Vec<u8>> {
    let question = &message[12..12 + question_length(message)];
    let name = spelled(question);
    let kind = u16::from_be_bytes([question[question.len() - 4], question[question.len() - 3]]);
    let before = {
        let mut asked = asked.lock().unwrap();
        let before = asked
            .iter()
            .filter(|held| **held == (name.clone(), kind))
            .count();
        asked.push((name.clone(), kind));
        before
    };
    let mut records = Vec::new();
    let mut code = 0;
    match script(&name, before) {
        Says::Silence => return None,
        Says::Nothing => code = 3,
        Says::Addresses(addresses, ttl) => {
            records.extend(
                of_kind(&addresses, kind).map(|address| record(&[0xc0, 0x0c], kind, ttl, &address)),
            );
        }
        Says::Alias(other, addresses) => {
            let other = wire(&other);
            records.push(record(&[0xc0, 0x0c], 5, 60, &other));
            records.extend(
                of_kind(&addresses, kind).map(|address| record(&other, kind, 60, &address)),
            );
        }
    }
    let mut reply = message[..2].to_vec();
    reply.extend([0x85, 0x80 | code, 0, 1]);
    reply.extend(u16::try_from(records.len()).unwrap().to_be_bytes());
    reply.extend([0; 4]);
    reply.extend(question);
    reply.extend(records.concat());
    Some(reply)
}

fn of_kind(addresses: &[IpAddr], kind: u16) -> impl Iterator<Item = Vec<u8>> {
    addresses.iter().filter_map(move |address| match address {
        IpAddr::V4(v4) if kind == 1 => Some(v4.octets().to_vec()),
        IpAddr::V6(v6) if kind == 28 => Some(v6.octets().to_vec()),
        _ => None,
    })
}

fn record(name: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    [
        name,
        &kind.to_be_bytes(),
        &[0, 1],
        &ttl.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}

fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| {
        let length = u8::try_from(label.len()).unwrap();
        std::iter::once(length).chain(label.bytes())
    });
    labels.chain([0]).collect()
}

fn spelled(question: &[u8]) -> String {
    let mut labels = Vec::new();
    let mut rest = question;
    while rest[0] != 0 {
        let (label, after) = rest[1..].split_at(usize::from(rest[0]));
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        rest = after;
    }
    labels.join(".")
}
