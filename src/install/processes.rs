//! What runs under the account: ended before the account goes.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::action::Error;

/// The kernel takes a moment to bury what was killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends every process of a user.
pub(super) fn end_all(uid: u32) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let left = of(uid);
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(Error::NotProven(format!(
                "process {} of user {uid} cannot be ended",
                left[0]
            )));
        }
        for process in left {
            let _ = kill(process, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// By the kernel's word on each: the files of a process that hides from its own user belong to root.
fn of(uid: u32) -> Vec<Pid> {
    let uid = uid.to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &i32| {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
            let is_theirs =
                field("Uid:").is_some_and(|ids| ids.split_whitespace().any(|id| id == uid));
            // What is dead waits for its parent alone.
            is_theirs && field("State:").is_some_and(|state| !state.trim().starts_with('Z'))
        })
        .map(Pid::from_raw)
        .collect()
}
