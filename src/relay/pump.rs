//! The two directions of a WebSocket, the same for both ends.

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::policy::limits;

pub(super) type Inbound<S> = SplitStream<WebSocketStream<S>>;
pub(super) type Outbound<S> = SplitSink<WebSocketStream<S>, Message>;

/// What came from the other end.
pub(super) enum Heard {
    Text(Utf8Bytes),
    /// More bytes than this end takes.
    TooLarge,
    /// With or without a code and its reason.
    Closed(Option<(u16, String)>),
    /// The connection, or the WebSocket protocol.
    Broken(String),
    /// Nothing until the deadline.
    Silence,
}

/// The next frame. Binary ones are read as UTF-8; the WebSocket's own pings and pongs are no frames.
pub(super) async fn hear<S>(inbound: &mut Inbound<S>, deadline: Instant) -> Heard
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let Ok(next) = timeout_at(deadline, inbound.next()).await else {
            return Heard::Silence;
        };
        return match next {
            Some(Ok(Message::Text(text))) => Heard::Text(text),
            Some(Ok(Message::Binary(bytes))) => {
                Heard::Text(String::from_utf8_lossy(&bytes).into_owned().into())
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Close(frame))) => {
                Heard::Closed(frame.map(|frame| (frame.code.into(), frame.reason.to_string())))
            }
            Some(Err(Error::Capacity(_))) => Heard::TooLarge,
            Some(Err(error)) => Heard::Broken(error.to_string()),
            None => Heard::Broken("the connection ended".into()),
        };
    }
}

/// Writes what is queued, flushing once the queue is empty; a close frame is the last. Gives the sink back where it is
/// still whole, and `None` where the connection broke. `written` hears the size of each message that the system took.
pub(super) async fn write<S, T>(
    mut sink: Outbound<S>,
    mut queue: mpsc::Receiver<T>,
    written: impl Fn(usize),
) -> Option<Outbound<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: Into<Message>,
{
    while let Some(first) = queue.recv().await {
        let mut next = Some(first);
        while let Some(item) = next {
            let message = item.into();
            let is_last = message.is_close();
            let size = message.len();
            sink.feed(message).await.ok()?;
            written(size);
            if is_last {
                sink.flush().await.ok()?;
                return Some(sink);
            }
            next = queue.try_recv().ok();
        }
        sink.flush().await.ok()?;
    }
    Some(sink)
}

/// A close frame.
pub(super) fn close(code: u16, reason: &'static str) -> Message {
    let reason = Utf8Bytes::from_static(reason);
    Message::Close(Some(CloseFrame {
        code: code.into(),
        reason,
    }))
}

/// After a close frame: the end of the writing side, and then of the reading side, so that the other end reads the close
/// frame and not a reset.
pub(super) async fn hang_up<S>(inbound: Inbound<S>, sink: Outbound<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Ok(socket) = inbound.reunite(sink) else {
        return;
    };
    let mut stream = socket.into_inner();
    let _ = timeout(limits::CLOSE_GRACE, async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    })
    .await;
}
