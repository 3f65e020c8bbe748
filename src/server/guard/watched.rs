//! What the guard knows of a page: when it was last used, whether it rests, and why its renderer was killed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::policy::limits::{FREEZE_AFTER, FREEZE_BUSY, FREEZE_LOOK};

/// Why a page was killed, for its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct Killed {
    /// In words.
    pub(in crate::server) reason: String,
    /// What to do about it.
    pub(in crate::server) fix: &'static str,
}

/// A page as the guard sees it.
pub(in crate::server) struct Watched(Mutex<State>);

struct State {
    used: Instant,
    frozen: bool,
    /// How long it had worked when it was last asked.
    worked: Option<(Instant, Duration)>,
    /// A renderer is being killed for this, and it may be the page's.
    suspected: Option<Killed>,
    killed: Option<Killed>,
}

impl Watched {
    /// A page that is opened now.
    pub(in crate::server) fn new() -> Self {
        Self(Mutex::new(State {
            used: Instant::now(),
            frozen: false,
            worked: None,
            suspected: None,
            killed: None,
        }))
    }

    /// A call names it: a frozen page is thawed before anything else is sent to it.
    pub(in crate::server) fn used(&self, thaw: impl FnOnce()) {
        let mut state = self.state();
        state.used = Instant::now();
        state.worked = None;
        if std::mem::take(&mut state.frozen) {
            thaw();
        }
    }

    /// Whether it is frozen.
    pub(in crate::server) fn is_frozen(&self) -> bool {
        self.state().frozen
    }

    /// Whether it is time to ask how busy it is: one look before it may be frozen.
    pub(super) fn is_due(&self) -> bool {
        let state = self.state();
        !state.frozen && state.used.elapsed() + FREEZE_LOOK >= FREEZE_AFTER
    }

    /// Whether no call has named it for long.
    pub(super) fn is_idle(&self) -> bool {
        self.state().used.elapsed() >= FREEZE_AFTER
    }

    /// Takes in how long it has worked; freezes it where it is idle and has been busy since the last look.
    pub(super) fn worked(&self, worked: Duration, freeze: impl FnOnce()) -> bool {
        let (mut state, now) = (self.state(), Instant::now());
        let last = state.worked.replace((now, worked));
        let busy = last.is_some_and(|(then, before)| {
            worked.saturating_sub(before) > (now - then).mul_f64(FREEZE_BUSY)
        });
        if !busy || state.frozen || state.used.elapsed() < FREEZE_AFTER {
            return false;
        }
        state.frozen = true;
        freeze();
        true
    }

    /// A renderer is about to be killed, which may be its own.
    pub(super) fn suspect(&self, killed: Killed) {
        self.state().suspected = Some(killed);
    }

    /// It was not its renderer.
    pub(super) fn acquit(&self) {
        self.state().suspected = None;
    }

    /// Why its renderer, which is gone, was killed; `None` where it crashed by itself.
    pub(in crate::server) fn why_gone(&self) -> Option<Killed> {
        let mut state = self.state();
        if let Some(killed) = state.suspected.take() {
            state.killed = Some(killed);
        }
        state.killed.clone()
    }

    /// It gets another renderer.
    pub(in crate::server) fn renewed(&self) {
        self.state().killed = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::advance;

    use super::*;

    const ONE: Duration = Duration::from_secs(1);

    /// What a page has worked at each look, in percent of the time since the one before; whether it was frozen at the last.
    async fn frozen_after(shares: &[u32]) -> bool {
        let (page, mut worked) = (Watched::new(), Duration::ZERO);
        advance(FREEZE_AFTER - FREEZE_LOOK - ONE).await;
        assert!(!page.is_due());
        let mut frozen = false;
        for share in shares {
            advance(FREEZE_LOOK).await;
            assert!(page.is_due());
            worked += FREEZE_LOOK * *share / 100;
            frozen = page.worked(worked, || {});
        }
        frozen
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_frozen_where_it_is_idle_and_busy_and_only_then() {
        for (shares, expected) in [
            (&[100][..], false),
            (&[0, 100], true),
            (&[100, 19], false),
            (&[0, 21], true),
            (&[0, 5, 5, 5, 100], true),
        ] {
            assert_eq!(frozen_after(shares).await, expected, "{shares:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_in_use_is_not_frozen_however_busy_it_is() {
        let page = Watched::new();
        for look in 0..100 {
            page.used(|| panic!("it is not frozen"));
            advance(FREEZE_LOOK).await;
            assert!(!page.worked(FREEZE_LOOK * look, || {}));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_call_thaws_a_frozen_page_once_and_its_time_begins_anew() {
        let (page, thawed) = (Watched::new(), Cell::new(0));
        advance(FREEZE_AFTER).await;
        assert!(!page.worked(ONE, || {}));
        advance(FREEZE_LOOK).await;
        assert!(page.worked(FREEZE_LOOK, || {}) && page.is_frozen() && !page.is_due());
        assert!(!page.worked(FREEZE_LOOK * 2, || panic!("frozen twice")));
        page.used(|| thawed.set(thawed.get() + 1));
        page.used(|| thawed.set(thawed.get() + 1));
        assert_eq!(thawed.get(), 1);
        assert!(!page.is_frozen() && !page.is_idle() && !page.is_due());
    }

    #[test]
    fn a_crash_is_a_kill_only_where_a_renderer_was_being_killed() {
        let page = Watched::new();
        assert_eq!(page.why_gone(), None);
        let killed = Killed {
            reason: "memory".into(),
            fix: "use less",
        };
        page.suspect(killed.clone());
        page.acquit();
        assert_eq!(page.why_gone(), None);
        page.suspect(killed.clone());
        assert_eq!(page.why_gone(), Some(killed.clone()));
        page.acquit();
        assert_eq!(page.why_gone(), Some(killed));
        page.renewed();
        assert_eq!(page.why_gone(), None);
    }
}
