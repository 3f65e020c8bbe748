//! A sniffer on every interface of a namespace: where its packets went.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket,
};

use super::net::Side;

const OUTGOING: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Holds what left since it was made; the kernel keeps the packets until they are asked for.
pub struct Sniffer(OwnedFd);

impl Sniffer {
    pub fn on(side: &Side) -> Self {
        Self(side.on_thread(|| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            socket(
                AddressFamily::Packet,
                SockType::Raw,
                flags,
                SockProtocol::EthAll,
            )
            .expect("a sniffer needs root")
        }))
    }

    /// Where packets went that were sent since the last call: TCP and UDP with their ports, everything else with port 0.
    pub fn targets(&self) -> BTreeSet<SocketAddr> {
        let mut targets = BTreeSet::new();
        let mut frame = [0; 2_048];
        while let Ok((length, from)) = recvfrom::<LinkAddr>(self.0.as_raw_fd(), &mut frame) {
            let outgoing = from.is_some_and(|from| from.pkttype() == OUTGOING);
            targets.extend(target(&frame[..length.min(frame.len())]).filter(|_| outgoing));
        }
        targets
    }
}

/// The target of an Ethernet frame that holds IP; ARP is the wire's own.
fn target(frame: &[u8]) -> Option<SocketAddr> {
    let packet = frame.get(14..)?;
    let (address, protocol, payload) = match u16::from_be_bytes([frame[12], frame[13]]) {
        0x0800 => {
            let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            let header = usize::from(packet[0] & 0x0f) * 4;
            (
                IpAddr::V4(Ipv4Addr::from(address)),
                packet[9],
                packet.get(header..)?,
            )
        }
        0x86dd => {
            let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            (
                IpAddr::V6(Ipv6Addr::from(address)),
                packet[6],
                packet.get(40..)?,
            )
        }
        _ => return None,
    };
    let port = match protocol {
        TCP | UDP => u16::from_be_bytes(payload.get(2..4)?.try_into().ok()?),
        _ => 0,
    };
    Some(SocketAddr::new(address, port))
}
