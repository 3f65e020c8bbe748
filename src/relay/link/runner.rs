//! The life of a link: connect, register or resume, be up, be away, and again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use super::attached::{Attached, Left};
use super::backoff::Backoff;
use super::connect::{self, Socket, Stream};
use super::events::Events;
use super::kept::KeptAnswers;
use super::ledger::Ledger;
use super::trouble::{Ending, Trouble};
use super::{Command, LinkConfig};
use crate::policy::limits;
use crate::relay::frames::relay::RelayFrame;
use crate::relay::frames::{Frame, app as frames};
use crate::relay::pump::{self, Heard};
use crate::relay::tokens::ResumeSecret;

/// Everything that outlives a connection.
pub(super) struct Runner {
    pub(super) config: LinkConfig,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) events: Events,
    pub(super) kept: Arc<KeptAnswers>,
    pub(super) closing: CancellationToken,
    pub(super) ledger: Ledger,
    /// Links to be killed that the relay has not confirmed yet.
    pub(super) revoked: Vec<String>,
    /// Requests that wait for the relay to be back.
    pub(super) postponed: Vec<Command>,
    /// Counts connections.
    pub(super) epoch: u64,
    pub(super) identity: Option<Identity>,
    pub(super) tls: Option<TlsConnector>,
}

/// What proves that a session is ours.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) session: String,
    pub(super) secret: ResumeSecret,
}

/// A socket that is registered.
struct Registered {
    socket: Socket,
    session: String,
    resumed: bool,
}

/// Why there is no connection.
enum Failed {
    /// Try again after a while.
    Trouble(Trouble),
    /// The old session is gone; register anew at once.
    ResumeRefused,
    /// For good.
    Ending(Ending),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl Runner {
    pub(super) fn new(
        config: LinkConfig,
        commands: mpsc::Receiver<Command>,
        events: Events,
        kept: Arc<KeptAnswers>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            config,
            commands,
            events,
            kept,
            closing,
            ledger: Ledger::default(),
            revoked: Vec::new(),
            postponed: Vec::new(),
            epoch: 0,
            identity: None,
            tls: None,
        }
    }

    /// To the end, which is told last.
    pub(super) async fn run(mut self) {
        let ending = self.live().await;
        self.events.ended(ending);
    }

    async fn live(&mut self) -> Ending {
        let timing = self.config.timing;
        let mut backoff = Backoff::new(timing.backoff_first, timing.backoff_cap);
        loop {
            let trouble = match self.connected().await {
                Ok(registered) => {
                    backoff.reset();
                    match self.up(registered).await {
                        Left::Lost(trouble) => trouble,
                        Left::Ending(ending) => return ending,
                        Left::Unheard => return self.finished(Ending::Closed).await,
                    }
                }
                Err(Failed::Trouble(trouble)) => trouble,
                Err(Failed::Ending(ending)) => return self.finished(ending).await,
                Err(Failed::ResumeRefused) => {
                    self.identity = None;
                    continue;
                }
            };
            let (attempt, pause) = backoff.next();
            tracing::info!(%trouble, attempt, "the relay is away");
            self.events.away(trouble, attempt);
            if let Some(ending) = self.pause(pause).await {
                return self.finished(ending).await;
            }
        }
    }

    async fn up(&mut self, registered: Registered) -> Left {
        let Registered {
            socket,
            session,
            resumed,
        } = registered;
        self.epoch += 1;
        if resumed {
            self.kept.all_again();
        } else {
            // Nothing of an older session is known to this one.
            self.kept.clear();
            self.revoked.clear();
            self.ledger.all_stale();
        }
        self.events.up(&session, resumed);
        Attached::serve(self, socket).await
    }

    /// Opens a socket and registers or resumes on it.
    async fn connected(&mut self) -> Result<Registered, Failed> {
        let socket = self.open().await?;
        let included = self.revoked.len().min(limits::LIVE_TOKENS);
        let first = match &self.identity {
            None => frames::register(&self.config.registration),
            Some(Identity { session, secret }) => {
                let revoked = &self.revoked[..included];
                frames::resume(session, secret.expose(), revoked, &self.config.registration)
            }
        };
        // A registration is proven to fit with the rest of a resume; see its own measure.
        let first = first.map_err(|error| {
            Failed::Ending(Ending::Refused {
                code: "too_large".into(),
                message: error.to_string(),
            })
        })?;
        let closing = self.closing.clone();
        let registered = tokio::select! {
            registered = self.introduced(socket, first) => registered?,
            () = closing.cancelled() => return Err(Failed::Ending(Ending::Closed)),
        };
        if registered.resumed {
            self.revoked.drain(..included);
        }
        Ok(registered)
    }

