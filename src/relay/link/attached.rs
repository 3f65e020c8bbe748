//! A link that is up: frames in, frames out, and the heartbeat.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::connect::{Socket, Stream};
use super::events::{Call, CallId};
use super::replies::fail;
use super::requests::{Asked, Requests};
use super::runner::Runner;
use super::trouble::{Ending, Trouble};
use super::{Answered, Command, LinkError};
use crate::policy::limits;
use crate::relay::frames::app as frames;
use crate::relay::frames::relay::{self, RelayFrame};
use crate::relay::frames::{Body, Frame, TooLarge};
use crate::relay::pump::{self, Heard};

/// Places that must be free before a command is taken: its own, and one for the heartbeat.
const ROOM: usize = 2;

/// How a connection ended.
pub(super) enum Left {
    /// It is to be opened again.
    Lost(Trouble),
    /// For good.
    Ending(Ending),
    /// We closed it, and the relay did not notice.
    Unheard,
}

/// A session on its connection.
pub(super) struct Attached<'r> {
    pub(super) runner: &'r mut Runner,
    out: mpsc::Sender<Message>,
    requests: Requests,
    last_inbound: Instant,
    /// When the last large frame was written: a slow line that takes minutes for a picture is not dead.
    written: watch::Receiver<Instant>,
    last_beat: Instant,
}

impl<'r> Attached<'r> {
    /// Serves a connection to its end.
    pub(super) async fn serve(runner: &'r mut Runner, socket: Socket) -> Left {
        let (sink, mut inbound) = socket.split();
        let (out, queue) = mpsc::channel(limits::LINK_QUEUE);
        let (progress, written) = watch::channel(Instant::now());
        let mut writer = pin!(pump::write(sink, queue, |bytes| {
            // Small frames vanish into the system's buffers even where the other end is gone.
            if bytes >= limits::SLOW_FRAME {
                progress.send_replace(Instant::now());
            }
        }));
        let now = Instant::now();
        let mut attached = Attached {
            runner,
            out,
            requests: Requests::default(),
            last_inbound: now,
            written,
            last_beat: now,
        };
        attached.catch_up();
        let left = tokio::select! {
            left = attached.live(&mut inbound) => left,
            _ = &mut writer => Left::Lost(Trouble::Cut("it takes no more data".into())),
        };
        let farewell = match &left {
            Left::Ending(_) | Left::Unheard => pump::close(1000, "done"),
            Left::Lost(_) => pump::close(4000, "reconnecting"),
        };
        let _ = attached.out.try_send(farewell);
        attached.give_up();
        if !matches!(left, Left::Ending(Ending::Closed)) {
            // A lost connection is cut: waiting for its other end could take for ever.
            return left;
        }
        let goodbye = async {
            writer.await;
            // Until the relay's own close frame, or the end of what it sends.
            while !matches!(
                inbound.next().await,
                None | Some(Ok(Message::Close(_)) | Err(_))
            ) {}
        };
        match timeout(limits::CLOSE_GRACE, goodbye).await {
            Ok(()) => left,
            // Nobody hears us on this connection, and the session would be held.
            Err(_) => Left::Unheard,
        }
    }

    /// What could not be done while the relay was away.
    fn catch_up(&mut self) {
        for (old, label) in self.runner.ledger.stale() {
            self.ask(Asked::MintAgain { old }, |id| frames::mint(id, &label));
        }
        for token in std::mem::take(&mut self.runner.revoked) {
            self.revoke(&token, None);
        }
        for command in std::mem::take(&mut self.runner.postponed) {
            self.command(command);
        }
    }

    async fn live(&mut self, inbound: &mut pump::Inbound<Box<dyn Stream>>) -> Left {
        let (kept, out) = (Arc::clone(&self.runner.kept), self.out.clone());
        loop {
            let dead_at = self.dead_at();
            let beat_at = self.beat_at();
            let has_room = self.has_room();
            tokio::select! {
                () = self.runner.closing.cancelled() => return Left::Ending(Ending::Closed),
                heard = pump::hear(inbound, dead_at) => if let Some(left) = self.heard(heard) { return left },
                command = self.runner.commands.recv(), if has_room => match command {
                    Some(command) => self.command(command),
                    None => return Left::Ending(Ending::Closed),
                },
                (serial, frame) = kept.unsent(), if has_room => {
                    // A task begins with its call's reply, which was queued before; the relay drops an answer that
                    // overtakes it.
                    self.drain_commands();
                    if self.has_room() {
                        self.send(frame);
                        kept.sent(serial);
                    }
                }
                // Wakes this loop when the writer has made room again.
                _ = out.reserve_many(ROOM), if !has_room => {}
                () = sleep_until(beat_at) => self.beat(),
            }
        }
    }

    /// Whether a command or an answer can be sent. The last place is the heartbeat's.
    fn has_room(&self) -> bool {
        self.out.capacity() >= ROOM
    }

    fn drain_commands(&mut self) {
        while self.has_room() {
            match self.runner.commands.try_recv() {
                Ok(command) => self.command(command),
                Err(_) => return,
            }
        }
    }

    fn dead_at(&self) -> Instant {
        self.last_inbound.max(*self.written.borrow()) + self.runner.config.timing.liveness
    }

    fn beat_at(&self) -> Instant {
        self.last_inbound.max(self.last_beat) + self.runner.config.timing.heartbeat
    }

