//! An app's WebSocket: its first frame, its life, its farewell.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::Relay;
use super::calls::ToolCall;
use super::first::first_frame;
use super::session::{Attached, Session};
use crate::policy::limits;
use crate::relay::frames::app::AppFrame;
use crate::relay::frames::{HEARTBEAT, HEARTBEAT_ANSWER, relay as frames};
use crate::relay::pump::{self, Heard};
use crate::relay::tokens::SessionId;
use crate::relay::units::units;

pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;
pub(super) type Inbound = pump::Inbound<TokioIo<Upgraded>>;

/// What waits to be written to an app.
pub(super) enum ToApp {
    Text(Utf8Bytes),
    Call(ToolCall),
    Close(Farewell),
}

/// A close code and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Farewell(pub(super) u16, pub(super) &'static str);

impl Farewell {
    pub(super) const DONE: Self = Self(1000, "session ended");
    pub(super) const GOING_AWAY: Self = Self(1001, "the relay is closing");
    pub(super) const BROKEN: Self = Self(1002, "protocol error");
    pub(super) const TOO_LARGE: Self = Self(1009, "frame too large");
    pub(super) const SILENT: Self = Self(4408, "silence");
    pub(super) const REPLACED: Self = Self(4410, "replaced by a resume");
}

/// Frames beyond this size are surely too large; what lies below it is measured in units.
pub(super) fn socket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(limits::FRAME_BYTES))
        .max_frame_size(Some(limits::FRAME_BYTES))
}

/// Serves one socket to its end.
pub(super) async fn serve(relay: &Arc<Relay>, socket: Socket, wanted: Option<SessionId>) {
    let (sink, mut inbound) = socket.split();
    let (outbox, queue) = mpsc::channel(limits::OUTBOX);
    let mut writer = pin!(pump::write(sink, queue, |_| {}));
    let farewell = tokio::select! {
        farewell = live(relay, &mut inbound, &outbox, wanted) => farewell,
        _ = &mut writer => return,
        () = relay.closing.cancelled() => Farewell::GOING_AWAY,
    };
    // Full where the app does not read; then the connection is cut.
    let _ = outbox.try_send(ToApp::Close(farewell));
    drop(outbox);
    if let Ok(Some(sink)) = timeout(limits::CLOSE_GRACE, writer).await {
        pump::hang_up(inbound, sink).await;
    }
}

impl From<ToApp> for Message {
    fn from(item: ToApp) -> Self {
        match item {
            ToApp::Text(text) => Self::Text(text),
            ToApp::Close(Farewell(code, reason)) => pump::close(code, reason),
            ToApp::Call(call) => {
                let body = String::from_utf8_lossy(&call.body);
                let frame =
                    frames::tool_call(&call.id, &call.method, &call.path, &body, &call.headers);
                Self::Text(frame.into())
            }
        }
    }
}

/// The next frame, measured.
pub(super) async fn hear(inbound: &mut Inbound, deadline: Instant) -> Heard {
    let heard = pump::hear(inbound, deadline).await;
    match heard {
        // What has no more bytes than that has no more units either.
        Heard::Text(text)
            if text.len() > limits::FRAME_UNITS && units(&text) > limits::FRAME_UNITS =>
        {
            Heard::TooLarge
        }
        heard => heard,
    }
}

/// From the first frame to the reason for the close.
async fn live(
    relay: &Arc<Relay>,
    inbound: &mut Inbound,
    outbox: &mpsc::Sender<ToApp>,
    wanted: Option<SessionId>,
) -> Farewell {
    match first_frame(relay, inbound, outbox, wanted).await {
        Ok((session, attached)) => {
            App {
                relay,
                session,
                attached,
            }
            .serve(inbound, outbox)
            .await
        }
        Err(farewell) => farewell,
    }
}

/// The app of a session. When it goes, however it goes, its session is at least held.
struct App<'r> {
    relay: &'r Relay,
    session: Arc<Session>,
    attached: Attached,
}

impl Drop for App<'_> {
    fn drop(&mut self) {
        self.session.hold(&self.attached);
    }
}

impl App<'_> {
    async fn serve(mut self, inbound: &mut Inbound, outbox: &mpsc::Sender<ToApp>) -> Farewell {
        let mut deadline = Instant::now() + self.relay.config.liveness;
        loop {
            let heard = tokio::select! {
                biased;
                farewell = &mut self.attached.dismissed => return farewell.unwrap_or(Farewell::REPLACED),
                heard = hear(inbound, deadline) => heard,
            };
            let text = match heard {
                Heard::Text(text) => text,
                Heard::Silence => return Farewell::SILENT,
                Heard::Broken(_) => return Farewell::BROKEN,
                Heard::Closed(Some((1000, _))) => return self.over(Farewell::DONE),
                Heard::Closed(_) => return Farewell::DONE,
                Heard::TooLarge => return self.over(Farewell::TOO_LARGE),
            };
            let frame = AppFrame::parse(&text);
            if !matches!(frame, AppFrame::Noise) {
                deadline = Instant::now() + self.relay.config.liveness;
            }
            let reply = if text == HEARTBEAT {
                Some(HEARTBEAT_ANSWER.into())
            } else {
                self.handle(frame)
            };
            if let Some(reply) = reply {
                // An app that does not read what it asked for is as good as silent.
                match timeout_at(deadline, outbox.send(ToApp::Text(reply.into()))).await {
                    Ok(Ok(())) => {}
                    _ => return Farewell::SILENT,
                }
            }
        }
    }

    /// The session ends with this socket, unless another one has it by now.
    fn over(&self, farewell: Farewell) -> Farewell {
        if self.session.is_attached(&self.attached) {
            self.relay.registry.end(&self.session);
        }
        farewell
    }

    fn handle(&self, frame: AppFrame<'_>) -> Option<String> {
        let session = &self.session;
        match frame {
            AppFrame::ToolReply {
                id,
                answer,
                task_id,
            } => {
                session.reply(&id, answer, task_id);
                None
            }
            AppFrame::TaskComplete { task_id, answer } => {
                session.complete(&task_id, answer);
                None
            }
            AppFrame::Mint { id, label } => Some(match session.mint(&label) {
                Ok(Some((token, label))) => frames::minted(id, &token, &label),
                Ok(None) => frames::refused(
                    "mint_agent_token_reply",
                    id,
                    "too_many_tokens",
                    "at most 50 live links",
                ),
                Err(error) => frames::refused(
                    "mint_agent_token_reply",
                    id,
                    "internal_error",
                    &error.to_string(),
                ),
            }),
            AppFrame::Revoke { id, token } => Some(frames::done(
                "revoke_agent_token_reply",
                id,
                session.revoke(&token),
            )),
            AppFrame::List { id } => Some(session.list(id)),
            AppFrame::UpdateTools {
                id,
                tools,
                briefing,
            } => Some(match session.update(tools, briefing) {
                Ok(()) => frames::done("update_tools_reply", Some(id), true),
                Err(rejected) => frames::refused(
                    "update_tools_reply",
                    Some(id),
                    rejected.code,
                    &rejected.message,
                ),
            }),
            AppFrame::Register(_) => Some(frames::refused(
                "register_reply",
                None,
                "protocol_error",
                "already registered",
            )),
            AppFrame::Ping { id } => Some(frames::pong(id)),
            AppFrame::Resume { .. }
            | AppFrame::End { .. }
            | AppFrame::Unknown
            | AppFrame::Noise => None,
        }
    }
}
