//! Keeps the owner's machine usable: memory, processor time, a GPU process that dies, and a session that nobody uses.
//!
//! Three tasks, since each may wait where the others must not: one weighs Chromium's processes, one proves anew what the
//! GPU does, and one asks idle pages how busy they are. What is to be done is decided in the pure rooms beside this one.

mod gpu;
mod idle;
mod memory;
mod watched;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use self::gpu::{GpuProcesses, News};
use self::idle::Notice;
use self::memory::Judgment;
use super::event::{BrowserState, Event, PageState};
use super::herald::Herald;
use super::keeper::{Browser, Order, Vitals};
use super::launch::Kit;
use super::pages::{Opened, Pages};
use super::truth::Truth;
use crate::browser::chromium::Chromium;
use crate::browser::fold::Life;
use crate::browser::page::PageError;
use crate::browser::probe::Verdict;
use crate::browser::processes::{self, Kind, Process, ProcessId};
use crate::policy::limits::{
    FREEZE_AFTER, FREEZE_ANSWER, FREEZE_LOOK, GPU_DEATHS, GUARD_LOOK, KILL_SEEN,
};

pub(super) use self::idle::LastCall;
pub(super) use self::memory::{bound, mebibytes};
pub(super) use self::watched::{Killed, Watched};

/// What an agent does about a page that was killed for its memory.
const USE_LESS: &str = "let the page use less memory (smaller textures and buffers, fewer of them, `delete` what is done \
                        with), then navigate it with `POST /page` and its name, or open another";
/// What an agent does about a page that was killed because it hung and nobody was there.
const MEND_LOOP: &str =
    "mend the loop, then navigate the page with `POST /page` and its name, or open another";
/// Between two looks whether the page of a killed renderer is known.
const SETTLE: Duration = Duration::from_millis(20);

/// Who watches, and whom it may tell.
pub(super) struct Guard {
    pub(super) kit: Arc<Kit>,
    pub(super) pages: Arc<Pages>,
    pub(super) browser: watch::Receiver<Browser>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) truth: Arc<Truth>,
    pub(super) herald: Herald,
    /// The way to the keeper.
    pub(super) orders: mpsc::Sender<Order>,
    /// Bytes that Chromium may hold.
    pub(super) bound: u64,
    pub(super) last_call: Arc<LastCall>,
}

/// The GPU process of a browser at one look.
type Look = (u32, Option<ProcessId>);

impl Guard {
    /// Starts its tasks; they end when the session closes.
    pub(super) fn start(self, tasks: &mut JoinSet<()>, closing: &CancellationToken) {
        let guard = Arc::new(self);
        let (seen, looks) = watch::channel((0, None));
        let mut spawn = |work: Work| {
            let closing = closing.clone();
            tasks.spawn(async move {
                closing.run_until_cancelled(work).await;
            });
        };
        spawn(Box::pin(Arc::clone(&guard).weigh(seen)));
        spawn(Box::pin(Arc::clone(&guard).prove(looks)));
        spawn(Box::pin(guard.ask_idle_pages()));
    }

    /// Looks at the processes, and at the time of the last call.
    async fn weigh(self: Arc<Self>, seen: watch::Sender<Look>) {
        let (mut every, mut notice) = (every(GUARD_LOOK), Notice::default());
        loop {
            every.tick().await;
            if let Some(minutes) = notice.look(self.last_call.ago()) {
                self.herald.tell(Event::Idle { minutes });
            }
            let Some(chromium) = self.running() else {
                continue;
            };
            let Some(processes) = look(&chromium).await else {
                continue;
            };
            self.vitals.weighed(memory::total(&processes));
            seen.send_replace((chromium.process, gpu_of(&processes)));
            match memory::judge(&processes, self.bound) {
                Judgment::Fine => {}
                Judgment::Kill { process, reason } => {
                    let killed = Killed {
                        reason,
                        fix: USE_LESS,
                    };
                    let kill = async { process.kill() };
                    self.kill(self.pages.list(), killed, kill).await;
                }
                Judgment::Restart { reason } => self.restart(&chromium, reason),
            }
        }
    }

    /// Kills a renderer that belongs to one of these pages, and says which it was. A renderer of another site's frame or
    /// of a blank spare page belongs to none of them: it is gone all the same.
    async fn kill(
        &self,
        suspects: Vec<Arc<Opened>>,
        killed: Killed,
        kill: impl Future<Output = bool>,
    ) {
        let suspects: Vec<_> = suspects
            .into_iter()
            .filter(|opened| opened.page.life() == Life::Alive)
            .collect();
        for opened in &suspects {
            opened.watched.suspect(killed.clone());
        }
        let deadline = Instant::now() + KILL_SEEN;
        let mut is_open = kill.await;
        while is_open && Instant::now() < deadline {
            // Its agent may have been told before us, and have closed it.
            let mut gone = suspects.iter().filter(|opened| opened.killed().is_some());
            if let Some(opened) = gone.next() {
                self.pages
                    .tell(opened, PageState::Killed, Some(killed.reason.clone()));
                is_open = false;
            } else {
                sleep(SETTLE).await;
            }
        }
        if is_open {
            tracing::warn!(reason = killed.reason, "killed a renderer of no page's own");
        }
        for opened in &suspects {
            opened.watched.acquit();
        }
    }

