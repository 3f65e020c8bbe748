//! A link without its relay: waiting, what can be done meanwhile, and the end.

use std::pin::pin;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::runner::{Identity, Runner};
use super::trouble::Ending;
use super::{Command, LinkError, connect};
use crate::policy::limits;
use crate::relay::frames::app as frames;
use crate::relay::frames::relay::RelayFrame;
use crate::relay::pump::{self, Heard};

impl Runner {
    /// Waits before the next attempt, and hears commands meanwhile.
    pub(super) async fn pause(&mut self, pause: Duration) -> Option<Ending> {
        let mut over = pin!(sleep(pause));
        loop {
            let command = tokio::select! {
                () = &mut over => return None,
                () = self.closing.cancelled() => None,
                command = self.commands.recv() => command,
            };
            match command {
                Some(command) => self.while_away(command),
                None => return Some(Ending::Closed),
            }
        }
    }

    /// What can be done without the relay is done; what cannot waits, as long as somebody waits for it.
    pub(super) fn while_away(&mut self, command: Command) {
        match command {
            Command::Revoke { token, answered } => {
                self.revoke_later(token);
                let _ = answered.send(Ok(true));
            }
            Command::Update {
                tools,
                briefing,
                answered,
            } => {
                let updated = self
                    .config
                    .registration
                    .with_tools(&tools, briefing.as_deref());
                let updated = updated.map(|registration| self.config.registration = registration);
                let _ = answered.send(updated.map_err(LinkError::from));
            }
            // Its agent was told 503 when the connection went.
            Command::Reply { .. } => {}
            command @ (Command::Mint { .. } | Command::List { .. }) => self.postpone(command),
        }
    }

    /// Notes a link that must die before the session goes live again.
    pub(super) fn revoke_later(&mut self, token: String) {
        self.ledger.remove(&token);
        if self.revoked.len() < 2 * limits::LIVE_TOKENS && !self.revoked.contains(&token) {
            self.revoked.push(token);
        }
    }

    fn postpone(&mut self, command: Command) {
        self.postponed.retain(|command| match command {
            Command::Mint { answered, .. } => !answered.is_closed(),
            Command::List { answered } => !answered.is_closed(),
            _ => false,
        });
        match command {
            command if self.postponed.len() < limits::LIVE_TOKENS => self.postponed.push(command),
            Command::Mint { answered, .. } => drop(answered.send(Err(LinkError::Busy))),
            Command::List { answered } => drop(answered.send(Err(LinkError::Busy))),
            _ => {}
        }
    }

    /// Ends the held session, so that no link of it waits a day for nothing. Within the time that closing may take.
    pub(super) async fn finished(&mut self, ending: Ending) -> Ending {
        if let (Ending::Closed, Some(identity)) = (&ending, self.identity.take()) {
            let limit = limits::LINK_CLOSE - limits::CLOSE_GRACE;
            if timeout(limit, self.end(&identity)).await != Ok(true) {
                tracing::info!(
                    "the relay could not be told that the session is over; it ends with the relay's hold"
                );
            }
        }
        ending
    }

    async fn end(&self, identity: &Identity) -> bool {
        let (tls, limit) = (self.tls.as_ref(), self.config.timing.connect);
        let opened = connect::open(&self.config.relay, Some(&identity.session), tls, limit).await;
        let Ok(mut socket) = opened else { return false };
        let Ok(frame) = frames::end(&identity.session, identity.secret.expose()) else {
            return false;
        };
        if socket.send(Message::Text(frame.into_text())).await.is_err() {
            return false;
        }
        let (_sink, mut inbound) = socket.split();
        let deadline = Instant::now() + limit;
        while let Heard::Text(text) = pump::hear(&mut inbound, deadline).await {
            if let RelayFrame::Ended { ok } = RelayFrame::parse(&text) {
                return ok;
            }
        }
        false
    }
}
