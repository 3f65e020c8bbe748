//! What is known of a page: its events, folded as they come into a state of bounded size.
//!
//! The fold runs on the wire's reader task, so nothing here waits; what must be answered at once (a dialog stops the
//! page's scripts, a new frame waits to be let run) is answered from here.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::activity::Activity;
use super::command::{EnableLog, EnableNetwork, EnableRuntime, HandleDialog, RunIfWaiting};
use super::fold::{ClosedDialog, Document, Events, Fold, Life, short, text};
use super::journal::Journal;
use super::pipe::{Connection, Sink};
use super::wire::{Payload, WireError};
use crate::policy::limits::{BODIES, BODY, CONSOLE_EVENT};

/// Workers of a page that are remembered; what is said by more of them is told twice.
const WORKERS: usize = 256;

/// The folded state of one page.
pub struct Observed {
    connection: Connection,
    fold: Mutex<Fold>,
    journal: Mutex<Journal>,
    /// Workers that speak for themselves, so that what the page repeats of them is not told twice.
    workers: Mutex<HashSet<String>>,
    /// What it is busy with.
    pub activity: Activity,
    changed: watch::Sender<()>,
}

impl Observed {
    /// A page of which nothing is known yet.
    pub fn new(connection: Connection) -> Arc<Self> {
        Arc::new(Self {
            connection,
            fold: Mutex::default(),
            journal: Mutex::default(),
            workers: Mutex::default(),
            activity: Activity::default(),
            changed: watch::Sender::new(()),
        })
    }

    /// What the page did since the last call, which takes it.
    pub fn take_events(&self) -> Events {
        std::mem::take(&mut self.fold().events)
    }

    /// What the page said and asked for.
    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what a page said and asked for before it was the agent's.
    pub fn forget_events(&self) {
        self.take_events();
        *self.journal() = Journal::default();
    }

    /// Whether the page is there.
    pub fn life(&self) -> Life {
        self.fold().life
    }

    /// A crashed renderer is replaced by the next navigation.
    pub fn revive(&self) {
        let mut fold = self.fold();
        if fold.life == Life::Crashed {
            fold.life = Life::Alive;
        }
    }

    /// The document that is shown.
    pub fn document(&self) -> Document {
        self.fold().document.clone()
    }

    /// A popup was opened and is closed.
    pub fn popup(&self, url: &str) {
        self.fold().events.popups.add(|| short(url));
    }

    /// A download was begun in a frame and is refused.
    pub fn download_of(&self, frame: &str, url: &str) {
        let mut fold = self.fold();
        if fold.frames.contains(frame) {
            fold.events.downloads.add(|| short(url));
        }
    }

    /// Waits until a document, or one that came after it, has had a lifecycle event; or until the page is lost.
    pub async fn reached(&self, loader: &str, event: &str) {
        let there = |fold: &Fold| {
            let come = fold.document.loader == loader
                || fold.earlier.iter().any(|earlier| earlier == loader);
            fold.life != Life::Alive || (come && fold.document.reached.contains(event))
        };
        self.until(there).await;
    }

    /// Waits until a navigation that the page has asked for has come to its document, or to nothing.
    pub async fn navigated(&self) {
        self.until(|fold| fold.life != Life::Alive || self.activity.navigation().is_none())
            .await;
    }

    /// Waits until Chromium has told us of a drag.
    pub(super) async fn drag_begun(&self) {
        self.until(|fold| fold.life != Life::Alive || self.activity.has_drag())
            .await;
    }

    async fn until(&self, mut condition: impl FnMut(&Fold) -> bool) {
        let mut changed = self.changed.subscribe();
        while !condition(&self.fold()) {
            // The sender lives in `self`, so this cannot fail.
            let _ = changed.changed().await;
        }
    }

