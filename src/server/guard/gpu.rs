//! The deaths of the GPU process in the life of one browser: a pure count.

use crate::browser::processes::ProcessId;

/// What a look at the GPU process has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// None.
    Same,
    /// The first one of a browser.
    First(ProcessId),
    /// The one that was there is gone: so many by now.
    Died(u32),
}

/// The GPU processes of a browser, as they were seen.
#[derive(Debug, Default)]
pub(super) struct GpuProcesses {
    browser: u32,
    seen: Option<ProcessId>,
    any: bool,
    deaths: u32,
}

impl GpuProcesses {
    /// Takes in a look at a browser: the GPU process that it has now. Another browser begins anew.
    pub(super) fn look(&mut self, browser: u32, now: Option<ProcessId>) -> News {
        if self.browser != browser {
            *self = Self {
                browser,
                ..Self::default()
            };
        }
        let before = std::mem::replace(&mut self.seen, now);
        if before.is_some() && before != now {
            self.deaths += 1;
            return News::Died(self.deaths);
        }
        match now {
            Some(first) if !std::mem::replace(&mut self.any, true) => News::First(first),
            _ => News::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::processes::tests::id;

    #[test]
    fn each_death_is_counted_once_whether_or_not_another_process_is_there_already() {
        let mut gpu = GpuProcesses::default();
        for (browser, now, expected) in [
            (1, None, News::Same),
            (1, Some(10), News::First(id(10))),
            (1, Some(10), News::Same),
            (1, Some(11), News::Died(1)),
            (1, None, News::Died(2)),
            (1, None, News::Same),
            (1, Some(12), News::Same),
            (1, Some(13), News::Died(3)),
            (2, Some(14), News::First(id(14))),
            (2, None, News::Died(1)),
        ] {
            assert_eq!(gpu.look(browser, now.map(id)), expected, "{now:?}");
        }
    }
}
