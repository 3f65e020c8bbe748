//! What is installed, as anybody on the machine can see it.

use std::path::Path;

use super::action::Error;
use super::files::{self, ROOT};
use super::journal::{self, Run};
use super::run::run;
use crate::place;

/// The file in a version's folder that says its self-test was passed.
const PROVEN: &str = "proven";

/// What is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Absent,
    /// A version is in use.
    Installed {
        /// Its folder's name: the version, and a part of the program's digest.
        version: String,
        /// Whether its self-test was passed.
        proven: bool,
    },
    /// A run was killed; only root and the account can see that.
    Unfinished {
        /// Which.
        what: Run,
    },
}

/// Looks at this machine.
#[must_use]
pub fn installed() -> State {
    let journal = Path::new(place::LAYOUT.records).join("journal");
    if let Some(left) = journal::look(&journal)
        .ok()
        .and_then(|ledger| ledger.unfinished)
    {
        return State::Unfinished { what: left.run };
    }
    let current = place::LAYOUT.current();
    let target = std::fs::read_link(&current).ok();
    let version =
        target.and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned()));
    match version {
        Some(version) if place::LAYOUT.installed().is_file() => State::Installed {
            version,
            proven: current.join(PROVEN).is_file(),
        },
        _ => State::Absent,
    }
}

/// Writes down whether the version in use has passed its self-test.
///
/// # Errors
/// Where its folder cannot be written.
pub fn prove(passed: bool) -> Result<(), Error> {
    let Ok(folder) = place::LAYOUT.current().canonicalize() else {
        return Ok(());
    };
    let file = folder.join(PROVEN);
    if passed {
        files::replace(&file, &folder.join(".proven.new"), b"", 0o644, ROOT)
    } else {
        files::remove_file(&file)
    }
}

/// How the owner's rule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// The command line is allowed without a password.
    Open,
    /// It is not, with sudo's words.
    Shut(String),
}

/// Asks sudo whether an owner may start the server: for root, about anybody; for others, about themselves.
///
/// # Errors
/// Where sudo cannot be run.
pub fn way_in(owner: Option<&str>) -> Result<Way, Error> {
    let program = place::LAYOUT.installed();
    let program = program.to_string_lossy();
    let mut line = vec!["-n", "-l"];
    if let Some(owner) = owner {
        line.extend(["-U", owner]);
    }
    line.extend(["-u", place::ACCOUNT, &program, "server"]);
    let ran = run("sudo", &line)?;
    Ok(if ran.is_success() {
        Way::Open
    } else {
        Way::Shut(ran.words())
    })
}
