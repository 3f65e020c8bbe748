//! What can end an open connection from our side: the rule that let it in is taken back, its context is retired, the proxy
//! closes, or nothing was carried for too long.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::contexts::Context;
use super::failure::Stop;
use crate::policy::allowlist::{Allowlist, Permit};
use crate::policy::host::Host;
use crate::policy::refusal::Refusal;

/// Why an open connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Both sides said all they had to say.
    Closed,
    /// One side broke off.
    Broken,
    /// Nothing was carried for the idle limit.
    Idle,
    /// Its rule was taken back.
    Withdrawn,
    /// Its context was retired.
    Retired,
    /// The proxy closes.
    Closing,
}

impl End {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Broken => "broken",
            Self::Idle => "idle",
            Self::Withdrawn => "rule_withdrawn",
            Self::Retired => "page_closed",
            Self::Closing => "session_ended",
        }
    }
}

/// What a request that is cut off on its way is answered with; only a rule taken back leaves somebody to read it.
impl From<End> for Stop {
    fn from(_: End) -> Self {
        Refusal::Withdrawn.into()
    }
}

/// Holds a connection to the allowlist, its context and the proxy.
pub(super) struct Leash {
    /// Taken before the first decision, so that no change after it is missed.
    allow: watch::Receiver<Arc<Allowlist>>,
    retired: CancellationToken,
    closing: CancellationToken,
}

impl Leash {
    pub(super) fn new(shared: &Shared, context: &Context) -> Self {
        Self {
            allow: shared.allow.clone(),
            retired: context.end.clone(),
            closing: shared.closing.clone(),
        }
    }

    /// The decision about a host, as the list is now.
    pub(super) fn permit(&mut self, host: &Host) -> Option<Permit> {
        self.allow.borrow_and_update().permit(host)
    }

    /// Resolves when a connection to the host has to end. A list that nobody can change any more has lost its owner: that
    /// ends it too.
    pub(super) async fn cut(&mut self, host: &Host) -> End {
        let withdrawn = async {
            while self.allow.changed().await.is_ok() {
                if self.allow.borrow_and_update().permit(host).is_none() {
                    break;
                }
            }
        };
        tokio::select! {
            () = withdrawn => End::Withdrawn,
            () = self.retired.cancelled() => End::Retired,
            () = self.closing.cancelled() => End::Closing,
        }
    }

    /// The same for a connection to ourselves, which no rule governs.
    pub(super) async fn cut_own(&self) -> End {
        tokio::select! {
            () = self.retired.cancelled() => End::Retired,
            () = self.closing.cancelled() => End::Closing,
        }
    }
}