    async fn open(&mut self) -> Result<Socket, Failed> {
        if self.config.relay.tls() && self.tls.is_none() {
            self.tls = Some(self.load_tls().await?);
        }
        let (relay, tls, limit) = (
            self.config.relay.clone(),
            self.tls.clone(),
            self.config.timing.connect,
        );
        let session = self
            .identity
            .as_ref()
            .map(|identity| identity.session.clone());
        let mut opening =
            pin!(
                async move { connect::open(&relay, session.as_deref(), tls.as_ref(), limit).await }
            );
        loop {
            let command = tokio::select! {
                opened = &mut opening => return Ok(opened?),
                () = self.closing.cancelled() => None,
                command = self.commands.recv() => command,
            };
            match command {
                Some(command) => self.while_away(command),
                None => return Err(Failed::Ending(Ending::Closed)),
            }
        }
    }

    /// Reading the system's roots is file work, and takes tens of milliseconds.
    async fn load_tls(&self) -> Result<TlsConnector, Trouble> {
        let extra = self.config.extra_roots.clone();
        let loaded = tokio::task::spawn_blocking(move || connect::tls_connector(&extra)).await;
        match loaded {
            Ok(Ok(tls)) => Ok(tls),
            Ok(Err(error)) => Err(Trouble::Cut(format!("TLS cannot be set up: {error}"))),
            Err(error) => Err(Trouble::Cut(format!("TLS cannot be set up: {error}"))),
        }
    }

    /// Sends the first frame and waits for the reply to it.
    async fn introduced(&mut self, mut socket: Socket, first: Frame) -> Result<Registered, Failed> {
        let limit = self.config.timing.answer;
        let sent = timeout(limit, socket.send(Message::Text(first.into_text()))).await;
        match sent {
            Err(_) => return Err(Trouble::NoAnswer(limit).into()),
            Ok(Err(error)) => return Err(Trouble::Cut(error.to_string()).into()),
            Ok(Ok(())) => {}
        }
        let (sink, mut inbound) = socket.split();
        let (session, resumed) = self.registration_reply(&mut inbound, limit).await?;
        match inbound.reunite(sink) {
            Ok(socket) => Ok(Registered {
                socket,
                session,
                resumed,
            }),
            Err(error) => Err(Trouble::Cut(error.to_string()).into()),
        }
    }

    async fn registration_reply(
        &mut self,
        inbound: &mut pump::Inbound<Box<dyn Stream>>,
        limit: Duration,
    ) -> Result<(String, bool), Failed> {
        let deadline = Instant::now() + limit;
        loop {
            let text = match pump::hear(inbound, deadline).await {
                Heard::Text(text) => text,
                Heard::Silence => return Err(Trouble::NoAnswer(limit).into()),
                Heard::TooLarge => return Err(Trouble::FrameTooLarge.into()),
                Heard::Broken(cause) => return Err(Trouble::Cut(cause).into()),
                Heard::Closed(frame) => return Err(self.closed_early(frame)),
            };
            match RelayFrame::parse(&text) {
                RelayFrame::Registered {
                    session,
                    secret,
                    resumed,
                } => {
                    let session = session.into_owned();
                    // A relay of before resume gives no secret: then every loss is a new session.
                    let secret =
                        (!secret.is_empty()).then(|| ResumeSecret::given(secret.into_owned()));
                    self.identity = secret.map(|secret| Identity {
                        session: session.clone(),
                        secret,
                    });
                    return Ok((session, resumed));
                }
                RelayFrame::RegistrationRefused(error) => {
                    let (code, message) = (error.code, error.message);
                    return Err(match code.as_str() {
                        "resume_failed" if self.identity.is_some() => Failed::ResumeRefused,
                        "overloaded" | "internal_error" | "rate_limited" | "resume_failed" => {
                            Trouble::NotReady { code, message }.into()
                        }
                        _ => Failed::Ending(Ending::Refused { code, message }),
                    });
                }
                _ => {}
            }
        }
    }

    /// A close before the reply says as much as the reply.
    fn closed_early(&self, frame: Option<(u16, String)>) -> Failed {
        let (code, reason) = frame.unwrap_or((1005, String::new()));
        match code {
            4401 if self.identity.is_some() => Failed::ResumeRefused,
            4001 | 4400 | 4413 => Failed::Ending(Ending::Refused {
                code: code.to_string(),
                message: reason,
            }),
            // A WebSocket of another kind: it cannot read the first frame.
            1002 | 1003 | 1007 => Trouble::NotARelay {
                relay: self.config.relay.to_string(),
                cause: format!("it closes at the registration ({code} {reason})"),
            }
            .into(),
            _ => Trouble::Closed { code, reason }.into(),
        }
    }
}
