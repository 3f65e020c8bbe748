//! The account's own world: where it lives and what it finds in its environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use super::run;
use crate::place;

/// The account, as the user database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its home: never from `HOME`, which the caller's environment may set.
    pub home: PathBuf,
}

/// The account of the install, where there is one.
#[must_use]
pub fn find() -> Option<Account> {
    let user = User::from_name(place::ACCOUNT).ok().flatten()?;
    Some(Account {
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        home: user.dir,
    })
}

/// The account of the install, where this process runs under it.
#[must_use]
pub fn own() -> Option<Account> {
    find().filter(|account| account.uid == Uid::effective().as_raw())
}

/// The whole environment of a process of the account: nothing of the caller's, since Chromium under the account ends at
/// once where it finds the owner's `XDG_*` or `DBUS_*`.
#[must_use]
pub fn environment(home: &Path) -> Vec<(&'static str, PathBuf)> {
    vec![
        ("HOME", home.to_owned()),
        ("PATH", place::SYSTEM_PATH.into()),
        ("LANG", "C.UTF-8".into()),
        ("TMPDIR", home.join("tmp")),
    ]
}

impl Account {
    /// Makes this process the account's: no terminal of the owner's, files for it alone, and a folder for temporary ones in its home.
    ///
    /// # Errors
    /// Where the home cannot be used.
    pub fn settle(&self) -> std::io::Result<()> {
        // A process of the account that held the owner's terminal could type into it. One that leads a session already has
        // none, and is told so.
        let _ = nix::unistd::setsid();
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
        std::env::set_current_dir(&self.home)?;
        match std::fs::create_dir(self.home.join("tmp")) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether this process has the account's own environment, as [`environment`] makes it.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        let mut found: Vec<_> = std::env::vars_os().collect();
        let mut wanted: Vec<_> = environment(&self.home)
            .into_iter()
            .map(|(name, value)| (OsString::from(name), value.into_os_string()))
            .collect();
        found.sort();
        wanted.sort();
        found == wanted
    }

    /// Becomes our own program again, in the account's environment; returns only where that failed.
    #[must_use]
    pub fn start_over(&self, argument: &str) -> std::io::Error {
        run::replace(argument, environment(&self.home))
    }
}
