//! Kills the process after its nth effect, so that tests can see what a machine looks like then. Only in debug builds.

#[cfg(debug_assertions)]
mod armed {
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, raise};

    static LEFT: AtomicU32 = AtomicU32::new(0);

    /// Kills at the nth effect from now; 0 never does.
    pub fn set(effects: u32) {
        LEFT.store(effects, Ordering::Relaxed);
    }

    /// An effect has happened.
    pub(in crate::install) fn passed() {
        if LEFT.load(Ordering::Relaxed) > 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = raise(Signal::SIGKILL);
        }
    }
}

#[cfg(debug_assertions)]
pub(super) use armed::passed;
#[cfg(debug_assertions)]
pub use armed::set;

#[cfg(not(debug_assertions))]
pub(super) fn passed() {}
