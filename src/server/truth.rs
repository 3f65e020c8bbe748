//! What the GPU was proven to do, and whether that still holds.
//!
//! Chromium falls back from a GPU to the processor without a word when its GPU process dies. So the verdict of the probe
//! belongs to the GPU process that drew it: once that one is gone, `hardware` is no longer said until it is proven anew.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::browser::probe::Verdict;
use crate::browser::processes::ProcessId;

/// The word where a verdict of hardware is not proven for the process that draws now.
const UNPROVEN: &str = "unproven";

/// The truth about the GPU.
pub(super) struct Truth(Mutex<Known>);

struct Known {
    verdict: Verdict,
    /// The GPU process that the verdict is of; `None` until it is first seen, or where the system does not say.
    process: Option<ProcessId>,
    /// Nothing is known of what draws now.
    open: bool,
}

impl Truth {
    /// The verdict of the start.
    pub(super) fn new(verdict: Verdict) -> Self {
        Self(Mutex::new(Known {
            verdict,
            process: None,
            open: false,
        }))
    }

    /// What was last proven.
    pub(super) fn verdict(&self) -> Verdict {
        self.known().verdict.clone()
    }

    /// `hardware`, `software` or `unproven`: what a picture was drawn with that has been taken by now.
    pub(super) fn word(&self) -> &'static str {
        let known = self.known();
        let is_gone = known.process.is_some_and(|process| !process.is_alive());
        if known.verdict.hardware && (known.open || is_gone) {
            return UNPROVEN;
        }
        known.verdict.word()
    }

    /// The verdict holds for this process.
    pub(super) fn holds_for(&self, process: Option<ProcessId>) {
        let mut known = self.known();
        known.process = process;
        known.open = false;
    }

    /// Another verdict, drawn by this process.
    pub(super) fn proven(&self, verdict: Verdict, process: Option<ProcessId>) {
        *self.known() = Known {
            verdict,
            process,
            open: false,
        };
    }

    /// What draws now could not be proven.
    pub(super) fn open(&self) {
        self.known().open = true;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::processes::tests::id;
    use crate::server::event::tests::ready;

    fn verdict(hardware: bool) -> Verdict {
        Verdict {
            hardware,
            ..ready().gpu
        }
    }

    #[test]
    fn hardware_is_not_said_once_the_process_that_proved_it_is_gone() {
        let (gone, truth) = (id(i32::MAX), Truth::new(verdict(true)));
        assert_eq!(truth.word(), "hardware");
        truth.holds_for(Some(gone));
        assert_eq!(truth.word(), "unproven");
        truth.proven(verdict(true), None);
        assert_eq!(truth.word(), "hardware");
        truth.open();
        assert_eq!(truth.word(), "unproven");
        truth.proven(verdict(false), Some(gone));
        assert_eq!(truth.word(), "software");
    }
}
