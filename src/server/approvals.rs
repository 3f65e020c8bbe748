//! Requests for more hosts, between the agent's call, the owner's word and the allowlist.
//!
//! A question is told to the owner only after its call was answered with the task to poll: a relay drops the end of a task
//! that it does not know. The one sender of the allowlist lives here, and only an answer of the owner's reaches it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::herald::Herald;
use crate::policy::allowlist::{Allowlist, Rule};
use crate::policy::approval::{
    AnswerError, AskRefusal, Asked, Decision, Plea, Request, Settled, State,
};
use crate::policy::{approval, limits};
use crate::relay::frames::{Body, TaskAnswer};
use crate::relay::link::Link;

/// The requests of a session.
pub(super) struct Approvals {
    table: Mutex<Table>,
    allow: watch::Sender<Arc<Allowlist>>,
    link: Link,
    herald: Herald,
    began: Instant,
    changed: Notify,
}

#[derive(Default)]
struct Table {
    requests: approval::Approvals,
    /// New questions whose calls are still being answered.
    unannounced: Vec<u32>,
}

/// A question that was taken.
pub(super) enum Taken {
    /// The owner is, or was, asked; poll this.
    Task(String),
    /// All of it is allowed already.
    Allowed,
}

impl Approvals {
    pub(super) fn new(allow: watch::Sender<Arc<Allowlist>>, link: Link, herald: Herald) -> Self {
        Self {
            table: Mutex::default(),
            allow,
            link,
            herald,
            began: Instant::now(),
            changed: Notify::new(),
        }
    }

    /// Takes an agent's question.
    pub(super) fn ask(
        &self,
        hosts: Vec<Rule>,
        reason: String,
        page: Option<String>,
    ) -> Result<Taken, AskRefusal> {
        let task = task_id();
        let plea = Plea {
            hosts,
            reason,
            page,
            task: task.clone(),
        };
        let mut table = self.table();
        let allow = Arc::clone(&self.allow.borrow());
        let asked = table.requests.ask(plea, &allow, self.began.elapsed())?;
        if let Asked::New(number) = asked {
            table.unannounced.push(number);
        }
        drop(table);
        self.changed.notify_one();
        Ok(match asked {
            Asked::New(_) | Asked::Joined(_) => Taken::Task(task),
            Asked::Allowed => Taken::Allowed,
        })
    }

    /// Tells the owner of new questions, now that their calls are answered.
    pub(super) fn announce(&self) {
        let mut table = self.table();
        let numbers = std::mem::take(&mut table.unannounced);
        for request in table
            .requests
            .waiting()
            .filter(|request| numbers.contains(&request.number))
        {
            self.herald.tell(Event::Request {
                number: request.number,
                hosts: names(request),
                reason: request.reason.clone(),
                page: request.page.clone(),
            });
        }
    }

    /// The owner's word: the allowlist first, then everybody who waits.
    pub(super) fn answer(
        &self,
        number: u32,
        decision: Decision,
        note: Option<String>,
    ) -> Result<Request, AnswerError> {
        let mut table = self.table();
        if table.unannounced.contains(&number) {
            return Err(AnswerError::NotYet(number));
        }
        let settled = table.requests.answer(number, decision, note)?;
        if decision == Decision::Allowed {
            self.allow.send_modify(|allow| {
                let wider = settled
                    .request
                    .hosts
                    .iter()
                    .fold(Allowlist::clone(allow), |list, rule| {
                        list.with(rule.clone())
                    });
                *allow = Arc::new(wider);
            });
        }
        drop(table);
        self.settle(&settled);
        Ok(settled.request)
    }

    /// The questions that wait, for an owner who has just come.
    pub(super) fn waiting(&self) -> usize {
        self.table().requests.waiting().count()
    }

    /// What was asked and answered, newest first.
    pub(super) fn list(&self) -> Value {
        let table = self.table();
        let all: Vec<&Request> = table.requests.all().collect();
        let shown: Vec<Value> = all
            .iter()
            .rev()
            .take(limits::INFO_LIST)
            .map(|request| listed(request))
            .collect();
        json!({ "requests": shown, "count": all.len(), "waiting": table.requests.waiting().count() })
    }

    /// Ends questions that nobody answers, until the session closes; then all of them.
    pub(super) async fn keep(self: Arc<Self>, closing: CancellationToken) {
        loop {
            let next = self.table().requests.next_expiry();
            let expiry = async {
                match next {
                    Some(at) => sleep_until(self.began + at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.changed.notified() => {}
                () = expiry => {
                    let ended = self.table().requests.expire(self.began.elapsed());
                    ended.iter().for_each(|settled| self.settle(settled));
                }
            }
        }
    }

    /// Ends all that wait: nobody can answer any more.
    pub(super) fn close(&self) {
        let ended = self.table().requests.expire_all();
        ended.iter().for_each(|settled| self.settle(settled));
    }

    fn settle(&self, settled: &Settled) {
        let State::Ended { decision, note } = &settled.request.state else {
            return;
        };
        let hosts = names(&settled.request);
        let mut body = json!({ "decision": decision.as_str(), "hosts": hosts });
        if let Some(note) = note {
            body["note"] = note.as_str().into();
        }
        for task in &settled.tasks {
            let answer = TaskAnswer {
                task_id: task.clone(),
                status: 200,
                body: Body::Json(body.clone()),
            };
            if let Err(error) = self.link.complete_task(&answer) {
                tracing::error!(%error, "the answer to a request could not be given");
            }
        }
        self.herald.tell(Event::Answered {
            number: settled.request.number,
            decision: decision.as_str().to_owned(),
            hosts,
            note: note.clone(),
        });
        self.changed.notify_one();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names(request: &Request) -> Vec<String> {
    request.hosts.iter().map(ToString::to_string).collect()
}

fn listed(request: &Request) -> Value {
    let (decision, note) = match &request.state {
        State::Waiting => ("waiting", None),
        State::Ended { decision, note } => (decision.as_str(), note.as_deref()),
    };
    let mut line = json!({ "number": request.number, "decision": decision, "hosts": names(request), "reason": request.reason });
    if let Some(page) = &request.page {
        line["page"] = page.as_str().into();
    }
    if let Some(note) = note {
        line["note"] = note.into();
    }
    line
}

/// A name that nobody guesses: whoever polls it first takes the answer.
fn task_id() -> String {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes)
        .unwrap_or_else(|error| panic!("the kernel gives no random bytes: {error}"));
    bytes.iter().fold("request-".to_owned(), |text, byte| {
        text + &format!("{byte:02x}")
    })
}
