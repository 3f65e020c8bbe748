//! A session as the owner's command has it: in this process (development), or in one under the account of the install. Both
//! are asked and heard in the same way.

pub(super) mod account;
mod remote;
pub(super) mod serve;
mod wire;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::Failure;
use crate::policy::limits::{OWNER_ASKS, OWNER_EVENTS};
use crate::server::desk::{Ask, Asked, Ending, Reply};
use crate::server::{self, Event, ServerConfig};

pub(super) use self::remote::remote;

/// A session that is being started, runs, or has ended.
pub(super) struct Session {
    desk: Desk,
    events: mpsc::Receiver<Event>,
    life: JoinSet<Result<Ending, Failure>>,
}

/// What comes from a session.
pub(super) enum News {
    /// Something happened.
    Event(Event),
    /// It has ended; nothing comes after this.
    Over(Result<Ending, Failure>),
}

/// The way to ask; clones are the same.
#[derive(Clone)]
pub(super) struct Desk(mpsc::Sender<Asked>);

impl Desk {
    /// Asks, and waits for the answer.
    pub(super) async fn ask(&self, ask: Ask) -> Reply {
        let (answer, answered) = oneshot::channel();
        let gone = || Reply::No {
            reason: "the session has ended".to_owned(),
        };
        if self.0.send((ask, answer)).await.is_err() {
            return gone();
        }
        answered.await.unwrap_or_else(|_| gone())
    }
}

impl Session {
    /// A session in this process.
    pub(super) fn local(config: ServerConfig) -> Self {
        let (asks, asked) = mpsc::channel(OWNER_ASKS);
        let (sender, events) = mpsc::channel(OWNER_EVENTS);
        let mut life = JoinSet::new();
        life.spawn(async move {
            server::run(config, asked, sender)
                .await
                .map_err(Failure::Start)
        });
        Self {
            desk: Desk(asks),
            events,
            life,
        }
    }

    /// The way to ask it.
    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// What comes next. Dropped and called again, it loses nothing.
    pub(super) async fn news(&mut self) -> News {
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => News::Event(event),
            over = self.life.join_next() => News::Over(match over {
                Some(Ok(over)) => over,
                Some(Err(_)) | None => Err(Failure::Lost("it broke".to_owned())),
            }),
        }
    }
}