    /// Looks whether the GPU process is still the one that the verdict is of.
    async fn prove(self: Arc<Self>, mut looks: watch::Receiver<Look>) {
        let mut gpu = GpuProcesses::default();
        let mut is_first_browser = true;
        while looks.changed().await.is_ok() {
            let (browser, process) = *looks.borrow_and_update();
            let news = gpu.look(browser, process);
            let running = self.running();
            let Some(chromium) = running.filter(|chromium| chromium.process == browser) else {
                continue;
            };
            match news {
                News::Same => {}
                News::First(process) => {
                    // The start has proven the first; a software renderer has nothing to fall back to.
                    if std::mem::take(&mut is_first_browser) || !self.truth.verdict().hardware {
                        self.truth.holds_for(Some(process));
                    } else {
                        self.prove_restarted(&chromium).await;
                    }
                }
                News::Died(GPU_DEATHS..) => {
                    let reason = format!("its GPU process ended {GPU_DEATHS} times");
                    self.restart(&chromium, reason);
                }
                News::Died(count) => {
                    tracing::warn!(count, "the GPU process ended");
                    self.prove_again(&chromium).await;
                }
            }
        }
    }

    /// After a death of the GPU process: where the browser does less than before, it is started again.
    async fn prove_again(&self, chromium: &Chromium) {
        match self.kit.prove_again(chromium).await {
            Ok(verdict) if verdict.rank() >= self.truth.verdict().rank() => {
                self.truth.proven(verdict, gpu_now(chromium).await);
            }
            Ok(verdict) => {
                self.truth.open();
                let reason = format!("its GPU process ended, and after that {}", said(&verdict));
                self.restart(chromium, reason);
            }
            Err(error) => {
                self.truth.open();
                let reason =
                    format!("its GPU process ended, and after that nothing was drawn: {error}");
                self.restart(chromium, reason);
            }
        }
    }

    /// A new browser on hardware: what it does now is what is said from now on.
    async fn prove_restarted(&self, chromium: &Chromium) {
        let before = self.truth.verdict();
        let news = match self.kit.prove_again(chromium).await {
            Ok(verdict) => {
                let is_less = verdict.rank() < before.rank();
                let news = is_less.then(|| said(&verdict));
                self.truth.proven(verdict, gpu_now(chromium).await);
                news
            }
            Err(error) => {
                self.truth.open();
                Some(format!("what it draws with could not be proven: {error}"))
            }
        };
        if news.is_some() {
            self.kit.forget_verdicts();
            self.herald.tell(Event::Browser {
                state: BrowserState::Restarted,
                reason: news,
            });
        }
    }

    /// Looks after pages that no call names.
    async fn ask_idle_pages(self: Arc<Self>) {
        let mut every = every(FREEZE_LOOK);
        loop {
            every.tick().await;
            for opened in self.pages.list() {
                if opened.watched.is_due() && opened.page.life() == Life::Alive {
                    self.ask(opened).await;
                }
            }
        }
    }

    async fn ask(&self, opened: Arc<Opened>) {
        let seconds = FREEZE_AFTER.as_secs();
        match opened.page.worked(FREEZE_ANSWER).await {
            Ok(worked) => {
                if opened.watched.worked(worked, || opened.page.freeze()) {
                    let reason = format!(
                        "it kept the processor busy, and no call has named it for {seconds} s; the next call lets it go on"
                    );
                    self.pages.tell(&opened, PageState::Frozen, Some(reason));
                }
            }
            // A page in a loop cannot be frozen.
            Err(PageError::Timeout) if opened.watched.is_idle() => {
                let killed = Killed {
                    reason: format!(
                        "its scripts ran without an end, and no call had named it for {seconds} s"
                    ),
                    fix: MEND_LOOP,
                };
                let kill = async {
                    opened.page.kill().await;
                    true
                };
                self.kill(vec![Arc::clone(&opened)], killed, kill).await;
            }
            Err(error) => tracing::debug!(%error, page = opened.id, "how busy it is, is unknown"),
        }
    }

    fn restart(&self, chromium: &Chromium, reason: String) {
        let process = chromium.process;
        // Where an order waits already, one restart does for both.
        let _ = self.orders.try_send(Order { process, reason });
    }

    fn running(&self) -> Option<Arc<Chromium>> {
        match &*self.browser.borrow() {
            Browser::Running(chromium) if !chromium.connection.is_gone() => {
                Some(Arc::clone(chromium))
            }
            _ => None,
        }
    }
}

type Work = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Ticks that are never made up for.
fn every(time: Duration) -> tokio::time::Interval {
    let mut every = interval(time);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    every
}

/// All processes of a browser, where the system says.
async fn look(chromium: &Chromium) -> Option<Vec<Process>> {
    let root = chromium.process;
    spawn_blocking(move || processes::tree(root))
        .await
        .ok()
        .flatten()
}

async fn gpu_now(chromium: &Chromium) -> Option<ProcessId> {
    gpu_of(&look(chromium).await?)
}

fn gpu_of(processes: &[Process]) -> Option<ProcessId> {
    let gpu = processes.iter().find(|one| one.kind == Kind::Gpu);
    gpu.map(|one| one.id)
}

/// A verdict that is less than it was, in words.
fn said(verdict: &Verdict) -> String {
    let api = |name: &str, proven: bool| {
        let how = if proven { "works" } else { "does not work" };
        format!("{name} {how}")
    };
    format!(
        "it draws in {} ({}); {}, {}",
        verdict.word(),
        verdict.webgl.name,
        api("WebGL2", verdict.webgl.proven),
        api("WebGPU", verdict.webgpu.proven)
    )
}
