//! Whether Chromium takes more memory than it may, and which of its processes is to blame: a pure decision.

use crate::browser::processes::{Kind, Process, ProcessId};
use crate::policy::limits::{MEMORY_PART, MEMORY_USUAL_LEAST, MIB, RENDERER_PART};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgment {
    /// Nothing.
    Fine,
    /// One renderer is killed.
    Kill {
        /// The renderer.
        process: ProcessId,
        /// Why, as said of its page.
        reason: String,
    },
    /// No renderer is to blame: the browser is started again.
    Restart {
        /// Why.
        reason: String,
    },
}

/// Bytes that Chromium may hold: the owner's word, or a part of the machine's memory.
pub(in crate::server) fn bound(wanted: Option<u64>, machine: Option<u64>) -> u64 {
    wanted.unwrap_or_else(|| {
        let part = machine.unwrap_or_default() / MEMORY_PART;
        part.max(MEMORY_USUAL_LEAST)
    })
}

/// Bytes that all hold together.
pub(super) fn total(processes: &[Process]) -> u64 {
    processes.iter().map(|one| one.memory).sum()
}

/// Judges what each process holds.
///
/// | one renderer over its share | all over the bound | the others than renderers over half of it | |
/// |---|---|---|---|
/// | yes | – | – | it is killed |
/// | no | no | – | fine |
/// | no | yes | no | the largest renderer is killed |
/// | no | yes | yes | the browser is started again |
pub(super) fn judge(processes: &[Process], bound: u64) -> Judgment {
    let (total, share) = (total(processes), bound / RENDERER_PART);
    let renderers = || processes.iter().filter(|one| one.kind == Kind::Renderer);
    let in_renderers: u64 = renderers().map(|one| one.memory).sum();
    let largest = renderers().max_by_key(|one| one.memory);
    match largest {
        Some(largest) if largest.memory > share => Judgment::Kill {
            process: largest.id,
            reason: format!(
                "it held {} MiB of memory, and one page may hold {} MiB",
                mebibytes(largest.memory),
                mebibytes(share)
            ),
        },
        _ if total <= bound => Judgment::Fine,
        Some(largest) if total - in_renderers <= bound / 2 => Judgment::Kill {
            process: largest.id,
            reason: format!(
                "all pages and the browser held {} MiB of memory together, and may hold {} MiB; this page held most, {} MiB",
                mebibytes(total),
                mebibytes(bound),
                mebibytes(largest.memory)
            ),
        },
        _ => Judgment::Restart {
            reason: format!(
                "it held {} MiB of memory, and may hold {} MiB; its pages held only {} MiB of that",
                mebibytes(total),
                mebibytes(bound),
                mebibytes(in_renderers)
            ),
        },
    }
}

/// Whole mebibytes.
pub(in crate::server) fn mebibytes(bytes: u64) -> u64 {
    bytes / MIB as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::processes::tests::{id, process};

    const GIB: u64 = 1024 * MIB as u64;

    /// Processes by their memory in MiB: browser, GPU, then renderers, numbered from 10.
    fn judged(browser: u64, gpu: u64, renderers: &[u64]) -> Judgment {
        let mut all = vec![
            process(1, Kind::Browser, browser * MIB as u64),
            process(2, Kind::Gpu, gpu * MIB as u64),
        ];
        let renderers = (10..).zip(renderers);
        all.extend(
            renderers.map(|(number, mib)| process(number, Kind::Renderer, mib * MIB as u64)),
        );
        judge(&all, GIB)
    }

    fn killed(judgment: &Judgment) -> Option<ProcessId> {
        match judgment {
            Judgment::Kill { process, .. } => Some(*process),
            _ => None,
        }
    }

    #[test]
    fn only_the_one_to_blame_is_killed() {
        for (browser, gpu, renderers, expected) in [
            (100, 100, &[50, 512][..], None),
            (100, 100, &[50, 513], Some(11)),
            (100, 100, &[600, 900], Some(11)),
            (100, 100, &[300, 400, 124], None),
            (100, 100, &[300, 400, 125], Some(11)),
            (100, 412, &[300, 213], Some(10)),
        ] {
            let judgment = judged(browser, gpu, renderers);
            assert_eq!(
                killed(&judgment),
                expected.map(id),
                "{renderers:?}: {judgment:?}"
            );
            let fine = judgment == Judgment::Fine;
            assert_eq!(fine, expected.is_none(), "{renderers:?}: {judgment:?}");
        }
    }

    #[test]
    fn no_page_is_killed_for_what_the_gpu_process_holds() {
        for (gpu, renderers) in [(1_000, &[50, 60][..]), (413, &[300, 212]), (1_100, &[])] {
            let judgment = judged(100, gpu, renderers);
            assert!(matches!(judgment, Judgment::Restart { .. }), "{judgment:?}");
        }
    }

    #[test]
    fn a_reason_has_both_numbers() {
        let Judgment::Kill { reason, .. } = judged(100, 100, &[700]) else {
            panic!("not killed");
        };
        assert!(
            reason.contains("700 MiB") && reason.contains("512 MiB"),
            "{reason}"
        );
    }

    #[test]
    fn the_usual_bound_is_half_of_the_machine_and_never_too_little() {
        for (wanted, machine, expected) in [
            (Some(3 * GIB), Some(4 * GIB), 3 * GIB),
            (None, Some(16 * GIB), 8 * GIB),
            (None, Some(GIB), GIB),
            (None, None, GIB),
        ] {
            assert_eq!(bound(wanted, machine), expected);
        }
    }
}
