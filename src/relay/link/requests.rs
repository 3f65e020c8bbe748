//! Requests to the relay whose replies are awaited.

use std::collections::HashMap;

use super::{Answered, ListedLink, Minted};
use crate::policy::limits;
use crate::relay::registration::Registration;

/// What a reply is for.
pub(super) enum Asked {
    Mint {
        answered: Answered<Minted>,
    },
    /// A link in the place of an old one.
    MintAgain {
        old: String,
    },
    /// `None`: nobody waits for it.
    Revoke {
        token: String,
        answered: Option<Answered<bool>>,
    },
    List {
        answered: Answered<Vec<ListedLink>>,
    },
    Update {
        registration: Box<Registration>,
        answered: Answered<()>,
    },
}

impl Asked {
    fn is_awaited(&self) -> bool {
        match self {
            Self::Mint { answered } => !answered.is_closed(),
            Self::List { answered } => !answered.is_closed(),
            Self::Update { answered, .. } => !answered.is_closed(),
            Self::Revoke { .. } | Self::MintAgain { .. } => true,
        }
    }
}

/// The requests of one connection, by their ids.
#[derive(Default)]
pub(super) struct Requests {
    next: u64,
    waiting: HashMap<String, Asked>,
}

impl Requests {
    /// Whether another one may be sent; a relay that never replies must not make us remember without end. Those that
    /// nobody waits for any more go first.
    pub(super) fn has_room(&mut self) -> bool {
        if self.waiting.len() >= limits::LINK_QUEUE {
            self.waiting.retain(|_, asked| asked.is_awaited());
        }
        self.waiting.len() < limits::LINK_QUEUE
    }

    /// The id for a request.
    pub(super) fn add(&mut self, asked: Asked) -> String {
        self.next += 1;
        let id = format!("r{}", self.next);
        self.waiting.insert(id.clone(), asked);
        id
    }

    /// What an id was for.
    pub(super) fn take(&mut self, id: &str) -> Option<Asked> {
        self.waiting.remove(id)
    }

    /// The requests that will not be answered on this connection any more.
    pub(super) fn into_unanswered(self) -> impl Iterator<Item = Asked> {
        self.waiting.into_values()
    }
}
