//! Keeps a browser running: notices its death at once, starts it again with growing pauses, and gives up with a reason.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::event::{BrowserState, Event};
use super::herald::Herald;
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

/// How the browser has fared.
#[derive(Default)]
pub(super) struct Vitals(Mutex<Fared>);

struct Fared {
    since: Instant,
    restarts: u64,
}

impl Default for Fared {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            restarts: 0,
        }
    }
}

impl Vitals {
    /// How long the browser has been in its present state.
    pub(super) fn since(&self) -> Duration {
        self.fared().since.elapsed()
    }

    /// How often it was started again.
    pub(super) fn restarts(&self) -> u64 {
        self.fared().restarts
    }

    fn changed(&self, restarted: bool) {
        let mut fared = self.fared();
        fared.since = Instant::now();
        fared.restarts += u64::from(restarted);
    }

    fn fared(&self) -> MutexGuard<'_, Fared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The browser, and who wants to know of it.
pub(super) struct Keeper {
    pub(super) kit: Arc<Kit>,
    pub(super) state: watch::Sender<Browser>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) herald: Herald,
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
            self.tell(BrowserState::Lost, Some(reason.clone()));
            tracing::warn!(%reason, log = %body.log().tail(20), "the browser was lost");
            body.end(Duration::ZERO).await;
            // A browser that opened a page was well: the pauses begin anew with its loss.
            let before = std::mem::replace(&mut opened, self.opened.load(Ordering::Relaxed));
            if opened > before {
                attempt = 0;
            }
            body = loop {
                let Some(pause) = BROWSER_RESTARTS.get(attempt) else {
                    self.tell(BrowserState::Failed, Some(reason.clone()));
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
                        self.tell(BrowserState::Restarted, None);
                        break body;
                    }
                    Err(error) => tracing::error!(%error, "the browser did not start again"),
                }
            };
        }
    }

    fn tell(&self, state: BrowserState, reason: Option<String>) {
        self.vitals.changed(state == BrowserState::Restarted);
        self.herald.tell(Event::Browser { state, reason });
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
