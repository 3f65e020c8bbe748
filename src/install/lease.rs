//! Two locks, so that no program is changed while it runs and no server starts while it is changed.
//!
//! | who | `install.lock` | `server.lock` |
//! |---|---|---|
//! | server, for life; the browser's main process inherits the first | shared | exclusive |
//! | install, update, uninstall, from before they read the journal | exclusive | – |
//!
//! They are locks of the kernel's on files that stay, never pid files: a killed process has none. A shared lock is never
//! made an exclusive one, since a failed try would have let go of it already. The journal is looked at too: a killed
//! update has no lock any more, and is not done.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};

use super::journal::{self, Run};
use crate::place;

/// The lowest number that a handed-on descriptor may have: 3 and 4 are the browser's pipe.
const HANDED_ON: i32 = 16;

/// Why something cannot begin now.
#[derive(Debug, thiserror::Error)]
pub enum Busy {
    /// Another server runs.
    #[error(
        "the server is running already: its `gpu-browser start` must end first (`gpu-browser stop`)"
    )]
    Running,
    /// A server, or a browser that one has left, holds the program.
    #[error(
        "a server of gpu-browser is running{0}: end its session first (`stop` at its console), then try again"
    )]
    InUse(String),
    /// The machine is being changed.
    #[error("an install, update or uninstall is running: wait for its end, then try again")]
    Changing,
    /// A run was killed.
    #[error(
        "an {0} was left unfinished: finish it with `sudo gpu-browser {0}`, or take it back with `sudo gpu-browser install --undo`"
    )]
    Unfinished(Run),
    /// There is no install.
    #[error("gpu-browser is not installed: `sudo gpu-browser install`")]
    NotInstalled,
    /// The records cannot be read.
    #[error("the records of the install cannot be used: {0}; `gpu-browser doctor` says more")]
    Unreadable(String),
}

impl Busy {
    /// The exit code of a program that ends with it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Running | Self::InUse(_) | Self::Changing | Self::Unfinished(_) => 3,
            Self::NotInstalled | Self::Unreadable(_) => 1,
        }
    }
}

/// The right to be the one server. Kept for life; dropped, both locks are free.
#[derive(Debug)]
pub struct ServerLease {
    lease: File,
    _server: File,
}

impl ServerLease {
    /// Leaves a second descriptor of the shared lease open, which the browser's main process inherits: an orphaned browser
    /// keeps updates out. Chromium closes it in the processes that it starts itself.
    ///
    /// # Errors
    /// Where no descriptor is left.
    pub fn hand_on(&self) -> std::io::Result<()> {
        // Without close-on-exec, for life, and above those that a browser's pipe is moved to.
        fcntl(&self.lease, FcntlArg::F_DUPFD(HANDED_ON))?;
        Ok(())
    }
}

/// Takes the right to be the one server of this machine's install.
///
/// # Errors
/// With what stands in the way.
pub fn server() -> Result<ServerLease, Busy> {
    server_at(Path::new(place::LAYOUT.records))
}

fn server_at(records: &Path) -> Result<ServerLease, Busy> {
    let lease = open(&records.join("install.lock"))?;
    match lease.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Busy::Changing),
        Err(TryLockError::Error(error)) => return Err(Busy::Unreadable(error.to_string())),
    }
    let server = open(&records.join("server.lock"))?;
    match server.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Busy::Running),
        Err(TryLockError::Error(error)) => return Err(Busy::Unreadable(error.to_string())),
    }
    is_still(&lease, &records.join("install.lock"))?;
    let ledger = journal::look(&records.join("journal"));
    let ledger = ledger.map_err(|error| Busy::Unreadable(error.to_string()))?;
    match ledger.unfinished {
        Some(unfinished) => Err(Busy::Unfinished(unfinished.run)),
        None => Ok(ServerLease {
            lease,
            _server: server,
        }),
    }
}

/// The right to change the install.
#[derive(Debug)]
pub(super) struct Exclusive {
    _lease: File,
}

/// Takes the right to change the install; none where there are no records yet.
pub(super) fn exclusive(records: &Path) -> Result<Option<Exclusive>, Busy> {
    let path = records.join("install.lock");
    let lease = match open(&path) {
        Err(Busy::NotInstalled) => return Ok(None),
        lease => lease?,
    };
    match lease.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holders = holders(&lease);
            return Err(if is_being_changed(&lease) {
                Busy::Changing
            } else {
                Busy::InUse(holders)
            });
        }
        Err(TryLockError::Error(error)) => return Err(Busy::Unreadable(error.to_string())),
    }
    is_still(&lease, &path)?;
    Ok(Some(Exclusive { _lease: lease }))
}

/// Held exclusively, even a shared lock is refused; a shared one taken here is let go at once.
fn is_being_changed(lease: &File) -> bool {
    matches!(lease.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn open(path: &Path) -> Result<File, Busy> {
    File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Busy::NotInstalled,
        _ => Busy::Unreadable(format!("{}: {error}", path.display())),
    })
}

/// An uninstall may have taken the file away between opening and locking it.
fn is_still(lease: &File, path: &Path) -> Result<(), Busy> {
    let same = match (lease.metadata(), path.metadata()) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    };
    if same { Ok(()) } else { Err(Busy::Changing) }
}

/// Who holds a lock, from the kernel's own table, for the owner's eyes.
fn holders(lease: &File) -> String {
    let Ok(metadata) = lease.metadata() else {
        return String::new();
    };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = format!(":{}", metadata.ino());
    let pids: Vec<&str> = locks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(5).is_some_and(|place| place.ends_with(&inode)))
        .filter_map(|words| words.get(4).copied())
        .collect();
    if pids.is_empty() {
        String::new()
    } else {
        format!(" (process {})", pids.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::journal::{Record, line};

    fn records() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in place::RECORD_FILES {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    #[test]
    fn of_two_servers_exactly_one_runs() {
        let records = records();
        let first = server_at(records.path()).unwrap();
        assert!(matches!(server_at(records.path()), Err(Busy::Running)));
        drop(first);
        server_at(records.path()).unwrap();
    }

    #[test]
    fn a_change_waits_for_the_server_and_for_a_browser_it_has_left() {
        let records = records();
        let server = server_at(records.path()).unwrap();
        let orphan = server.lease.try_clone().unwrap();
        assert!(matches!(exclusive(records.path()), Err(Busy::InUse(_))));
        drop(server);
        assert!(matches!(exclusive(records.path()), Err(Busy::InUse(_))));
        drop(orphan);
        assert!(exclusive(records.path()).unwrap().is_some());
    }

    #[test]
    fn a_start_is_refused_while_the_machine_is_changed_and_after_a_killed_change() {
        let records = records();
        let change = exclusive(records.path()).unwrap();
        assert!(matches!(server_at(records.path()), Err(Busy::Changing)));
        assert!(matches!(exclusive(records.path()), Err(Busy::Changing)));
        drop(change);
        let began = Record::Began {
            run: Run::Update,
            at: 0,
            plan: vec![],
        };
        std::fs::write(records.path().join("journal"), line(&began)).unwrap();
        let refused = server_at(records.path()).unwrap_err();
        assert!(matches!(refused, Busy::Unfinished(Run::Update)));
        assert_eq!(refused.exit_code(), 3);
    }

    #[test]
    fn without_records_there_is_no_install() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(server_at(folder.path()), Err(Busy::NotInstalled)));
        assert!(exclusive(folder.path()).unwrap().is_none());
    }
}
