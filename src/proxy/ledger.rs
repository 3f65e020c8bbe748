//! What the log hears of a connection to a site: one line when it is made, and one when it ends, whatever way that is.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::Shared;
use super::contexts::Context;
use super::events::Event;
use super::leash::End;
use crate::policy::host::{Host, Port};

/// A connection that was made; its end is told when this is dropped.
pub(super) struct Entry {
    shared: Arc<Shared>,
    context: Arc<Context>,
    host: String,
    port: u16,
    address: IpAddr,
    opened: Instant,
    sent: AtomicU64,
    received: AtomicU64,
    reason: OnceLock<&'static str>,
}

impl Entry {
    /// Tells that a connection was made.
    pub(super) fn open(
        shared: &Arc<Shared>,
        context: &Arc<Context>,
        host: &Host,
        port: Port,
        address: IpAddr,
    ) -> Arc<Self> {
        let entry = Self {
            shared: shared.clone(),
            context: context.clone(),
            host: host.to_string(),
            port: port.number(),
            address,
            opened: Instant::now(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            reason: OnceLock::new(),
        };
        shared.log.send(Event::Reached {
            user: context.user.clone(),
            host: entry.host.clone(),
            port: entry.port,
            address,
        });
        Arc::new(entry)
    }

    /// Counts bytes from the browser to the site.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes from the site to the browser.
    pub(super) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Why it ends; the first word counts.
    pub(super) fn ends(&self, reason: &'static str) {
        let _ = self.reason.set(reason);
    }

    /// The reason where nobody gave one: what it belonged to was dropped.
    fn found(&self) -> &'static str {
        let end = if self.shared.closing.is_cancelled() {
            End::Closing
        } else if self.context.end.is_cancelled() {
            End::Retired
        } else {
            End::Broken
        };
        end.as_str()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.shared.log.send(Event::Ended {
            user: self.context.user.clone(),
            host: std::mem::take(&mut self.host),
            port: self.port,
            address: self.address,
            sent: *self.sent.get_mut(),
            received: *self.received.get_mut(),
            open: self.opened.elapsed(),
            reason: self.reason.get().copied().unwrap_or_else(|| self.found()),
        });
    }
}
