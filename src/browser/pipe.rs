//! The wire to Chromium: commands out, replies and events in, over one socket pair.
//!
//! One task reads and one writes. A reply goes to the command that waits for it; an event goes to the sink of its
//! session, which folds it into what it knows and must not block. What waits on a session that crashed, was detached or
//! died with the browser fails at once, with that reason.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::wire::{Codec, Message, Payload, WireError};
use crate::policy::limits::COMMAND;

/// Commands that may wait for the writer; more are refused.
const OUTGOING: usize = 1_024;
/// The reader's buffer: a picture fills it dozens of times, an event fits many times over.
const BUFFER: usize = 256 * 1024;

/// Why a command got no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The browser is gone.
    #[error("the browser is gone")]
    Closed,
    /// The page's renderer crashed or was killed.
    #[error("the page crashed")]
    Crashed,
    /// The session is no more: its page was closed.
    #[error("the page was closed")]
    Detached,
    /// No answer in time.
    #[error("{method} got no answer in {after:?}")]
    Timeout {
        /// The command.
        method: &'static str,
        /// How long it waited.
        after: Duration,
    },
    /// Chromium refused the command.
    #[error("{method}: {message}")]
    Refused {
        /// The command.
        method: &'static str,
        /// Chromium's words.
        message: String,
    },
    /// The answer is over the limit of a message.
    #[error("the answer to {method} is too large")]
    TooLarge {
        /// The command.
        method: &'static str,
    },
    /// The answer is none that we understand.
    #[error("the answer to {method} is malformed")]
    Malformed {
        /// The command.
        method: &'static str,
    },
}

/// Takes the events of one session; called on the reader's task, so it must not block.
pub trait Sink: Send + Sync {
    /// Something happened. `session` is `None` on the browser's own session.
    fn event(&self, method: &str, session: Option<&str>, payload: &Payload);
    /// The session is over; nothing more will come.
    fn ended(&self, _session: &str) {}
}

type Outcome = Result<Payload, CallError>;

struct Pending {
    session: Option<Arc<str>>,
    method: &'static str,
    reply: oneshot::Sender<Outcome>,
}

#[derive(Default)]
struct State {
    next: u64,
    pending: HashMap<u64, Pending>,
    sinks: HashMap<String, Arc<dyn Sink>>,
    root: Option<Arc<dyn Sink>>,
    closed: bool,
}

struct Shared {
    codec: Codec,
    outgoing: mpsc::Sender<Vec<u8>>,
    state: Mutex<State>,
    gone: CancellationToken,
}

/// A handle to the wire; cheap to clone.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

impl Connection {
    /// Starts the reader and the writer in `tasks`, over the two halves of the socket.
    pub fn open(
        codec: Codec,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (outgoing, commands) = mpsc::channel(OUTGOING);
        let gone = CancellationToken::new();
        let shared = Arc::new(Shared {
            codec,
            outgoing,
            state: Mutex::default(),
            gone,
        });
        tasks.spawn(write_all(commands, output, shared.gone.clone()));
        tasks.spawn(read_all(
            BufReader::with_capacity(BUFFER, input),
            Arc::clone(&shared),
        ));
        Self(shared)
    }

    /// Sends a command and returns what will be its reply, within [`COMMAND`]. The command is on its way when this
    /// returns, so several make a burst.
    pub fn start<C: Command>(
        &self,
        session: Option<&Arc<str>>,
        command: &C,
    ) -> impl Future<Output = Result<C::Reply, CallError>> + use<C> {
        let reply = self.start_raw(session, command, COMMAND);
        async move {
            let payload = reply.await?;
            payload
                .parse()
                .map_err(|_| CallError::Malformed { method: C::METHOD })
        }
    }

    /// As [`start`](Self::start), for a reply that is taken apart by hand and within a time of the caller's.
    pub fn start_raw<C: Command>(
        &self,
        session: Option<&Arc<str>>,
        command: &C,
        within: Duration,
    ) -> impl Future<Output = Outcome> + use<C> {
        let receiver = self.send(session, command);
        async move {
            match timeout(within, receiver?).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(CallError::Closed),
                Err(_) => Err(CallError::Timeout {
                    method: C::METHOD,
                    after: within,
                }),
            }
        }
    }

    /// Sends a command whose reply nobody needs.
    pub fn tell<C: Command>(&self, session: Option<&Arc<str>>, command: &C) {
        if let Err(error) = self.send(session, command) {
            tracing::debug!(method = C::METHOD, %error, "not sent");
        }
    }

    /// Sends the events of a session to a sink, from the next event on.
    pub fn listen(&self, session: &str, sink: Arc<dyn Sink>) {
        self.state().sinks.insert(session.to_owned(), sink);
    }

    /// Sends the events of the browser's own session to a sink.
    pub fn listen_root(&self, sink: Arc<dyn Sink>) {
        self.state().root = Some(sink);
    }

    /// Becomes ready when the browser is gone.
    pub async fn gone(&self) {
        self.0.gone.cancelled().await;
    }

    /// Whether the browser is gone.
    pub fn is_gone(&self) -> bool {
        self.0.gone.is_cancelled()
    }

    /// Closes our end; Chromium ends by itself when it sees that.
    pub fn close(&self) {
        self.0.close();
    }

    /// Commands that wait for a reply, for tests of leaks.
    pub fn waiting(&self) -> usize {
        self.state().pending.len()
    }

    fn send<C: Command>(
        &self,
        session: Option<&Arc<str>>,
        command: &C,
    ) -> Result<oneshot::Receiver<Outcome>, CallError> {
        let malformed = |_| CallError::Malformed { method: C::METHOD };
        let params = serde_json::to_value(command).map_err(malformed)?;
        let (reply, receiver) = oneshot::channel();
        let mut state = self.state();
        if state.closed {
            return Err(CallError::Closed);
        }
        state
            .pending
            .retain(|_, pending| !pending.reply.is_closed());
        state.next += 1;
        let id = state.next;
        let bytes = self
            .0
            .codec
            .encode(&envelope(id, session, C::METHOD, params));
        // Sent under the lock, so that commands leave in the order of their numbers.
        self.0
            .outgoing
            .try_send(bytes)
            .map_err(|_| CallError::Closed)?;
        state.pending.insert(
            id,
            Pending {
                session: session.cloned(),
                method: C::METHOD,
                reply,
            },
        );
        Ok(receiver)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state()
    }
}

