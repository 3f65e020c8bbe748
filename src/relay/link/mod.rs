//! The app's end: one connection to a relay that outlives cuts, sleep and restarts.
//!
//! ```text
//!            ┌────────────────────── resume refused: register anew, mint again ◀───────────┐
//!            ▼                                                                             │
//! connect ─▶ first frame ─▶ up: calls, replies, heartbeat ─▶ away: 1, 2, 4 … 30 s ─▶ connect, resume
//! ```
//!
//! One task owns the connection and everything that is known of the session; a [`Link`] only puts commands into its queue.
//! Whatever goes out is a [`Frame`], measured when it was made.

mod attached;
mod away;
mod backoff;
mod connect;
mod events;
mod kept;
mod ledger;
mod replies;
mod requests;
mod runner;
mod trouble;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::events::{Call, CallId, LinkEvent, LinkState, LinkStatus, Replacement};
use self::kept::KeptAnswers;
use self::runner::Runner;
pub use self::trouble::{Ending, Trouble};
use super::address::RelayAddress;
use super::frames::app as frames;
use super::frames::body::TaskAnswerError;
use super::frames::{Body, Frame, TaskAnswer, TooLarge};
use super::registration::{Registration, RegistrationError, ToolSpec};
use crate::policy::limits;

/// Where to connect, and as what.
#[derive(Debug, Clone)]
pub struct LinkConfig {
    /// The relay.
    pub relay: RelayAddress,
    /// What the app tells about itself.
    pub registration: Registration,
    /// The time limits.
    pub timing: LinkTiming,
    /// Roots to believe beside the system's.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

/// The time limits of a link. The defaults are the protocol's.
#[derive(Debug, Clone, Copy)]
pub struct LinkTiming {
    /// A heartbeat goes out this long after the last inbound frame.
    pub heartbeat: Duration,
    /// Without an inbound frame for this long, the connection is given up.
    pub liveness: Duration,
    /// Every request is answered within this.
    pub answer: Duration,
    /// A connection is there within this.
    pub connect: Duration,
    /// The first pause between two attempts.
    pub backoff_first: Duration,
    /// The longest pause.
    pub backoff_cap: Duration,
}

impl Default for LinkTiming {
    fn default() -> Self {
        Self {
            heartbeat: limits::HEARTBEAT,
            liveness: limits::LIVENESS,
            answer: limits::FIRST_FRAME,
            connect: limits::RELAY_CONNECT,
            backoff_first: limits::BACKOFF_FIRST,
            backoff_cap: limits::BACKOFF_CAP,
        }
    }
}

/// An answer to a call.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The call.
    pub id: CallId,
    /// The HTTP status, 200 to 599.
    pub status: u16,
    /// The response's body.
    pub body: Body,
    /// With status 202: the work goes on under this id.
    pub task_id: Option<String>,
}

/// A link that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    /// The credential, which also revokes it.
    pub token: String,
    /// What to hand to an agent, `$BASE/agents.md`.
    pub link: String,
    /// What the owner calls it, as the relay has cut it.
    pub label: String,
}

/// A live link, as the relay lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedLink {
    /// The link.
    pub minted: Minted,
    /// When it was made.
    pub at: SystemTime,
}

/// Why a link did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The relay is not there; the request was not done, or nobody knows.
    #[error("the relay is away; try again when the link is back")]
    Away,
    /// The link has ended.
    #[error("the link has ended")]
    Ended,
    /// Too much is waiting for the relay already.
    #[error("too much is waiting for the relay; try again in a moment")]
    Busy,
    /// The relay said no.
    #[error("the relay refused: {code} {message}")]
    Refused {
        /// The relay's code.
        code: String,
        /// Its words.
        message: String,
    },
    /// A frame that would end the session; it was not sent.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A task's answer that the relay would drop; it was not sent.
    #[error(transparent)]
    Task(#[from] TaskAnswerError),
    /// Tools or a briefing that no relay takes; they were not sent.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
}

/// What a command's result comes through.
type Answered<T> = oneshot::Sender<Result<T, LinkError>>;

/// What the link's task is asked to do.
enum Command {
    Mint {
        label: String,
        answered: Answered<Minted>,
    },
    Revoke {
        token: String,
        answered: Answered<bool>,
    },
    List {
        answered: Answered<Vec<ListedLink>>,
    },
    Update {
        tools: Vec<ToolSpec>,
        briefing: Option<String>,
        answered: Answered<()>,
    },
    /// Dropped where its call came over an older connection.
    Reply {
        epoch: u64,
        frame: Frame,
    },
}

/// A handle to a link's task; clones are the same link. The link ends with [`Link::close`], or when the last handle goes.
#[derive(Clone)]
pub struct Link {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<LinkStatus>,
    kept: Arc<KeptAnswers>,
    closing: CancellationToken,
    /// Ends the task where it stands, when closing takes too long.
    cut: CancellationToken,
    tasks: TaskTracker,
    /// How long a request may take, the wait for a relay that is away included.
    patience: Duration,
}