    fn fold(&self) -> MutexGuard<'_, Fold> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_life(&self, life: Life) {
        self.fold().life = life;
        self.changed.send_replace(());
    }

    /// A frame of another site or a worker: its events count as the page's.
    fn attached(self: &Arc<Self>, value: &Value) {
        let Some(session) = value["sessionId"].as_str() else {
            return;
        };
        let session: Arc<str> = session.into();
        let part = Part {
            observed: Arc::clone(self),
            session: Arc::clone(&session),
        };
        self.connection.listen(&session, Arc::new(part));
        self.speaks_for_itself(&value["targetInfo"]);
        self.connection.tell(Some(&session), &EnableRuntime {});
        self.connection.tell(Some(&session), &EnableLog {});
        self.connection.tell(Some(&session), &network());
        self.connection.tell(Some(&session), &RunIfWaiting {});
    }

    fn speaks_for_itself(&self, target: &Value) {
        let mut workers = self.workers();
        if workers.len() < WORKERS {
            workers.insert(text(&target["targetId"]));
        }
    }

    /// Whether the page only repeats what a worker has said in its own session.
    fn is_repeated(&self, entry: &Value) -> bool {
        let worker = entry["workerId"].as_str();
        worker.is_some_and(|worker| self.workers().contains(worker))
    }

    fn workers(&self) -> MutexGuard<'_, HashSet<String>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the page and its parts have in common.
    fn note(&self, method: &str, session: Option<&Arc<str>>, value: &Value, own: bool) {
        if method == "Log.entryAdded" && self.is_repeated(&value["entry"]) {
            return;
        }
        self.journal().fold(method, session, value);
        match method {
            "Network.responseReceived" => self.fold().response(value, own),
            _ => self.fold().fold(method, value),
        }
    }

    fn frame_navigated(&self, frame: &Value) {
        let before = self.document().loader;
        self.fold().navigated(frame);
        let now = self.document().loader;
        if now != before {
            self.journal().navigated(&now);
        }
    }

    fn dialog(&self, session: Option<&str>, value: &Value) {
        let kind = text(&value["type"]);
        let session = session.map(Arc::from);
        // A page that asks whether it may be left is left; every other question is answered with "cancel".
        self.connection.tell(
            session.as_ref(),
            &HandleDialog {
                accept: kind == "beforeunload",
            },
        );
        let message = short(value["message"].as_str().unwrap_or_default());
        self.fold()
            .events
            .dialogs
            .add(|| ClosedDialog { kind, message });
    }
}

/// The switch for events of requests; a few bodies are kept, in the page's own renderer.
pub fn network() -> EnableNetwork {
    EnableNetwork {
        max_total_buffer_size: BODIES,
        max_resource_buffer_size: BODY,
    }
}

/// The page's own session as a sink.
pub struct Main(pub Arc<Observed>);

/// A session of one of its frames or workers.
struct Part {
    observed: Arc<Observed>,
    session: Arc<str>,
}

impl Sink for Main {
    fn event(&self, method: &str, session: Option<&str>, payload: &Payload) {
        let observed = &self.0;
        if !is_wanted(method) {
            return;
        }
        let Ok(value) = read(method, payload) else {
            return;
        };
        observed.activity.event(method, &value);
        match method {
            "Page.frameNavigated" => observed.frame_navigated(&value["frame"]),
            "Page.lifecycleEvent" => observed.fold().lifecycle(session, &value),
            "Page.javascriptDialogOpening" => observed.dialog(session, &value),
            "Target.attachedToTarget" => observed.attached(&value),
            "Inspector.targetCrashed" => observed.set_life(Life::Crashed),
            _ => observed.note(method, None, &value, true),
        }
        observed.changed.send_replace(());
    }

    fn ended(&self, _session: &str) {
        self.0.set_life(Life::Closed);
    }
}

impl Sink for Part {
    fn event(&self, method: &str, _session: Option<&str>, payload: &Payload) {
        if !is_wanted(method) {
            return;
        }
        let Ok(value) = read(method, payload) else {
            return;
        };
        self.observed.activity.event(method, &value);
        match method {
            "Target.attachedToTarget" => self.observed.attached(&value),
            _ => (self.observed).note(method, Some(&self.session), &value, false),
        }
    }
}

/// An event's parameters, without what is too large or of no use: the work for one event is bounded.
fn read(method: &str, payload: &Payload) -> Result<Value, WireError> {
    match method {
        "Network.webSocketFrameSent" | "Network.webSocketFrameReceived" => {
            payload.value_without("response")
        }
        "Runtime.consoleAPICalled" if payload.size() > CONSOLE_EVENT => {
            let mut value = payload.value_without("args")?;
            let said = format!("(arguments of {} bytes, left out)", payload.size());
            value["args"] = json!([{ "value": said }]);
            Ok(value)
        }
        _ => payload.value(),
    }
}

/// Whether an event says anything to us; all others are dropped unparsed.
fn is_wanted(method: &str) -> bool {
    matches!(
        method,
        "Page.frameNavigated"
            | "Page.frameRequestedNavigation"
            | "Page.frameStoppedLoading"
            | "Page.navigatedWithinDocument"
            | "Input.dragIntercepted"
            | "Page.lifecycleEvent"
            | "Page.javascriptDialogOpening"
            | "Target.attachedToTarget"
            | "Inspector.targetCrashed"
            | "Network.requestWillBeSent"
            | "Network.responseReceived"
            | "Network.loadingFailed"
            | "Network.loadingFinished"
            | "Network.webSocketCreated"
            | "Network.webSocketHandshakeResponseReceived"
            | "Network.webSocketFrameSent"
            | "Network.webSocketFrameReceived"
            | "Network.webSocketFrameError"
            | "Network.webSocketClosed"
            | "Runtime.consoleAPICalled"
            | "Runtime.exceptionThrown"
            | "Log.entryAdded"
    )
}
