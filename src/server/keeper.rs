//! Keeps a browser running: notices its death at once, starts it again with growing pauses, and gives up with a reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Event;
use super::launch::Kit;
use crate::browser::chromium::{Body, Chromium};
use crate::policy::limits::{BROWSER_RESTARTS, SHUTDOWN};

/// The browser as the tools see it.
#[derive(Clone)]
pub(super) enum Browser {
    /// It runs.
    Running(Arc<Chromium>),
    /// It was lost and is being started again.
    Restarting,
    /// It was lost once too often.
    Failed(String),
}

/// The browser, and who wants to know of it.
pub(super) struct Keeper {
    pub(super) kit: Arc<Kit>,
    pub(super) state: watch::Sender<Browser>,
    pub(super) events: mpsc::Sender<Event>,
    /// Pages that agents have opened so far.
    pub(super) opened: Arc<AtomicU64>,
    pub(super) closing: CancellationToken,
}

impl Keeper {
    /// Watches a browser until the session closes or no browser stays.
    pub(super) async fn keep(self, chromium: Chromium, body: Body) {
        let (rung, mut body) = (chromium.rung, body);
        let mut attempt = 0;
        let mut opened = 0;
        loop {
            let reason = tokio::select! {
                reason = body.ended() => reason,
                () = self.closing.cancelled() => {
                    body.end(SHUTDOWN / 2).await;
                    return;
                }
            };
            self.state.send_replace(Browser::Restarting);
            self.tell("lost", Some(reason.clone()));
            tracing::warn!(%reason, log = %body.log().tail(20), "the browser was lost");
            body.end(Duration::ZERO).await;
            // A browser that opened a page was well: the pauses begin anew with its loss.
            let before = std::mem::replace(&mut opened, self.opened.load(Ordering::Relaxed));
            if opened > before {
                attempt = 0;
            }
            body = loop {
                let Some(pause) = BROWSER_RESTARTS.get(attempt) else {
                    self.tell("failed", Some(reason.clone()));
                    self.state.send_replace(Browser::Failed(reason));
                    return;
                };
                attempt += 1;
                if timeout(*pause, self.closing.cancelled()).await.is_ok() {
                    return;
                }
                match self.kit.launch(rung).await {
                    Ok((chromium, body)) => {
                        self.state
                            .send_replace(Browser::Running(Arc::new(chromium)));
                        self.tell("restarted", None);
                        break body;
                    }
                    Err(error) => tracing::error!(%error, "the browser did not start again"),
                }
            };
        }
    }

    fn tell(&self, state: &'static str, reason: Option<String>) {
        let _ = self.events.try_send(Event::Browser { state, reason });
    }
}

/// Waits for a running browser, up to a time.
pub(super) async fn running(
    state: &watch::Receiver<Browser>,
    within: Duration,
) -> Option<Arc<Chromium>> {
    let mut state = state.clone();
    let found = async {
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                // Its pipe may be closed before the keeper has heard of it.
                Browser::Running(chromium) if !chromium.connection.is_gone() => {
                    return Some(chromium);
                }
                Browser::Failed(_) => return None,
                Browser::Running(_) => sleep(Duration::from_millis(10)).await,
                Browser::Restarting => state.changed().await.ok()?,
            }
        }
    };
    timeout(within, found).await.ok().flatten()
}
