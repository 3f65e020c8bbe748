//! What a link tells its owner.

use std::collections::BTreeMap;
use std::time::SystemTime;

use tokio::sync::{mpsc, watch};

use super::trouble::{Ending, Trouble};
use crate::policy::limits;

/// Something happened on the link.
#[derive(Debug)]
pub enum LinkEvent {
    /// Registered, or resumed: then every link works as before.
    Up {
        /// The session's public name.
        session_id: String,
        /// Whether it is the session from before.
        resumed: bool,
    },
    /// An agent calls.
    Call(Call),
    /// Not connected, or not connected any more; the link goes on trying.
    Away {
        /// Why.
        reason: Trouble,
        /// How many attempts have failed since it was up.
        attempt: u32,
    },
    /// The old session is gone, and its links with it; these have taken their place.
    Replaced {
        /// Every link that was handed out and not revoked.
        links: Vec<Replacement>,
    },
    /// The link is over; nothing comes after this.
    Ended(Ending),
}

/// A link that is dead, and its successor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// What no longer works.
    pub old: String,
    /// What works in its place; `None` where the relay would not make one.
    pub new: Option<String>,
    /// What the owner calls it.
    pub label: String,
}

/// A call of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What the reply must name.
    pub id: CallId,
    /// The HTTP method.
    pub method: String,
    /// The path after `$BASE`, without a query.
    pub path: String,
    /// The request's body.
    pub body: String,
    /// Its content type and `x-` headers, in lower case.
    pub headers: BTreeMap<String, String>,
}

/// A call's name on one connection. A later connection may use the same id for another agent's call, so that a reply
/// goes out only on the connection that its call came in on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(super) epoch: u64,
    pub(super) id: String,
}

/// How a link is.
#[derive(Debug, Clone, Default)]
pub struct LinkStatus {
    /// Up or not.
    pub state: LinkState,
    /// How often it came back after it had been up.
    pub reconnects: u64,
}

/// Whether a link is up.
#[derive(Debug, Clone, Default)]
pub enum LinkState {
    /// It never was.
    #[default]
    Connecting,
    /// It is.
    Up {
        /// Since then.
        since: SystemTime,
        /// The session's public name.
        session_id: String,
    },
    /// It is not, and goes on trying.
    Away {
        /// Since then.
        since: SystemTime,
        /// Why, as of the last attempt.
        reason: Trouble,
    },
    /// It will not be again.
    Ended(Ending),
}

/// Tells events, and keeps the status beside them.
pub(super) struct Events {
    events: mpsc::Sender<LinkEvent>,
    status: watch::Sender<LinkStatus>,
    was_up: bool,
}

impl Events {
    pub(super) fn new(events: mpsc::Sender<LinkEvent>, status: watch::Sender<LinkStatus>) -> Self {
        Self {
            events,
            status,
            was_up: false,
        }
    }

    pub(super) fn up(&mut self, session_id: &str, resumed: bool) {
        let again = u64::from(std::mem::replace(&mut self.was_up, true));
        self.status.send_modify(|status| {
            status.reconnects += again;
            status.state = LinkState::Up {
                since: SystemTime::now(),
                session_id: session_id.to_owned(),
            };
        });
        self.tell(LinkEvent::Up {
            session_id: session_id.to_owned(),
            resumed,
        });
    }

    pub(super) fn away(&self, reason: Trouble, attempt: u32) {
        self.status.send_modify(|status| {
            let since = match &status.state {
                LinkState::Away { since, .. } => *since,
                _ => SystemTime::now(),
            };
            status.state = LinkState::Away {
                since,
                reason: reason.clone(),
            };
        });
        self.tell(LinkEvent::Away { reason, attempt });
    }

    pub(super) fn replaced(&self, links: Vec<Replacement>) {
        self.tell(LinkEvent::Replaced { links });
    }

    pub(super) fn ended(&self, ending: Ending) {
        self.status
            .send_modify(|status| status.state = LinkState::Ended(ending.clone()));
        self.tell(LinkEvent::Ended(ending));
    }

    /// Hands on a call; `false` where its owner is too far behind.
    pub(super) fn call(&self, call: Call) -> bool {
        self.events.capacity() > limits::LINK_EVENT_RESERVE
            && self.events.try_send(LinkEvent::Call(call)).is_ok()
    }

    /// Calls leave a reserve for these. An owner that does not even read them any more cannot be helped.
    fn tell(&self, event: LinkEvent) {
        // Who has dropped the receiver wants to hear nothing.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.events.try_send(event) {
            tracing::warn!("an event of the link was not heard: its owner does not read");
        }
    }
}
