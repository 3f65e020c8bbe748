//! What the proxy tells: lines for the audit log, and the refused hosts of a page and of the session. No content of
//! requests, no paths: hosts alone.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::failure::Stop;
use crate::policy::limits::{REFUSED_HOSTS, REFUSED_TARGET};

/// A line for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A connection to a host was made.
    Reached {
        /// The browser context.
        user: String,
        /// The host.
        host: String,
        /// 80 or 443.
        port: u16,
        /// The address that was dialled.
        address: IpAddr,
    },
    /// That connection ended.
    Ended {
        /// The browser context.
        user: String,
        /// The host.
        host: String,
        /// 80 or 443.
        port: u16,
        /// The address that was dialled.
        address: IpAddr,
        /// Bytes from the browser to the host.
        sent: u64,
        /// Bytes from the host to the browser.
        received: u64,
        /// How long it was open.
        open: Duration,
        /// A stable word for why.
        reason: &'static str,
    },
    /// A request was refused, or failed.
    Stopped {
        /// The browser context.
        user: String,
        /// The target as it was asked for, cut.
        target: String,
        /// Why.
        reason: Stop,
    },
}

/// A host that was not reached, as pages and `/info` show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    /// The target as it was asked for, cut.
    pub host: String,
    /// The stable word of the reason.
    pub reason: &'static str,
    /// What the agent can do.
    pub fix: &'static str,
    /// How often it was asked for.
    pub count: u64,
}

/// Refused hosts in the order they came; a bounded number of different ones.
#[derive(Debug, Default)]
pub(super) struct RefusedHosts(Mutex<Vec<RefusedHost>>);

impl RefusedHosts {
    pub(super) fn add(&self, target: &str, stop: Stop) {
        let mut hosts = self.lock();
        let known = hosts
            .iter_mut()
            .find(|held| held.host == target && held.reason == stop.as_str());
        if let Some(held) = known {
            held.count += 1;
        } else if hosts.len() < REFUSED_HOSTS {
            hosts.push(RefusedHost {
                host: target.to_owned(),
                reason: stop.as_str(),
                fix: stop.fix(),
                count: 1,
            });
        }
    }

    pub(super) fn list(&self) -> Vec<RefusedHost> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RefusedHost>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The proxy's end of the audit log, with the session's counts.
#[derive(Debug)]
pub(super) struct Log {
    sender: mpsc::Sender<Event>,
    lost: AtomicU64,
    refusals: AtomicU64,
    refused: RefusedHosts,
    canary: watch::Sender<Option<Awaited>>,
}

/// A request of the daemon's own that must arrive here and be refused.
#[derive(Debug)]
struct Awaited {
    target: String,
    seen: bool,
}

/// A request for loopback that is on its way. It is no page's, so no list and no log names it. One at a time.
#[derive(Debug)]
pub struct Canary<'a>(&'a Log);

impl Canary<'_> {
    /// Waits until it has arrived and was refused. The caller sets the deadline.
    pub async fn refused(&self) {
        let mut canary = self.0.canary.subscribe();
        // The sender lives as long as this borrow of it, so the wait cannot fail.
        let _ = canary
            .wait_for(|awaited| awaited.as_ref().is_some_and(|awaited| awaited.seen))
            .await;
    }
}

impl Drop for Canary<'_> {
    fn drop(&mut self) {
        self.0.canary.send_replace(None);
    }
}

impl Log {
    pub(super) fn new(sender: mpsc::Sender<Event>) -> Self {
        Self {
            sender,
            lost: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            refused: RefusedHosts::default(),
            canary: watch::Sender::new(None),
        }
    }

    pub(super) fn send(&self, event: Event) {
        if self.sender.try_send(event).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes a refusal or a failure down for the session, and into the list of the context that asked.
    pub(super) fn stopped(&self, user: &str, hosts: &RefusedHosts, target: &str, reason: Stop) {
        let target: String = target.chars().take(REFUSED_TARGET).collect();
        tracing::debug!(user, ?target, reason = reason.as_str(), "not reached");
        hosts.add(&target, reason);
        self.refused.add(&target, reason);
        if matches!(reason, Stop::Refused(_)) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        }
        self.send(Event::Stopped {
            user: user.to_owned(),
            target,
            reason,
        });
    }

    /// Expects a request for a port of loopback.
    pub(super) fn expect_loopback(&self, port: u16) -> Canary<'_> {
        let target = format!("127.0.0.1:{port}");
        let seen = false;
        self.canary.send_replace(Some(Awaited { target, seen }));
        Canary(self)
    }

    /// Whether a target is the one that is expected; it has arrived then.
    pub(super) fn is_canary(&self, target: &str) -> bool {
        self.canary.send_if_modified(|awaited| {
            let is_it = |awaited: &&mut Awaited| awaited.target == target;
            let found = awaited.as_mut().filter(is_it);
            found.map(|awaited| awaited.seen = true).is_some()
        })
    }

    pub(super) fn refused_hosts(&self) -> Vec<RefusedHost> {
        self.refused.list()
    }

    pub(super) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::refusal::Refusal;

    #[test]
    fn refused_hosts_are_bounded_and_counted() {
        let hosts = RefusedHosts::default();
        for n in 0..REFUSED_HOSTS * 2 {
            hosts.add(&format!("h{n}.example"), Refusal::HostNotAllowed.into());
            hosts.add("h0.example", Refusal::HostNotAllowed.into());
        }
        let list = hosts.list();
        assert_eq!(list.len(), REFUSED_HOSTS);
        assert_eq!(list[0].count, REFUSED_HOSTS as u64 * 2 + 1);
        assert_eq!(list[0].reason, "host_not_allowed");
    }

    #[tokio::test]
    async fn a_log_that_does_not_keep_up_loses_lines_and_counts_them() {
        let (sender, _receiver) = mpsc::channel(2);
        let log = Log::new(sender);
        for _ in 0..5 {
            log.stopped(
                "ctx-1",
                &RefusedHosts::default(),
                "a.example",
                Refusal::HostNotAllowed.into(),
            );
        }
        assert_eq!((log.lost(), log.refusals()), (3, 5));
    }
}
