//! How often one address may open sockets.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::policy::limits;

/// The last attempts of each address; refused ones count.
#[derive(Default)]
pub(super) struct Rate(Mutex<HashMap<IpAddr, VecDeque<Instant>>>);

impl Rate {
    /// Notes an attempt; `false` where the address made too many.
    pub(super) fn admit(&self, address: IpAddr) -> bool {
        let now = Instant::now();
        let recent = |at: &Instant| now.duration_since(*at) < limits::UPGRADE_WINDOW;
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= limits::RATED_ADDRESSES {
            addresses.retain(|_, attempts| attempts.back().is_some_and(recent));
        }
        let attempts = addresses.entry(address).or_default();
        let is_full = attempts.len() == limits::UPGRADES;
        let hundredth = if is_full { attempts.pop_front() } else { None };
        attempts.push_back(now);
        !hundredth.is_some_and(|at| recent(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn an_address_has_a_hundred_attempts_in_ten_seconds() {
        let (rate, here, there) = (
            Rate::default(),
            Ipv4Addr::LOCALHOST.into(),
            Ipv4Addr::BROADCAST.into(),
        );
        assert!((0..limits::UPGRADES).all(|_| rate.admit(here)));
        assert!(!rate.admit(here) && rate.admit(there));
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(!rate.admit(here), "refused attempts count too");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(rate.admit(here));
    }
}
