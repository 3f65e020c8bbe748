//! Chromium's processes as the kernel counts them: who they are, and the memory that each has for itself.
//!
//! Only Linux tells it, in `/proc`; elsewhere nothing is known, and whoever asks hears so.

use std::collections::BTreeSet;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    number: i32,
    /// Ticks from the machine's start to its own.
    born: u64,
}

/// What a process of Chromium's does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The main process.
    Browser,
    /// It draws.
    Gpu,
    /// It runs a page, or a frame of one.
    Renderer,
    /// The network, a zygote, …
    Other,
}

/// A process of Chromium's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Which one.
    pub id: ProcessId,
    /// What it does.
    pub kind: Kind,
    /// Bytes that it holds alone: what it shares with others would be counted once for each.
    pub memory: u64,
}

impl ProcessId {
    /// Whether it still runs; one that nobody has reaped does not.
    pub fn is_alive(self) -> bool {
        stat(self.number).is_some_and(|now| now.id == self && !matches!(now.state, 'Z' | 'X'))
    }

    /// Kills it; `false` where it is gone already, or not ours to kill.
    pub fn kill(self) -> bool {
        self.is_alive() && kill(Pid::from_raw(self.number), Signal::SIGKILL).is_ok()
    }
}

/// A process and all that it has started, and what those have started; `None` where the system does not say, or the
/// process is gone.
pub fn tree(root: u32) -> Option<Vec<Process>> {
    let root = i32::try_from(root).ok()?;
    let numbers = std::fs::read_dir("/proc").ok()?.flatten();
    let all: Vec<Stat> = numbers
        .filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let family = family(root, &all);
    let members = all.iter().filter(|one| family.contains(&one.id.number));
    let processes: Vec<Process> = members.filter_map(|one| process(one.id)).collect();
    (!processes.is_empty()).then_some(processes)
}

/// Bytes of memory that the machine has.
pub fn machine_memory() -> Option<u64> {
    kibibytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

struct Stat {
    id: ProcessId,
    parent: i32,
    state: char,
}

fn stat(number: i32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

fn parse_stat(line: &str) -> Option<Stat> {
    let (number, _) = line.split_once(' ')?;
    // The name comes in brackets and may hold anything, brackets and spaces included.
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        id: ProcessId {
            number: number.parse().ok()?,
            born: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
    })
}

fn family(root: i32, all: &[Stat]) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([root]);
    loop {
        let children = all.iter().filter(|one| found.contains(&one.parent));
        let more: Vec<i32> = children
            .map(|one| one.id.number)
            .filter(|number| !found.contains(number))
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// What it does and holds; `None` where it has ended meanwhile.
fn process(id: ProcessId) -> Option<Process> {
    let folder = format!("/proc/{}", id.number);
    let status = std::fs::read_to_string(format!("{folder}/status")).ok()?;
    let command = std::fs::read(format!("{folder}/cmdline")).ok()?;
    Some(Process {
        id,
        kind: kind(&String::from_utf8_lossy(&command)),
        memory: kibibytes(&status, "RssAnon:")?,
    })
}

/// A line of `/proc` that says an amount of memory, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// The arguments are parted by zeros, or, where Chromium has renamed the process, by spaces.
fn kind(command: &str) -> Kind {
    let mut arguments = command.split(['\0', ' ']);
    match arguments.find_map(|argument| argument.strip_prefix("--type=")) {
        None => Kind::Browser,
        Some("gpu-process") => Kind::Gpu,
        Some("renderer") => Kind::Renderer,
        Some(_) => Kind::Other,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn id(number: i32) -> ProcessId {
        ProcessId { number, born: 0 }
    }

    pub(crate) fn process(number: i32, kind: Kind, memory: u64) -> Process {
        let id = id(number);
        Process { id, kind, memory }
    }

    fn line(number: i32, parent: i32, born: u64) -> String {
        let zeros = "0 ".repeat(17);
        format!("{number} (a) b (c)) S {parent} {zeros}{born} 0")
    }

    #[test]
    fn a_process_is_told_by_its_number_and_its_birth_whatever_its_name_is() {
        let stat = parse_stat(&line(7, 3, 99)).unwrap();
        assert_eq!((stat.id.number, stat.parent), (7, 3));
        assert_eq!((stat.id.born, stat.state), (99, 'S'));
        assert!(parse_stat("7 (cut").is_none() && parse_stat("").is_none());
    }

    #[test]
    fn a_family_is_all_that_descends_and_nothing_else() {
        let rows = [(10, 1), (14, 13), (11, 10), (13, 11), (20, 1), (21, 20)];
        let all = rows.map(|(number, parent)| parse_stat(&line(number, parent, 0)).unwrap());
        assert_eq!(family(10, &all), BTreeSet::from([10, 11, 13, 14]));
    }

    #[test]
    fn the_kind_is_read_from_arguments_in_either_form() {
        for (command, expected) in [
            ("/chromium\0--headless=new\0", Kind::Browser),
            ("/chromium\0--type=gpu-process\0--x\0", Kind::Gpu),
            ("/chromium --type=renderer --lang=en", Kind::Renderer),
            (
                "/chromium --type=utility --utility-sub-type=network",
                Kind::Other,
            ),
            (
                "/chromium\0--user-data-dir=/x--type=renderer\0",
                Kind::Browser,
            ),
        ] {
            assert_eq!(kind(command), expected, "{command}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_very_process_is_alive_and_holds_memory_of_the_machine_s() {
        let tree = tree(std::process::id()).unwrap();
        assert!(tree.iter().all(|one| one.id.is_alive()), "{tree:?}");
        let held: u64 = tree.iter().map(|one| one.memory).sum();
        assert!(held > 0 && held < machine_memory().unwrap());
        assert_eq!(super::tree(u32::MAX), None);
    }
}
