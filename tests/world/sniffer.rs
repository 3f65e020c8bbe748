//! A sniffer on every interface of a namespace: where its packets went.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
    sockopt,
};

use super::net::Side;

const OUTGOING: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;
/// The hop-by-hop header of IPv6, under which the kernel tells its routers which groups it is in.
const HOP_BY_HOP: u8 = 0;
/// `lo` is the first interface of every namespace.
const LOOPBACK: usize = 1;
/// Bytes of packets that may wait to be looked at: all that a page loads.
const WAITING: usize = 64 << 20;

/// A packet that was sent. TCP and UDP have ports; everything else has port 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    /// Whether it was sent on the loopback interface.
    pub loopback: bool,
    pub protocol: u8,
    pub from: SocketAddr,
    pub to: SocketAddr,
}

impl Packet {
    /// What the kernel sends by itself on IPv6, whatever runs: it asks for neighbours and tells its groups.
    fn is_housekeeping(&self) -> bool {
        self.to.is_ipv6() && [ICMP_V6, HOP_BY_HOP].contains(&self.protocol)
    }

    pub fn is_udp(&self) -> bool {
        self.protocol == UDP
    }
}

/// Holds what left since it was made; the kernel keeps the packets until they are asked for.
pub struct Sniffer(OwnedFd);

impl Sniffer {
    pub fn on(side: &Side) -> Self {
        Self(side.on_thread(|| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket(
                AddressFamily::Packet,
                SockType::Raw,
                flags,
                SockProtocol::EthAll,
            )
            .expect("a sniffer needs root");
            setsockopt(&socket, sockopt::RcvBufForce, &WAITING).unwrap();
            socket
        }))
    }

    /// What was sent since the last call, each once.
    pub fn packets(&self) -> BTreeSet<Packet> {
        let mut packets = BTreeSet::new();
        let mut frame = [0; 2_048];
        while let Ok((length, link)) = recvfrom::<LinkAddr>(self.0.as_raw_fd(), &mut frame) {
            let sent = link.filter(|link| link.pkttype() == OUTGOING);
            let frame = &frame[..length.min(frame.len())];
            packets.extend(sent.and_then(|link| packet(frame, link.ifindex() == LOOPBACK)));
        }
        packets
    }

    /// Where packets went that were sent since the last call.
    pub fn targets(&self) -> BTreeSet<SocketAddr> {
        self.packets().iter().map(|packet| packet.to).collect()
    }

    /// What was sent since the last call and belongs to no connection with this socket on the loopback.
    pub fn besides(&self, socket: SocketAddr) -> Vec<Packet> {
        let packets = self.packets().into_iter();
        packets
            .filter(|packet| {
                let is_socket = packet.from == socket || packet.to == socket;
                !(packet.loopback && is_socket || packet.is_housekeeping())
            })
            .collect()
    }
}

/// What an Ethernet frame that holds IP says; ARP is the wire's own.
fn packet(frame: &[u8], loopback: bool) -> Option<Packet> {
    let packet = frame.get(14..)?;
    let (from, to, protocol, payload) = match u16::from_be_bytes([frame[12], frame[13]]) {
        0x0800 => {
            let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            let to: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            let header = usize::from(packet[0] & 0x0f) * 4;
            let addresses = [from, to].map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
            (addresses[0], addresses[1], packet[9], packet.get(header..)?)
        }
        0x86dd => {
            let from: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            let to: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            let addresses = [from, to].map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
            (addresses[0], addresses[1], packet[6], packet.get(40..)?)
        }
        _ => return None,
    };
    let port = |at: usize| -> Option<u16> {
        let bytes = payload.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    };
    let ports = match protocol {
        TCP | UDP => (port(0)?, port(2)?),
        _ => (0, 0),
    };
    Some(Packet {
        loopback,
        protocol,
        from: SocketAddr::new(from, ports.0),
        to: SocketAddr::new(to, ports.1),
    })
}
