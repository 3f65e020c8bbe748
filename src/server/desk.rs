//! What the owner can ask of a session, and the session's whole life behind it: started, served, ended.
//!
//! This is the one way in for the owner's side, whether it lives in the same process (development) or in another one
//! (installed): questions go in with a place for their answer, events come out.

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::audit::{Audit, Record};
use super::event::Event;
use super::session::Server;
use super::status::Status;
use super::{ServerConfig, StartError};
use crate::policy::approval::Decision;
use crate::policy::limits::SHUTDOWN;
use crate::relay::link::{Link, LinkError};

/// Something the owner wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Yes to a request.
    Allow {
        /// The request.
        number: u32,
    },
    /// No to a request.
    Deny {
        /// The request.
        number: u32,
        /// What the agent is told beside it.
        note: Option<String>,
    },
    /// The hosts that pages may reach.
    Hosts,
    /// Another link.
    Link {
        /// What to call it.
        label: String,
    },
    /// The live links.
    Links,
    /// Kill a link.
    Revoke {
        /// The link.
        link: String,
    },
    /// The open pages.
    Pages,
    /// The session's parts.
    Status,
    /// End the session.
    Stop {
        /// In the owner's words.
        reason: String,
    },
}

/// What a question came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// A request is answered.
    Answered {
        /// The hosts that it was about.
        hosts: Vec<String>,
    },
    /// The rules of the allowlist.
    Hosts {
        /// As text.
        allowed: Vec<String>,
    },
    /// A link was made.
    Made(LiveLink),
    /// The live links.
    Links {
        /// Oldest first.
        links: Vec<LiveLink>,
    },
    /// A link is dead.
    Revoked {
        /// Whether it lived before.
        was_live: bool,
    },
    /// The open pages.
    Pages {
        /// Oldest first.
        pages: Vec<OpenPage>,
    },
    /// The session's parts.
    Status(Box<Status>),
    /// The session will end.
    Stopping,
    /// It was not done.
    No {
        /// Why, and what to do.
        reason: String,
    },
}

/// A link that works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveLink {
    /// The link.
    pub link: String,
    /// What the owner calls it.
    pub label: String,
}

/// A page that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPage {
    /// Its name.
    pub page: String,
    /// What it shows.
    pub url: String,
}

/// A question and the place for its answer.
pub type Asked = (Ask, oneshot::Sender<Reply>);

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// In plain words.
    pub reason: String,
    /// Whether it was meant to: the owner's wish, or its time.
    pub in_order: bool,
}

impl Ending {
    pub(super) fn wanted(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            in_order: true,
        }
    }

    /// It ended before its time.
    pub(super) fn early(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            in_order: false,
        }
    }
}

/// Runs a session to its end. It ends when it is asked to, when its time is over, when it cannot go on, or when nobody can ask
/// any more.
///
/// # Errors
/// Where no session came about.
pub async fn run(
    config: ServerConfig,
    mut asks: mpsc::Receiver<Asked>,
    events: mpsc::Sender<Event>,
) -> Result<Ending, StartError> {
    let stopped = CancellationToken::new();
    let mut starting = Box::pin(Server::start(config, events, &stopped));
    let mut server = loop {
        tokio::select! {
            biased;
            asked = asks.recv() => if let Some(ending) = not_yet(asked) {
                stopped.cancel();
                if let Ok(Ok(server)) = timeout(SHUTDOWN, starting).await {
                    server.end(&ending.reason).await;
                }
                return Ok(ending);
            },
            started = &mut starting => break started?,
        }
    };
    let ending = serve(&mut server, &mut asks).await;
    server.end(&ending.reason).await;
    Ok(ending)
}

/// Before the session is there, it can only be stopped.
fn not_yet(asked: Option<Asked>) -> Option<Ending> {
    match asked {
        None => Some(Ending::wanted("the owner's side is gone")),
        Some((Ask::Stop { reason }, answer)) => {
            let _ = answer.send(Reply::Stopping);
            Some(Ending::wanted(reason))
        }
        Some((_, answer)) => {
            let _ = answer.send(no("the session is still being started"));
            None
        }
    }
}

async fn serve(server: &mut Server, asks: &mut mpsc::Receiver<Asked>) -> Ending {
    // What asks the relay may take long. The owner's questions are bounded, and so is this.
    let mut waiting = JoinSet::new();
    loop {
        let asked = tokio::select! {
            ending = server.over() => return ending,
            Some(_) = waiting.join_next() => continue,
            asked = asks.recv() => asked,
        };
        let Some((ask, answer)) = asked else {
            return Ending::wanted("the owner's side is gone");
        };
        let (link, audit) = (server.link().clone(), server.audit());
        let reply = match ask {
            Ask::Allow { number } => decide(server, number, Decision::Allowed, None),
            Ask::Deny { number, note } => decide(server, number, Decision::Denied, note),
            Ask::Pages => Reply::Pages {
                pages: server.pages(),
            },
            Ask::Hosts => Reply::Hosts {
                allowed: server.hosts(),
            },
            Ask::Status => Reply::Status(Box::new(server.status())),
            Ask::Link { label } => {
                waiting.spawn(async move { give(answer, made(&link, &label, &audit).await) });
                continue;
            }
            Ask::Links => {
                waiting.spawn(async move { give(answer, links(&link).await) });
                continue;
            }
            Ask::Revoke { link: dead } => {
                waiting.spawn(async move { give(answer, revoke(&link, &dead, &audit).await) });
                continue;
            }
            Ask::Stop { reason } => {
                let _ = answer.send(Reply::Stopping);
                return Ending::wanted(reason);
            }
        };
        let _ = answer.send(reply);
    }
}

fn decide(server: &Server, number: u32, decision: Decision, note: Option<String>) -> Reply {
    match server.answer(number, decision, note) {
        Ok(hosts) => Reply::Answered { hosts },
        Err(error) => no(error.to_string()),
    }
}

/// Whoever asked may be gone.
fn give(answer: oneshot::Sender<Reply>, done: Result<Reply, LinkError>) {
    let _ = answer.send(done.unwrap_or_else(|error| no(error.to_string())));
}

async fn made(link: &Link, label: &str, audit: &Audit) -> Result<Reply, LinkError> {
    let made = link.mint(label).await?;
    audit.write(Record::Link {
        label: made.label.clone(),
        reason: "asked for by the owner".to_owned(),
    });
    Ok(Reply::Made(LiveLink {
        link: made.link,
        label: made.label,
    }))
}

async fn links(link: &Link) -> Result<Reply, LinkError> {
    let listed = link.list().await?.into_iter();
    let links = listed
        .map(|live| LiveLink {
            link: live.minted.link,
            label: live.minted.label,
        })
        .collect();
    Ok(Reply::Links { links })
}

async fn revoke(link: &Link, dead: &str, audit: &Audit) -> Result<Reply, LinkError> {
    let listed = link.list().await?;
    let was_live = match listed.into_iter().find(|live| live.minted.link == dead) {
        Some(live) => {
            let was_live = link.revoke(&live.minted.token).await?;
            audit.write(Record::Link {
                label: live.minted.label,
                reason: "revoked by the owner".to_owned(),
            });
            was_live
        }
        None => false,
    };
    Ok(Reply::Revoked { was_live })
}

fn no(reason: impl Into<String>) -> Reply {
    Reply::No {
        reason: reason.into(),
    }
}
