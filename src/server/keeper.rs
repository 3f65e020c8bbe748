//! Keeps a browser running: notices its death at once, starts it again with growing pauses, and gives up with a reason.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::event::{BrowserState, Event};
use super::herald::Herald;
use super::launch::Kit;
use crate::browser::chromium::{Body, Chromium};
use crate::policy::limits::{BROWSER_RESTARTS, LOG_QUOTED, SHUTDOWN};

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
    /// Bytes of memory at the last look.
    memory: Option<u64>,
}

/// An order to start a browser again.
pub(super) struct Order {
    /// Its main process: another browser is not meant.
    pub(super) process: u32,
    /// Why.
    pub(super) reason: String,
}

impl Default for Fared {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            restarts: 0,
            memory: None,
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

    /// Bytes of memory that its processes held at the last look; `None` where nobody has looked since it was started.
    pub(super) fn memory(&self) -> Option<u64> {
        self.fared().memory
    }

    /// Takes in a look at its memory.
    pub(super) fn weighed(&self, bytes: u64) {
        self.fared().memory = Some(bytes);
    }

    fn changed(&self, restarted: bool) {
        let mut fared = self.fared();
        fared.memory = None;
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
    /// Orders to start it again.
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) closing: CancellationToken,
}

impl Keeper {
    /// Watches a browser until the session closes or no browser stays.
    pub(super) async fn keep(mut self, chromium: Chromium, mut body: Body) {
        let (rung, mut process) = (chromium.rung, chromium.process);
        let mut attempt = 0;
        let mut opened = 0;
        loop {
            let reason = tokio::select! {
                reason = body.ended() => reason,
                reason = ordered(&mut self.orders, process) => reason,
                () = self.closing.cancelled() => {
                    body.end(SHUTDOWN / 2).await;
                    return;
                }
            };
            self.state.send_replace(Browser::Restarting);
            let (mut why, mut log) = (reason, body.log().tail(2 * LOG_QUOTED));
            self.tell(BrowserState::Lost, Some(why.clone()));
            tracing::warn!(reason = why, log, "the browser was lost");
            body.end(Duration::ZERO).await;
            // A browser that opened a page was well: the pauses begin anew with its loss.
            let before = std::mem::replace(&mut opened, self.opened.load(Ordering::Relaxed));
            if opened > before {
                attempt = 0;
            }
            body = loop {
                let Some(pause) = BROWSER_RESTARTS.get(attempt) else {
                    let reason = with_log(&why, &log);
                    self.tell(BrowserState::Failed, Some(why));
                    self.state.send_replace(Browser::Failed(reason));
                    return;
                };
                attempt += 1;
                if timeout(*pause, self.closing.cancelled()).await.is_ok() {
                    return;
                }
                match self.kit.launch(rung).await {
                    Ok((chromium, body)) => {
                        process = chromium.process;
                        self.state
                            .send_replace(Browser::Running(Arc::new(chromium)));
                        self.tell(BrowserState::Restarted, None);
                        break body;
                    }
                    Err(error) => {
                        tracing::error!(%error, "the browser did not start again");
                        // The end of its log comes on lines after the first.
                        let error = error.to_string();
                        let (first, end) = error.split_once('\n').unwrap_or((&error, ""));
                        why = format!("it did not start again: {first}");
                        end.clone_into(&mut log);
                    }
                }
            };
        }
    }

    fn tell(&self, state: BrowserState, reason: Option<String>) {
        self.vitals.changed(state == BrowserState::Restarted);
        self.herald.tell(Event::Browser { state, reason });
    }
}

/// Waits for an order about this browser.
async fn ordered(orders: &mut mpsc::Receiver<Order>, process: u32) -> String {
    while let Some(order) = orders.recv().await {
        if order.process == process {
            return order.reason;
        }
    }
    std::future::pending().await
}

/// Why a browser is given up, with the end of its log on lines of their own.
fn with_log(reason: &str, log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let quoted = &lines[lines.len().saturating_sub(LOG_QUOTED)..];
    if quoted.is_empty() {
        return reason.to_owned();
    }
    let indented: String = quoted.iter().map(|line| format!("\n  {line}")).collect();
    format!("{reason}\nthe end of Chromium's log:{indented}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_that_is_given_up_quotes_the_last_lines_of_its_log() {
        let log: String = (0..30).map(|line| format!("line {line}\n\n")).collect();
        let reason = with_log("Chromium ended", &log);
        let lines: Vec<&str> = reason.lines().collect();
        assert_eq!(lines.len(), 2 + LOG_QUOTED);
        assert_eq!((lines[0], lines[2]), ("Chromium ended", "  line 20"));
        assert_eq!(lines.last(), Some(&"  line 29"));
        assert_eq!(with_log("Chromium ended", " \n"), "Chromium ended");
    }

    #[tokio::test]
    async fn an_order_about_an_earlier_browser_does_not_end_the_present_one() {
        let (sender, mut orders) = mpsc::channel(2);
        for process in [7, 8] {
            let reason = format!("about {process}");
            sender.try_send(Order { process, reason }).ok().unwrap();
        }
        assert_eq!(ordered(&mut orders, 8).await, "about 8");
    }
}