    fn beat(&mut self) {
        self.last_beat = Instant::now();
        self.send(Frame::heartbeat());
    }

    fn heard(&mut self, heard: Heard) -> Option<Left> {
        let liveness = self.runner.config.timing.liveness;
        match heard {
            Heard::Text(text) => {
                self.last_inbound = Instant::now();
                self.frame(&text);
                None
            }
            // A large frame may have been written meanwhile.
            Heard::Silence if self.dead_at() > Instant::now() => None,
            Heard::Silence => Some(Left::Lost(Trouble::Silent(liveness))),
            Heard::TooLarge => Some(Left::Lost(Trouble::FrameTooLarge)),
            Heard::Broken(cause) => Some(Left::Lost(Trouble::Cut(cause))),
            Heard::Closed(frame) => Some(closed(frame)),
        }
    }

    fn frame(&mut self, text: &Utf8Bytes) {
        match RelayFrame::parse(text) {
            RelayFrame::Call {
                id,
                method,
                path,
                body,
                headers,
            } => {
                let id = CallId {
                    epoch: self.runner.epoch,
                    id: id.into_owned(),
                };
                let (method, path, body) =
                    (method.into_owned(), path.into_owned(), body.into_owned());
                let call = Call {
                    id: id.clone(),
                    method,
                    path,
                    body,
                    headers,
                };
                if !self.runner.events.call(call) {
                    self.refuse(&id);
                }
            }
            RelayFrame::Reply { id, outcome } => {
                if let Some(asked) = self.requests.take(&id) {
                    self.replied(asked, outcome);
                }
            }
            RelayFrame::Ping { id } => {
                let pong = relay::pong(id);
                if let Ok(frame) = Frame::measured(pong) {
                    self.send(frame);
                }
            }
            RelayFrame::Registered { .. }
            | RelayFrame::RegistrationRefused(_)
            | RelayFrame::Ended { .. }
            | RelayFrame::Other => {}
        }
    }

    /// The owner is too far behind to take another call.
    fn refuse(&mut self, id: &CallId) {
        let body = Body::Json(serde_json::json!({
            "error": { "code": "busy", "message": "too many calls are waiting", "fix": "try again in a few seconds" }
        }));
        if let Ok(frame) = frames::tool_reply(&id.id, 503, &body, None) {
            self.send(frame);
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Reply { epoch, frame } if epoch == self.runner.epoch => self.send(frame),
            Command::Reply { .. } => {}
            Command::Mint { label, answered } => {
                self.ask(Asked::Mint { answered }, |id| frames::mint(id, &label));
            }
            Command::Revoke { token, answered } => self.revoke(&token, Some(answered)),
            Command::List { answered } => self.ask(Asked::List { answered }, frames::list),
            Command::Update {
                tools,
                briefing,
                answered,
            } => {
                match self
                    .runner
                    .config
                    .registration
                    .with_tools(&tools, briefing.as_deref())
                {
                    Err(error) => drop(answered.send(Err(error.into()))),
                    Ok(new) => {
                        let registration = Box::new(new.clone());
                        self.ask(
                            Asked::Update {
                                registration,
                                answered,
                            },
                            |id| frames::update_tools(id, &new),
                        );
                    }
                }
            }
        }
    }

    pub(super) fn revoke(&mut self, token: &str, answered: Option<Answered<bool>>) {
        self.runner.ledger.remove(token);
        let asked = Asked::Revoke {
            token: token.to_owned(),
            answered,
        };
        self.ask(asked, |id| frames::revoke(id, token));
    }

    fn ask(&mut self, asked: Asked, frame: impl FnOnce(&str) -> Result<Frame, TooLarge>) {
        if !self.requests.has_room() {
            return fail(asked, &LinkError::Busy);
        }
        let id = self.requests.add(asked);
        match frame(&id) {
            Ok(frame) => self.send(frame),
            Err(error) => {
                if let Some(asked) = self.requests.take(&id) {
                    fail(asked, &error.into());
                }
            }
        }
    }

    /// The queue has room for whatever commands bring, since they wait for it; a beat or a refusal that finds it full
    /// can be spared.
    fn send(&self, frame: Frame) {
        if self.out.try_send(Message::Text(frame.into_text())).is_err() {
            tracing::debug!("the relay does not take frames fast enough");
        }
    }

    /// The connection is gone: what was asked on it is settled as far as it can be.
    fn give_up(self) {
        let Attached {
            runner, requests, ..
        } = self;
        for asked in requests.into_unanswered() {
            match asked {
                Asked::Revoke { token, answered } => {
                    runner.revoke_later(token);
                    answered.map(|answered| answered.send(Ok(true)));
                }
                Asked::Update {
                    registration,
                    answered,
                } => {
                    // The resume brings it.
                    runner.config.registration = *registration;
                    let _ = answered.send(Ok(()));
                }
                asked => fail(asked, &LinkError::Away),
            }
        }
    }
}

fn closed(frame: Option<(u16, String)>) -> Left {
    let (code, reason) = frame.unwrap_or((1005, String::new()));
    match code {
        4410 => Left::Ending(Ending::TakenOver),
        4001 | 4400 | 4413 => Left::Ending(Ending::Refused {
            code: code.to_string(),
            message: reason,
        }),
        _ => Left::Lost(Trouble::Closed { code, reason }),
    }
}
