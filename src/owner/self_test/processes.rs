//! What the kernel says of the browser's processes.

use std::collections::BTreeMap;

use super::Check;

/// How one kind of process is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Confined {
    /// System calls are filtered.
    seccomp: bool,
    /// Nothing it starts can gain rights.
    no_new_privileges: bool,
    /// It sees a process table of its own.
    own_processes: bool,
}

/// A process of the browser.
struct Process {
    id: u32,
    parent: u32,
    kind: String,
    confined: Confined,
}

/// The main process of the browser among our children.
pub(super) fn browser() -> Option<u32> {
    of_browser()
        .into_iter()
        .find(|one| one.kind == "browser")
        .map(|one| one.id)
}

/// The state of the sandbox by kind of process. The renderers run what pages bring: for them it must be whole.
pub(super) fn sandbox() -> Check {
    let mut kinds: BTreeMap<String, Confined> = BTreeMap::new();
    for one in of_browser() {
        let weakest = kinds.entry(one.kind).or_insert(one.confined);
        weakest.seccomp &= one.confined.seccomp;
        weakest.no_new_privileges &= one.confined.no_new_privileges;
        weakest.own_processes &= one.confined.own_processes;
    }
    let said: Vec<String> = kinds
        .iter()
        .map(|(kind, confined)| format!("{kind} {}", words(*confined)))
        .collect();
    let whole = Confined {
        seccomp: true,
        no_new_privileges: true,
        own_processes: true,
    };
    let ok = !cfg!(target_os = "linux") || kinds.get("renderer") == Some(&whole);
    Check::new("Chromium's sandbox", ok, said.join("; "))
}

fn words(confined: Confined) -> String {
    let parts = [
        (confined.seccomp, "seccomp"),
        (confined.own_processes, "own namespaces"),
        (confined.no_new_privileges, "no new privileges"),
    ];
    let on: Vec<&str> = parts
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, word)| *word)
        .collect();
    if on.is_empty() {
        "not confined".to_owned()
    } else {
        on.join(", ")
    }
}

fn of_browser() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<Process> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .collect();
    let mut ours = vec![std::process::id()];
    let mut next = 0;
    while let Some(parent) = ours.get(next).copied() {
        ours.extend(
            all.iter()
                .filter(|one| one.parent == parent)
                .map(|one| one.id),
        );
        next += 1;
    }
    all.into_iter()
        .filter(|one| {
            one.id != std::process::id() && ours.contains(&one.id) && !one.kind.is_empty()
        })
        .collect()
}

fn process(id: u32) -> Option<Process> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim).unwrap_or_default()
    };
    let command = std::fs::read_to_string(format!("/proc/{id}/cmdline"))
        .ok()?
        .replace('\0', " ");
    let kind = match command.split_once("--type=") {
        Some((_, rest)) => rest.split_whitespace().next().unwrap_or_default(),
        None if command.contains("--user-data-dir=") => "browser",
        None => "",
    };
    Some(Process {
        id,
        parent: field("PPid:").parse().ok()?,
        kind: kind.to_owned(),
        confined: Confined {
            seccomp: field("Seccomp:") == "2",
            no_new_privileges: field("NoNewPrivs:") == "1",
            own_processes: field("NSpid:").split_whitespace().count() > own_depth(),
        },
    })
}

/// How deep our own process table lies.
fn own_depth() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.map_or(1, |ids| ids.split_whitespace().count())
}