fn envelope(id: u64, session: Option<&Arc<str>>, method: &str, params: Value) -> Value {
    let mut message = json!({ "id": id, "method": method });
    message["params"] = params;
    if let Some(session) = session {
        message["sessionId"] = Value::from(&**session);
    }
    message
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_in(&self, message: Message) {
        match message {
            Message::Reply { id, result } => self.answer(id, |method| {
                result.map_err(|failure| match failure.message.as_str() {
                    "Target crashed" => CallError::Crashed,
                    _ => CallError::Refused {
                        method,
                        message: failure.message,
                    },
                })
            }),
            Message::TooLarge { id: Some(id) } => {
                self.answer(id, |method| Err(CallError::TooLarge { method }));
            }
            Message::TooLarge { id: None } => {
                tracing::warn!("an event over the limit of a message was dropped");
            }
            Message::Event {
                method,
                session,
                payload,
            } => self.hand_out(&method, session.as_deref(), &payload),
        }
    }

    fn answer(&self, id: u64, outcome: impl FnOnce(&'static str) -> Outcome) {
        let pending = self.state().pending.remove(&id);
        if let Some(pending) = pending {
            let _ = pending.reply.send(outcome(pending.method));
        }
    }

    fn hand_out(&self, method: &str, session: Option<&str>, payload: &Payload) {
        let sink = match session {
            Some(session) => self.state().sinks.get(session).cloned(),
            None => self.state().root.clone(),
        };
        if let Some(sink) = sink {
            sink.event(method, session, payload);
        }
        match (method, session) {
            ("Inspector.targetCrashed", Some(session)) => self.fail(session, &CallError::Crashed),
            ("Target.detachedFromTarget", _) => self.detach(payload),
            _ => {}
        }
    }

    fn detach(&self, payload: &Payload) {
        let value = payload.value().unwrap_or_default();
        let Some(session) = value["sessionId"].as_str() else {
            return;
        };
        let sink = self.state().sinks.remove(session);
        self.fail(session, &CallError::Detached);
        if let Some(sink) = sink {
            sink.ended(session);
        }
    }

    /// Fails everything that waits on a session.
    fn fail(&self, session: &str, error: &CallError) {
        let on_it = |pending: &Pending| pending.session.as_deref() == Some(session);
        let failed: Vec<Pending> = self
            .state()
            .pending
            .extract_if(|_, pending| on_it(pending))
            .map(|(_, pending)| pending)
            .collect();
        for pending in failed {
            let _ = pending.reply.send(Err(error.clone()));
        }
    }

    fn close(&self) {
        let (pending, sinks) = {
            let mut state = self.state();
            state.closed = true;
            state.root = None;
            (
                std::mem::take(&mut state.pending),
                std::mem::take(&mut state.sinks),
            )
        };
        self.gone.cancel();
        for pending in pending.into_values() {
            let _ = pending.reply.send(Err(CallError::Closed));
        }
        for (session, sink) in sinks {
            sink.ended(&session);
        }
    }
}

async fn write_all(
    mut commands: mpsc::Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Unpin,
    gone: CancellationToken,
) {
    let writing = async {
        while let Some(command) = commands.recv().await {
            if output.write_all(&command).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = gone.cancelled() => {}
    }
    let _ = output.shutdown().await;
}

async fn read_all(mut input: BufReader<impl AsyncRead + Unpin>, shared: Arc<Shared>) {
    let gone = shared.gone.clone();
    let reading = async {
        loop {
            match shared.codec.read(&mut input).await {
                Ok(message) => shared.take_in(message),
                Err(WireError::Closed) => break,
                Err(error) => {
                    tracing::error!(%error, "the wire to the browser broke");
                    break;
                }
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = gone.cancelled() => {}
    }
    shared.close();
}

#[cfg(test)]
mod tests;