impl Link {
    /// Starts to connect. What happens is told through the events; the receiver must be read, since a full queue refuses
    /// calls.
    #[must_use]
    pub fn open(config: LinkConfig) -> (Self, mpsc::Receiver<LinkEvent>) {
        let (commands, queue) = mpsc::channel(limits::LINK_QUEUE);
        let (events, heard) = mpsc::channel(limits::LINK_EVENTS);
        let (status, status_seen) = watch::channel(LinkStatus::default());
        let link = Self {
            commands,
            status: status_seen,
            kept: Arc::new(KeptAnswers::default()),
            closing: CancellationToken::new(),
            cut: CancellationToken::new(),
            tasks: TaskTracker::new(),
            patience: config.timing.connect + config.timing.answer,
        };
        let events = events::Events::new(events, status);
        let runner = Runner::new(
            config,
            queue,
            events,
            Arc::clone(&link.kept),
            link.closing.clone(),
        );
        link.tasks
            .spawn(link.cut.clone().run_until_cancelled_owned(runner.run()));
        link.tasks.close();
        (link, heard)
    }

    /// Makes a link for an agent. Waits a while for a relay that is away.
    ///
    /// # Errors
    /// Where the relay stays away, or refuses (`too_many_tokens`).
    pub async fn mint(&self, label: &str) -> Result<Minted, LinkError> {
        let label = super::units::cut(label, limits::LABEL_UNITS).to_owned();
        self.ask(|answered| Command::Mint { label, answered }).await
    }

    /// Kills a link; `false` where it was not live. While the relay is away it is noted, and done before anybody can use
    /// the link again.
    ///
    /// # Errors
    /// Where the link has ended.
    pub async fn revoke(&self, token: &str) -> Result<bool, LinkError> {
        if token.len() > limits::TOKEN {
            // No relay made it; and what is noted for a resume must fit into its frame.
            return Ok(false);
        }
        let token = token.to_owned();
        self.ask(|answered| Command::Revoke { token, answered })
            .await
    }

    /// The live links, as the relay knows them.
    ///
    /// # Errors
    /// Where the relay stays away.
    pub async fn list(&self) -> Result<Vec<ListedLink>, LinkError> {
        self.ask(|answered| Command::List { answered }).await
    }

    /// Other tools and, where given, another briefing. While the relay is away they are told to it when it is back.
    ///
    /// # Errors
    /// Where no relay would take them, or this one does not.
    pub async fn update_tools(
        &self,
        tools: Vec<ToolSpec>,
        briefing: Option<String>,
    ) -> Result<(), LinkError> {
        self.ask(|answered| Command::Update {
            tools,
            briefing,
            answered,
        })
        .await
    }

    /// Answers a call. An answer to a call of an older connection is dropped: its agent has been told already.
    ///
    /// # Errors
    /// Where it does not fit into a frame, and is not sent; or where the queue is full.
    pub fn reply(&self, reply: &Reply) -> Result<(), LinkError> {
        let frame = frames::tool_reply(
            &reply.id.id,
            reply.status,
            &reply.body,
            reply.task_id.as_deref(),
        )?;
        let command = Command::Reply {
            epoch: reply.id.epoch,
            frame,
        };
        self.commands
            .try_send(command)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => LinkError::Busy,
                mpsc::error::TrySendError::Closed(_) => LinkError::Ended,
            })
    }

    /// Ends an asynchronous call. The answer is kept and sent again after every reconnect.
    ///
    /// # Errors
    /// Where the relay would drop it without a word.
    pub fn complete_task(&self, answer: &TaskAnswer) -> Result<(), LinkError> {
        answer.check()?;
        let frame = frames::task_complete(answer)?;
        self.kept.add(&answer.task_id, frame);
        Ok(())
    }

    /// Whether the link is up, since when, and how often it came back.
    #[must_use]
    pub fn status(&self) -> LinkStatus {
        self.status.borrow().clone()
    }

    /// Ends the session, so that all its links die, and joins the task.
    pub async fn close(&self) {
        self.closing.cancel();
        if timeout(limits::LINK_CLOSE, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("the relay did not let go in time");
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }

    async fn ask<T>(&self, command: impl FnOnce(Answered<T>) -> Command) -> Result<T, LinkError> {
        let (answered, answer) = oneshot::channel();
        let asked = async {
            self.commands
                .send(command(answered))
                .await
                .map_err(|_| LinkError::Ended)?;
            answer.await.map_err(|_| LinkError::Ended)?
        };
        timeout(self.patience, asked)
            .await
            .unwrap_or(Err(LinkError::Away))
    }
}
