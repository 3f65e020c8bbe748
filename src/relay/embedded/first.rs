//! The first frame on a socket: a new session, one that is resumed, or one that is ended.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Relay;
use super::app::{App, Rejected};
use super::session::{Attached, Session};
use super::socket::{Farewell, Inbound, ToApp, hear};
use crate::relay::frames::app::{AppFrame, Claim};
use crate::relay::frames::relay as frames;
use crate::relay::pump::Heard;
use crate::relay::tokens::SessionId;

const NO_FIRST_FRAME: Farewell = Farewell(4408, "no first frame in time");
const TOO_MANY_WAITING: Farewell = Farewell(4409, "too many sockets wait on this session");
const RESUME_REFUSED: Farewell = Farewell(4401, "resume refused");
const WRONG_PATH: Farewell = Farewell(4400, "register on /v1/_ws, resume on ?session=");
const OVERLOADED: Farewell = Farewell(1013, "too many sessions; try again later");

type Begun = Result<(Arc<Session>, Attached), Farewell>;

/// Waits for the frame that says what this socket is for. Until then only pings are heard.
pub(super) async fn first_frame(
    relay: &Relay,
    inbound: &mut Inbound,
    outbox: &mpsc::Sender<ToApp>,
    wanted: Option<SessionId>,
) -> Begun {
    let _place = match wanted {
        Some(id) => Some(relay.registry.wait_on(id).ok_or(TOO_MANY_WAITING)?),
        None => None,
    };
    let deadline = Instant::now() + relay.config.first_frame;
    loop {
        let text = match hear(inbound, deadline).await {
            Heard::Text(text) => text,
            Heard::TooLarge => return Err(Farewell::TOO_LARGE),
            Heard::Closed(_) => return Err(Farewell::DONE),
            Heard::Broken(_) => return Err(Farewell::BROKEN),
            Heard::Silence => return Err(NO_FIRST_FRAME),
        };
        let first = First {
            relay,
            outbox,
            wanted,
        };
        if let Some(begun) = first.judge(AppFrame::parse(&text)) {
            return begun;
        }
    }
}

struct First<'a> {
    relay: &'a Relay,
    outbox: &'a mpsc::Sender<ToApp>,
    wanted: Option<SessionId>,
}

impl First<'_> {
    /// `None` where the frame decides nothing.
    fn judge(&self, frame: AppFrame<'_>) -> Option<Begun> {
        match (frame, self.wanted) {
            (AppFrame::Register(claim), None) => return Some(self.register(&claim)),
            (
                AppFrame::Resume {
                    secret,
                    revoked,
                    claim,
                },
                Some(id),
            ) => {
                return Some(self.resume(id, &secret, &revoked, &claim));
            }
            (AppFrame::End { secret }, Some(id)) => return Some(Err(self.end(id, &secret))),
            (AppFrame::Register(_), Some(_)) => {
                self.send(frames::refused(
                    "register_reply",
                    None,
                    "protocol_error",
                    WRONG_PATH.1,
                ));
                return Some(Err(WRONG_PATH));
            }
            (AppFrame::Resume { .. } | AppFrame::End { .. }, None) => {
                return Some(Err(self.refuse_resume("register_reply")));
            }
            (AppFrame::Ping { id }, _) => self.send(frames::pong(id)),
            (AppFrame::Mint { id, .. }, _) => self.register_first("mint_agent_token_reply", id),
            (AppFrame::Revoke { id, .. }, _) => self.register_first("revoke_agent_token_reply", id),
            (AppFrame::List { id }, _) => self.register_first("list_agent_tokens_reply", id),
            _ => {}
        }
        None
    }

    fn register(&self, claim: &Claim<'_>) -> Begun {
        let app = App::judge(claim).map_err(|rejected| self.reject(&rejected))?;
        let session = Session::new(app, self.relay.config.tool_timeout).map_err(|error| {
            tracing::error!(%error, "no random bytes for a session");
            OVERLOADED
        })?;
        let session = Arc::new(session);
        // Entered before the reply goes out, so that no link of it is ever unknown.
        self.relay.registry.enter(&session).map_err(|_| {
            self.send(frames::refused(
                "register_reply",
                None,
                "overloaded",
                OVERLOADED.1,
            ));
            OVERLOADED
        })?;
        let attached = session.attach(self.outbox, false);
        Ok((session, attached))
    }

    /// The registration is judged before the secret; a wrong secret and an unknown session look the same.
    fn resume(&self, id: SessionId, secret: &str, revoked: &[String], claim: &Claim<'_>) -> Begun {
        let app = App::judge(claim).map_err(|rejected| self.reject(&rejected))?;
        let session = self
            .proven(id, secret)
            .ok_or_else(|| self.refuse_resume("register_reply"))?;
        session.reregister(app, revoked);
        let attached = session.attach(self.outbox, true);
        Ok((session, attached))
    }

    fn end(&self, id: SessionId, secret: &str) -> Farewell {
        let Some(session) = self.proven(id, secret) else {
            return self.refuse_resume("end_reply");
        };
        self.relay.registry.end(&session);
        self.send(frames::done("end_reply", None, true));
        Farewell::DONE
    }

    fn proven(&self, id: SessionId, secret: &str) -> Option<Arc<Session>> {
        self.relay
            .registry
            .find(id)
            .filter(|session| session.is_secret(secret))
    }

    fn refuse_resume(&self, kind: &str) -> Farewell {
        self.send(frames::refused(
            kind,
            None,
            "resume_failed",
            "no such session, or not its secret",
        ));
        RESUME_REFUSED
    }

    fn reject(&self, rejected: &Rejected) -> Farewell {
        self.send(frames::refused(
            "register_reply",
            None,
            rejected.code,
            &rejected.message,
        ));
        Farewell(rejected.close, rejected.code)
    }

    fn register_first(&self, kind: &str, id: Option<&serde_json::value::RawValue>) {
        self.send(frames::refused(
            kind,
            id,
            "protocol_error",
            "register first",
        ));
    }

    /// An app that does not read before it has registered loses these replies, and no more.
    fn send(&self, text: String) {
        let _ = self.outbox.try_send(ToApp::Text(text.into()));
    }
}
