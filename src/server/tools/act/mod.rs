//! `POST /act`: a list of actions on a page, each with a line on what came of it; `GET /actions` remembers them.

mod aftermath;
mod arguments;
mod fields;
mod log;
mod perform;
mod picked;
mod target;
mod waits;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

pub(super) use self::arguments::NAMES;
pub(in crate::server) use self::log::ActionLog;
pub(in crate::server) use self::picked::Picked;
pub(super) use self::target::missed;

use self::arguments::{Plan, Step};
use super::eval::{hung, timed_out};
use crate::browser::fold::Events;
use crate::browser::page::PageError;
use crate::server::answer::{Answer, Code, Refused};
use crate::server::pages::Opened;
use crate::server::session::{Outcome, Session};

/// What is said of one action.
type Line = Map<String, Value>;

/// The hand that does a list of actions: one a page at a time.
struct Hand<'a> {
    session: &'a Session,
    opened: &'a Opened,
    deadline: Instant,
    /// The address after the last action, so that a new one is news.
    url: String,
}

/// Parses a call and does nothing.
#[cfg(test)]
pub(super) fn check(
    uploads: &crate::proxy::uploads::UploadStore,
    body: &str,
) -> Result<(), Refused> {
    Plan::parse(uploads, body).map(drop)
}

/// Does the actions in their order, up to the first that fails.
pub(super) async fn post(session: &Session, body: &str) -> Outcome {
    let plan = Plan::parse(&session.kit.uploads, body)?;
    let opened = session.pages.alive(&plan.page)?;
    let deadline = Instant::now() + plan.within;
    let Ok(_turn) = timeout_at(deadline, opened.hand.lock()).await else {
        return Err(Refused::new(
            Code::TimedOut,
            "another list of actions was still at work on this page",
            "wait for your other call, then try again",
        ));
    };
    let mut hand = Hand {
        session,
        opened: &opened,
        deadline,
        url: String::new(),
    };
    hand.url = match opened.page.address(deadline).await {
        Ok(url) => url,
        Err(error) => return Err(hand.failed(error).await),
    };
    let mut done = Vec::new();
    for (index, step) in plan.steps.iter().enumerate() {
        match hand.step(step).await {
            Ok(line) => {
                session.actions.add(&plan.page, &step.fields, &line);
                done.push(line);
            }
            Err(refused) => {
                let failed = json!({ "error": refused.code, "message": refused.message });
                session.actions.add(&plan.page, &step.fields, &failed);
                return Err(stopped(refused, index, done, &plan.steps));
            }
        }
    }
    Ok(Answer::Json(json!({ "page": plan.page, "done": done })))
}

/// The refusal of an action, with what was done before it and what is left.
fn stopped(refused: Refused, index: usize, done: Vec<Value>, steps: &[Step]) -> Refused {
    let left: Vec<&str> = steps[index + 1..].iter().map(|step| step.name).collect();
    refused
        .with("action", index)
        .with("done", done)
        .with("left", left)
}

impl Hand<'_> {
    /// One action and its line.
    async fn step(&mut self, step: &Step) -> Result<Value, Refused> {
        if Instant::now() >= self.deadline {
            return Err(Refused::new(
                Code::TimedOut,
                "the time of the call was over before this action",
                "send what is left in another call, or raise `timeout_ms`",
            ));
        }
        let began = Instant::now();
        let loader = self.opened.page.observed.document().loader;
        let mut line = Line::new();
        line.insert("action".to_owned(), step.name.into());
        let felt = self.perform(&step.action, &mut line).await;
        let after = match felt {
            Ok(proof) => self.aftermath(&loader, proof, &mut line).await,
            Err(refused) => Err(refused),
        };
        if let Err(refused) = after {
            let mut since = Line::new();
            aftermath::events(&self.opened.page.observed.take_events(), &mut since);
            return Err(if since.is_empty() {
                refused
            } else {
                refused.with("since", Value::Object(since))
            });
        }
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        line.insert("ms".to_owned(), ms.into());
        Ok(Value::Object(line))
    }

    /// The refusal for what went wrong on the page; a page that hangs is killed.
    async fn failed(&self, error: PageError) -> Refused {
        match error {
            PageError::Timeout if !self.opened.page.is_responsive().await => {
                hung(self.session, self.opened).await
            }
            error => self.session.pages.refused(&self.opened.id, error),
        }
    }

    /// As [`failed`](Self::failed), for a script that was stopped.
    async fn overdue(&self, within: std::time::Duration) -> Refused {
        timed_out(self.session, self.opened, within).await
    }
}

/// Whether anything is in it that an agent should know.
fn is_empty(events: &Events) -> bool {
    events.dialogs.count + events.popups.count + events.downloads.count == 0
}
