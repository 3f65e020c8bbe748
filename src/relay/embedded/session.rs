//! A session: one app's registration, links, calls and tasks, and whether the app is there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::app::{App, Rejected};
use super::calls::{Calls, Outcome, ToolCall};
use super::denied::Denied;
use super::socket::{Farewell, ToApp};
use super::tasks::{Polled, Tasks};
use crate::policy::limits;
use crate::relay::frames::body::{Answer, is_task_id};
use crate::relay::frames::relay as frames;
use crate::relay::tokens::{AgentToken, ResumeSecret, SessionId};
use crate::relay::units::cut;
use crate::relay::wire;

/// One app's session. Its lock is held for moments only, never while waiting for anything.
pub(super) struct Session {
    pub(super) id: SessionId,
    secret: ResumeSecret,
    state: Mutex<State>,
}

struct State {
    app: App,
    links: Vec<Minted>,
    calls: Calls,
    tasks: Tasks,
    line: Line,
    /// Counts attachments, so that the end of an old socket does not detach a newer one.
    attachment: u64,
}

/// Whether the app is there.
enum Line {
    Live {
        outbox: mpsc::Sender<ToApp>,
        dismiss: oneshot::Sender<Farewell>,
    },
    Held {
        since: Instant,
    },
    Ended,
}

struct Minted {
    token: AgentToken,
    label: String,
    at: SystemTime,
}

/// What a socket holds while it is its session's app.
pub(super) struct Attached {
    number: u64,
    /// Comes when another socket took the session over or ended it.
    pub(super) dismissed: oneshot::Receiver<Farewell>,
}

/// A call as an agent made it.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Bytes,
    pub(super) headers: std::collections::BTreeMap<String, String>,
}

impl Session {
    /// A session whose app is about to be attached.
    pub(super) fn new(app: App, tool_timeout: Duration) -> Result<Self, getrandom::Error> {
        // The prefix of the calls' ids needs no more randomness than a session id has.
        let calls = Calls::new(SessionId::random()?.to_string(), tool_timeout);
        Ok(Self {
            id: SessionId::random()?,
            secret: ResumeSecret::random()?,
            state: Mutex::new(State {
                app,
                links: Vec::new(),
                calls,
                tasks: Tasks::default(),
                line: Line::Held {
                    since: Instant::now(),
                },
                attachment: 0,
            }),
        })
    }

    /// Whether `claimed` resumes or ends this session; in constant time.
    pub(super) fn is_secret(&self, claimed: &str) -> bool {
        self.secret.matches(claimed)
    }

    /// Puts an app on the line. Its `register_reply` goes out first; an older socket is dismissed and its calls fail.
    pub(super) fn attach(&self, outbox: &mpsc::Sender<ToApp>, resumed: bool) -> Attached {
        let (dismiss, dismissed) = oneshot::channel();
        let mut state = self.state();
        state.attachment += 1;
        let reply = frames::registered(self.id.as_str(), self.secret.expose(), resumed);
        // The queue of a new socket has room, unless its app flooded it with pings; then the app is not reading.
        let _ = outbox.try_send(ToApp::Text(reply.into()));
        let line = Line::Live {
            outbox: outbox.clone(),
            dismiss,
        };
        if let Line::Live { dismiss, .. } = std::mem::replace(&mut state.line, line) {
            let _ = dismiss.send(Farewell::REPLACED);
        }
        state.calls.fail_all(Some(Duration::ZERO));
        Attached {
            number: state.attachment,
            dismissed,
        }
    }

    /// A resume's new registration, and the links that die before the app goes live.
    pub(super) fn reregister(&self, app: App, revoked: &[String]) {
        let mut state = self.state();
        state.app = app;
        for token in revoked.iter().take(limits::LIVE_TOKENS) {
            state.revoke(token);
        }
    }

    /// The app is gone, but may come back.
    pub(super) fn hold(&self, attached: &Attached) {
        let mut state = self.state();
        if state.attachment == attached.number && matches!(state.line, Line::Live { .. }) {
            state.line = Line::Held {
                since: Instant::now(),
            };
            state.calls.fail_all(Some(Duration::ZERO));
        }
    }

    /// Whether this socket is still the session's app.
    pub(super) fn is_attached(&self, attached: &Attached) -> bool {
        self.state().attachment == attached.number
    }

    /// The session is over: no link of it works any more.
    pub(super) fn end(&self) {
        let mut state = self.state();
        if let Line::Live { dismiss, .. } = std::mem::replace(&mut state.line, Line::Ended) {
            let _ = dismiss.send(Farewell::DONE);
        }
        state.calls.fail_all(None);
        state.links.clear();
    }

    /// How long the app has been away; `None` where it is there.
    pub(super) fn away(&self) -> Option<Duration> {
        match self.state().line {
            Line::Held { since } => Some(since.elapsed()),
            Line::Live { .. } | Line::Ended => None,
        }
    }

