//! How long to wait before the next attempt.

use std::time::Duration;

use crate::policy::limits;

/// 1, 2, 4 … 30 s, each a quarter longer or shorter by chance, so that the apps of a restarted relay do not all come at
/// once.
pub(super) struct Backoff {
    first: Duration,
    cap: Duration,
    attempts: u32,
}

impl Backoff {
    pub(super) fn new(first: Duration, cap: Duration) -> Self {
        Self {
            first,
            cap,
            attempts: 0,
        }
    }

    /// The link is up; the next trouble begins from the start.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Counts an attempt that failed: its number, from 1, and the pause after it.
    pub(super) fn next(&mut self) -> (u32, Duration) {
        let doubled = self.first.saturating_mul(1 << self.attempts.min(16));
        self.attempts = self.attempts.saturating_add(1);
        (self.attempts, jittered(doubled.min(self.cap), chance()))
    }
}

/// A number from 0 to 255 from the kernel. Where there is none, there is no jitter either.
fn chance() -> u8 {
    let mut byte = [128];
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

fn jittered(pause: Duration, chance: u8) -> Duration {
    let span = pause * (2 * limits::BACKOFF_JITTER_PERCENT) / 100;
    let shortest = pause - span / 2;
    shortest + span * u32::from(chance) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap_and_begin_again() {
        let mut backoff = Backoff::new(limits::BACKOFF_FIRST, limits::BACKOFF_CAP);
        for (attempt, seconds) in (1..).zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]) {
            let (counted, pause) = backoff.next();
            assert_eq!(counted, attempt);
            let off = pause.as_secs_f64() / seconds;
            assert!((0.749..=1.251).contains(&off), "{pause:?} for {seconds}");
        }
        for _ in 0..100 {
            backoff.next();
        }
        backoff.reset();
        assert!(backoff.next().1 <= Duration::from_millis(1_250));
    }

    #[test]
    fn the_jitter_is_a_quarter_to_each_side() {
        let second = Duration::from_secs(1);
        assert_eq!(jittered(second, 0), Duration::from_millis(750));
        assert_eq!(jittered(second, 255), Duration::from_millis(1_250));
    }
}
