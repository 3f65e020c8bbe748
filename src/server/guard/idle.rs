//! When the session was last called, and when its owner is told that nobody calls.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::policy::limits::IDLE_NOTICE;

/// The time of the last call.
pub(in crate::server) struct LastCall(Mutex<Instant>);

impl LastCall {
    /// A session that begins now.
    pub(in crate::server) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// A call has come.
    pub(in crate::server) fn came(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// How long ago that was.
    pub(super) fn ago(&self) -> Duration {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.elapsed()
    }
}

/// One notice for each time that nobody calls.
#[derive(Debug, Default)]
pub(super) struct Notice {
    given: bool,
}

impl Notice {
    /// The minutes to tell the owner of, where it is time.
    pub(super) fn look(&mut self, idle: Duration) -> Option<u64> {
        let is_long = idle >= IDLE_NOTICE;
        let is_news = is_long && !self.given;
        self.given = is_long;
        is_news.then_some(idle.as_secs() / 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_calls_says_so_once_and_again_only_after_a_call() {
        let mut notice = Notice::default();
        let told: Vec<_> = [0, 3_599, 3_600, 3_602, 90_000, 1, 3_599, 3_661, 7_200]
            .map(|seconds| notice.look(Duration::from_secs(seconds)))
            .into_iter()
            .collect();
        let expected = [None, None, Some(60), None, None, None, None, Some(61), None];
        assert_eq!(told, expected);
    }
}