    /// Lets an agent in.
    pub(super) fn admit(&self, token: &AgentToken) -> Result<(), Denied> {
        let state = self.state();
        if matches!(state.line, Line::Ended) {
            return Err(Denied::Offline(None));
        }
        let is_live = state.links.iter().any(|link| link.token == *token);
        is_live.then_some(()).ok_or(Denied::TokenInvalid)
    }

    /// `agents.md`.
    pub(super) fn briefing(&self) -> Bytes {
        self.state().app.briefing.clone()
    }

    /// `tools.json`.
    pub(super) fn tools_json(&self) -> Bytes {
        self.state().app.tools_json.clone()
    }

    /// The state of a task.
    pub(super) fn poll(&self, task: &str) -> Polled {
        self.state().tasks.poll(task)
    }

    /// Sends a call to the app. The order of the refusals is the protocol's.
    pub(super) fn call(&self, asked: Asked) -> Result<oneshot::Receiver<Outcome>, Denied> {
        let mut guard = self.state();
        let state = &mut *guard;
        let outbox = match &state.line {
            Line::Live { outbox, .. } => outbox,
            Line::Held { since } => return Err(Denied::Offline(Some(since.elapsed()))),
            Line::Ended => return Err(Denied::Offline(None)),
        };
        if state.calls.is_full() {
            return Err(Denied::TooManyInflight);
        }
        if !state.app.has(&asked.method, &asked.path) {
            return Err(Denied::NotFound("no tool with this method and path"));
        }
        let place = outbox.try_reserve().map_err(|error| match error {
            // The app does not read: calls that timed out still wait for it.
            TrySendError::Full(()) => Denied::TooManyInflight,
            // Its connection has just broken, and its socket is about to notice.
            TrySendError::Closed(()) => Denied::Offline(Some(Duration::ZERO)),
        })?;
        let (id, outcome) = state.calls.begin();
        let Asked {
            method,
            path,
            body,
            headers,
        } = asked;
        place.send(ToApp::Call(ToolCall {
            id,
            method,
            path,
            body,
            headers,
        }));
        Ok(outcome)
    }

    /// The app's reply to a call; an unknown, late or repeated id changes nothing.
    pub(super) fn reply(&self, id: &str, answer: Answer, task_id: Option<&RawValue>) {
        let mut state = self.state();
        if let Some(reply) = state.calls.take(id) {
            // The agent may have hung up, which is its own affair.
            let _ = reply.send(outcome(&mut state.tasks, answer, task_id));
        }
    }

    /// The answer of a task.
    pub(super) fn complete(&self, task: &str, answer: Answer) {
        self.state().tasks.complete(task, answer);
    }

    /// A new link's token and label; `None` where there are too many.
    pub(super) fn mint(&self, label: &str) -> Result<Option<(String, String)>, getrandom::Error> {
        let mut state = self.state();
        if state.links.len() >= limits::LIVE_TOKENS {
            return Ok(None);
        }
        let token = AgentToken::random(self.id)?;
        let label = cut(label, limits::LABEL_UNITS).to_owned();
        state.links.push(Minted {
            token,
            label: label.clone(),
            at: SystemTime::now(),
        });
        Ok(Some((token.to_string(), label)))
    }

    /// Kills a link; `false` where it was not live.
    pub(super) fn revoke(&self, token: &str) -> bool {
        self.state().revoke(token)
    }

    /// The reply that lists all links.
    pub(super) fn list(&self, id: Option<&RawValue>) -> String {
        let state = self.state();
        let links = state.links.iter();
        frames::listed(
            id,
            links.map(|link| {
                (
                    link.token.to_string(),
                    link.label.as_str(),
                    milliseconds(link.at),
                )
            }),
        )
    }

    /// Other tools, and perhaps another briefing.
    pub(super) fn update(
        &self,
        tools: Option<&RawValue>,
        briefing: Option<&RawValue>,
    ) -> Result<(), Rejected> {
        self.state().app.update(tools, briefing)
    }

    /// No code panics while it holds the lock; were it so, the state would still be whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn revoke(&mut self, token: &str) -> bool {
        let Some(token) = AgentToken::parse(token) else {
            return false;
        };
        let before = self.links.len();
        self.links.retain(|link| link.token != token);
        self.links.len() < before
    }
}

/// Only 202 with a task id begins a task; an id that is empty, absent or false is none.
fn outcome(tasks: &mut Tasks, answer: Answer, task_id: Option<&RawValue>) -> Outcome {
    let task_id = task_id.filter(|raw| !matches!(raw.get(), "null" | "false" | "\"\""));
    let Some(raw) = task_id.filter(|_| answer.status == Some(202)) else {
        return Outcome::Answer(answer);
    };
    match wire::string(raw).filter(|id| is_task_id(id)) {
        None => Outcome::Denied(Denied::BadReply(
            "the app's task id is not [A-Za-z0-9_-]{1,64}",
        )),
        Some(id) if tasks.begin(&id) => Outcome::Task(id.into_owned()),
        Some(_) => Outcome::Denied(Denied::TooManyTasks),
    }
}

fn milliseconds(at: SystemTime) -> u64 {
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
