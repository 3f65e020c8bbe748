//! The owner's wish to end: ctrl-c, a service manager's SIGTERM, a terminal that is closed.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;

/// The signals that end a command in order.
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Stop {
    /// Listens from now on; without it, the signals would end the process where it stands.
    pub(super) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|source| Failure::System {
                what: "cannot listen for signals",
                source,
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for one, and says which.
    pub(super) async fn wait(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "stopped with ctrl-c",
            _ = self.terminate.recv() => "stopped with SIGTERM",
            _ = self.hangup.recv() => "the terminal was closed",
        }
    }
}
