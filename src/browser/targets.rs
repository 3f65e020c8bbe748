//! What comes to be in the browser: our pages are handed to who opens them, popups are closed and reported, the proxy's
//! question for a password is answered for the page that is being primed, and downloads are reported.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;

use super::command::{AuthAnswer, CloseTarget, ContinueRequest, ContinueWithAuth, RunIfWaiting};
use super::observed::{Main, Observed};
use super::pipe::{Connection, Sink};
use super::wire::Payload;

/// A user name and a password for the proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// One a context, so that the log knows which page asked.
    pub user: String,
    /// The run's.
    pub password: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({})", self.user)
    }
}

/// A page that we opened and are attached to.
#[derive(Debug, Clone)]
pub struct Attached {
    /// The page; its main frame has the same id.
    pub target: String,
    /// The session for its commands.
    pub session: Arc<str>,
}

struct Context {
    observed: Arc<Observed>,
    /// Who waits for the page that is being opened; any other page of the context is a popup.
    awaited: Option<oneshot::Sender<Attached>>,
}

#[derive(Default)]
struct State {
    contexts: HashMap<String, Context>,
    /// Main frames that are being primed, with what they answer.
    primed: HashMap<String, Credential>,
}

/// The sink of the browser's own session.
pub struct Targets {
    connection: Connection,
    state: Mutex<State>,
}

impl Targets {
    /// Listens on the browser's own session.
    pub fn listen(connection: &Connection) -> Arc<Self> {
        let targets = Arc::new(Self {
            connection: connection.clone(),
            state: Mutex::default(),
        });
        connection.listen_root(Arc::clone(&targets) as Arc<dyn Sink>);
        targets
    }

    /// The next page of a context is ours.
    pub fn expect(&self, context: &str, observed: &Arc<Observed>) -> oneshot::Receiver<Attached> {
        let (awaited, attached) = oneshot::channel();
        let entry = Context {
            observed: Arc::clone(observed),
            awaited: Some(awaited),
        };
        self.state().contexts.insert(context.to_owned(), entry);
        attached
    }

    /// A context is gone.
    pub fn forget(&self, context: &str) {
        self.state().contexts.remove(context);
    }

    /// The proxy's next question to a page is answered with this, once.
    pub fn prime(&self, target: &str, credential: Credential) {
        self.state().primed.insert(target.to_owned(), credential);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attached(&self, value: &Value) {
        let info = &value["targetInfo"];
        let (Some(session), Some(target)) =
            (value["sessionId"].as_str(), info["targetId"].as_str())
        else {
            return;
        };
        let session: Arc<str> = session.into();
        if info["type"] != "page" {
            self.connection.tell(Some(&session), &RunIfWaiting {});
            return;
        }
        let context = info["browserContextId"].as_str().unwrap_or_default();
        let mut state = self.state();
        let known = state
            .contexts
            .get_mut(context)
            .map(|entry| (entry.awaited.take(), Arc::clone(&entry.observed)));
        drop(state);
        match known {
            Some((Some(awaited), observed)) => {
                self.connection.listen(&session, Arc::new(Main(observed)));
                self.connection.tell(Some(&session), &RunIfWaiting {});
                let _ = awaited.send(Attached {
                    target: target.to_owned(),
                    session,
                });
            }
            Some((None, observed)) => {
                observed.popup(info["url"].as_str().unwrap_or_default());
                self.refuse(target, &session);
            }
            None => self.refuse(target, &session),
        }
    }

    /// Closes a page that nobody asked for. It waits to run, and so does the script that opened it.
    fn refuse(&self, target: &str, session: &Arc<str>) {
        self.connection
            .tell(None, &CloseTarget { target_id: target });
        self.connection.tell(Some(session), &RunIfWaiting {});
    }

    fn asked_for_password(&self, value: &Value) {
        let Some(request_id) = value["requestId"].as_str() else {
            return;
        };
        let frame = value["frameId"].as_str().unwrap_or_default();
        let from_proxy = value["authChallenge"]["source"] == "Proxy";
        let credential = if from_proxy {
            self.state().primed.remove(frame)
        } else {
            None
        };
        let answer = match &credential {
            Some(known) => AuthAnswer {
                response: "ProvideCredentials",
                username: &known.user,
                password: &known.password,
            },
            None => AuthAnswer {
                response: "CancelAuth",
                username: "",
                password: "",
            },
        };
        self.connection.tell(
            None,
            &ContinueWithAuth {
                request_id,
                auth_challenge_response: answer,
            },
        );
    }

    fn download(&self, value: &Value) {
        let url = value["url"].as_str().unwrap_or_default();
        // The event names a frame and no context, so each page is asked whether the frame is its own.
        let frame = value["frameId"].as_str().unwrap_or_default();
        let observed: Vec<_> = self
            .state()
            .contexts
            .values()
            .map(|entry| Arc::clone(&entry.observed))
            .collect();
        for page in observed {
            page.download_of(frame, url);
        }
    }
}

impl Sink for Targets {
    fn event(&self, method: &str, _session: Option<&str>, payload: &Payload) {
        let handle: fn(&Self, &Value) = match method {
            "Target.attachedToTarget" => Self::attached,
            "Fetch.authRequired" => Self::asked_for_password,
            "Fetch.requestPaused" => |targets, value| {
                if let Some(request_id) = value["requestId"].as_str() {
                    targets
                        .connection
                        .tell(None, &ContinueRequest { request_id });
                }
            },
            "Browser.downloadWillBegin" => Self::download,
            _ => return,
        };
        if let Ok(value) = payload.value() {
            handle(self, &value);
        }
    }
}
