//! What the kernel says of processes, read from `/proc`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pub id: u32,
    born: u64,
    pub command: String,
}

struct Stat {
    parent: u32,
    born: u64,
    state: String,
    ticks: u64,
}

impl Process {
    /// A file of its folder in `/proc`.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.id.to_string()).join(name)
    }

    /// What that file says.
    pub fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.file(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A line of its `status`, without the name.
    pub fn status(&self, name: &str) -> String {
        let status = self.read("status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    }

    /// Which namespace of a kind it lives in.
    pub fn namespace(&self, kind: &str) -> PathBuf {
        std::fs::read_link(self.file("ns").join(kind)).unwrap()
    }

    /// Memory that it holds, KiB.
    pub fn resident(&self) -> u64 {
        let line = self.status("VmRSS");
        line.trim_end_matches("kB").trim().parse().unwrap()
    }

    /// Processor time that it has used, hundredths of a second.
    /// The account that it runs under.
    pub fn uid(&self) -> u32 {
        self.status("Uid")
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    pub fn ticks(&self) -> u64 {
        stat(self.id).map_or(0, |now| now.ticks)
    }

    /// Whether it still runs; one that nobody has reaped does not.
    pub fn is_alive(&self) -> bool {
        stat(self.id).is_some_and(|now| now.born == self.born && now.state != "Z")
    }
}

/// The process of a number.
pub fn process(id: u32) -> Option<Process> {
    let born = stat(id)?.born;
    let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&line).replace('\0', " ");
    Some(Process { id, born, command })
}

/// All that a process has started, and what those have started.
pub fn descendants(root: u32) -> Vec<Process> {
    let all: Vec<(u32, u32)> = ids()
        .into_iter()
        .filter_map(|id| Some((id, stat(id)?.parent)))
        .collect();
    let mut found = BTreeSet::from([root]);
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|(id, parent)| found.contains(parent) && !found.contains(id))
            .map(|(id, _)| *id)
            .collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    found.remove(&root);
    found.into_iter().filter_map(process).collect()
}

/// Living processes that name a folder in their command line or their environment.
pub fn naming(folder: &Path) -> Vec<Process> {
    let folder = folder.to_str().unwrap();
    ids()
        .into_iter()
        .filter_map(process)
        .filter(|one| one.id != std::process::id() && one.is_alive())
        .filter(|one| one.command.contains(folder) || one.read("environ").contains(folder))
        .collect()
}

fn ids() -> Vec<u32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

fn stat(id: u32) -> Option<Stat> {
    let line = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name comes in brackets and may hold anything, brackets and spaces included.
    let rest: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: (*rest.first()?).to_owned(),
        parent: rest.get(1)?.parse().ok()?,
        ticks: rest.get(11)?.parse::<u64>().ok()? + rest.get(12)?.parse::<u64>().ok()?,
        born: rest.get(19)?.parse().ok()?,
    })
}
