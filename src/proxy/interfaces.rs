//! The machine's own addresses, with the prefixes that are on its links.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;
use nix::sys::socket::SockaddrStorage;
use tokio::time::Instant;

use super::failure::Failure;
use crate::policy::address::OwnNetwork;
use crate::policy::limits::OWN_ADDRESSES_AGE;

/// Where the machine's own addresses come from; tests bring their own.
pub type OwnAddresses = Arc<dyn Fn() -> io::Result<OwnNetwork> + Send + Sync>;

/// Asks the kernel.
pub fn of_this_machine() -> OwnAddresses {
    Arc::new(|| {
        let interfaces = nix::ifaddrs::getifaddrs().map_err(io::Error::from)?;
        Ok(OwnNetwork::new(interfaces.filter_map(|interface| {
            let address = ip(interface.address.as_ref()?)?;
            let prefix = interface
                .netmask
                .as_ref()
                .and_then(ip)
                .map_or(full_length(address), prefix_length);
            IpNet::new(address, prefix).ok()
        })))
    })
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Leading ones of a netmask. One with holes in it is read as its leading part, which covers more and not less.
fn prefix_length(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => u32::from(mask).leading_ones(),
        IpAddr::V6(mask) => u128::from(mask).leading_ones(),
    };
    u8::try_from(ones).unwrap_or(u8::MAX)
}

/// The addresses as they were a moment ago: reading them anew for each of a page's hundred connections costs more than
/// the answer changes.
pub(super) struct Fresh {
    source: OwnAddresses,
    held: Mutex<Option<(Instant, Arc<OwnNetwork>)>>,
}

impl Fresh {
    pub(super) fn new(source: OwnAddresses) -> Self {
        Self {
            source,
            held: Mutex::new(None),
        }
    }

    /// Addresses that are not known let nothing through.
    pub(super) fn get(&self) -> Result<Arc<OwnNetwork>, Failure> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, own)) = held
            .as_ref()
            .filter(|(at, _)| at.elapsed() < OWN_ADDRESSES_AGE)
        {
            return Ok(own.clone());
        }
        let own = (self.source)().map(Arc::new).map_err(|error| {
            tracing::warn!(%error, "the machine's own addresses could not be read");
            Failure::OwnAddresses
        })?;
        *held = Some((Instant::now(), own.clone()));
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::address::{Verdict, vet};

    #[test]
    fn a_netmask_is_its_leading_ones() {
        assert_eq!(prefix_length("255.255.254.0".parse().unwrap()), 23);
        assert_eq!(prefix_length("ffff:ffff:ffff:ffff::".parse().unwrap()), 64);
        assert_eq!(prefix_length("255.0.255.0".parse().unwrap()), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_are_read_again_after_a_moment_and_unknown_ones_let_nothing_through() {
        let answers = Mutex::new(vec![Err(io::Error::other("gone")), Ok("93.184.215.0/24")]);
        let fresh = Fresh::new(Arc::new(move || {
            let answer = answers.lock().unwrap().pop().unwrap();
            answer.map(|net| OwnNetwork::new([net.parse().unwrap()]))
        }));
        let own = fresh.get().unwrap();
        assert!(matches!(
            vet("93.184.215.14".parse().unwrap(), &own),
            Verdict::Refuse(_)
        ));
        assert!(fresh.get().is_ok(), "held for a moment");
        tokio::time::advance(OWN_ADDRESSES_AGE).await;
        assert_eq!(fresh.get().unwrap_err(), Failure::OwnAddresses);
    }

    #[test]
    fn the_machines_loopback_is_among_its_own_addresses() {
        assert_ne!(of_this_machine()().unwrap(), OwnNetwork::default());
    }
}
