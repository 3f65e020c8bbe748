//! From a call to a reply that fits a frame: the one place that turns answers into frames.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Code, Refused};
use super::event::{Event, RelayState};
use super::herald::Herald;
use super::session::{Outcome, Session};
use super::tools;
use crate::policy::limits::CALL_DEADLINE;
use crate::relay::frames::Body;
use crate::relay::link::{Call, Link, LinkError, LinkEvent, Reply};

/// Takes calls from the link and answers them.
pub(super) struct Router {
    pub(super) session: Arc<Session>,
    pub(super) link: Link,
    pub(super) herald: Herald,
}

impl Router {
    /// Runs until the link or the session ends; calls in flight are given up then.
    pub(super) async fn run(
        self,
        mut calls: mpsc::Receiver<LinkEvent>,
        over: mpsc::Sender<String>,
        closing: CancellationToken,
    ) {
        let router = Arc::new(self);
        // The relay lets at most 100 calls be in flight, so this set is bounded.
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                () = closing.cancelled() => break,
                Some(_) = running.join_next() => {}
                event = calls.recv() => match event {
                    Some(LinkEvent::Call(call)) => drop(running.spawn(Arc::clone(&router).answer(call))),
                    Some(LinkEvent::Ended(ending)) => {
                        let _ = over.try_send(format!("{ending}; {}", ending.fix()));
                        closing.cancelled().await;
                        break;
                    }
                    Some(event) => router.pass_on(event),
                    None => {
                        closing.cancelled().await;
                        break;
                    }
                },
            }
        }
        running.shutdown().await;
    }

    fn pass_on(&self, event: LinkEvent) {
        let tell = |event| self.herald.tell(event);
        match event {
            LinkEvent::Up { resumed: true, .. } => tell(Event::Relay {
                state: RelayState::Back,
                reason: None,
            }),
            LinkEvent::Away { reason, .. } => {
                tell(Event::Relay {
                    state: RelayState::Away,
                    reason: Some(format!("{reason}. {}", reason.fix())),
                });
            }
            LinkEvent::Replaced { links } => {
                for replaced in links {
                    let reason = format!("the relay lost the session; {} is dead", replaced.old);
                    let link = replaced.new.unwrap_or_default();
                    tell(Event::Link {
                        link,
                        label: replaced.label,
                        reason,
                    });
                }
            }
            LinkEvent::Up { resumed: false, .. } | LinkEvent::Call(_) | LinkEvent::Ended(_) => {}
        }
    }

    async fn answer(self: Arc<Self>, call: Call) {
        let began = Instant::now();
        self.session.last_call.came();
        let work = tools::call(&self.session, &call.method, &call.path, &call.body);
        let outcome = match timeout(CALL_DEADLINE, AssertUnwindSafe(work).catch_unwind()).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(broken()),
            Err(_) => Err(Refused::new(
                Code::TimedOut,
                "the call took too long",
                "do less in one call",
            )),
        };
        let mut reply = frame(&call, outcome);
        if let Err(LinkError::TooLarge { .. }) = self.link.reply(&reply) {
            let refused = Refused::new(
                Code::BadArguments,
                "the reply does not fit one frame",
                "ask for less in one call",
            );
            reply = frame(&call, Err(refused));
            let _ = self.link.reply(&reply);
        }
        if reply.task_id.is_some() {
            self.session.approvals.announce();
        }
        let page = serde_json::from_str::<Value>(&call.body)
            .ok()
            .and_then(|body| Some(body["page"].as_str()?.to_owned()));
        self.herald.tell(Event::Call {
            tool: format!("{} {}", call.method, call.path),
            page,
            status: reply.status,
            ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    }
}

fn broken() -> Refused {
    Refused::new(
        Code::Internal,
        "something of the daemon's broke",
        "try once more, then tell the person whose machine it is",
    )
}

fn frame(call: &Call, outcome: Outcome) -> Reply {
    let id = call.id.clone();
    match outcome {
        Ok(Answer::Json(value)) => Reply {
            id,
            status: 200,
            body: Body::Json(value),
            task_id: None,
        },
        Ok(Answer::Text(text)) => {
            let content_type = "text/plain; charset=utf-8".to_owned();
            Reply {
                id,
                status: 200,
                body: Body::Text { content_type, text },
                task_id: None,
            }
        }
        Ok(Answer::Accepted { task }) => Reply {
            id,
            status: 202,
            body: Body::None,
            task_id: Some(task),
        },
        Err(refused) => Reply {
            id,
            status: refused.status,
            body: Body::Json(refused.body()),
            task_id: None,
        },
    }
}
