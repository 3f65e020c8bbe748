//! The server's entry under the account of the install: the account's own world first, then the right to be the one server.

use std::path::PathBuf;

use crate::install::{self, account, lease};
use crate::owner::Failure;
use crate::place;

/// Makes the process the account's: its environment from nothing, its files for it alone. What the owner's sudo has left in
/// the environment is gone with the program's first life. A server that runs as somebody else is a test's.
pub(in crate::owner) fn enter() -> Result<(), Failure> {
    let Some(account) = account::own() else {
        return Ok(());
    };
    let failed = |what| move |source| Failure::System { what, source };
    account
        .settle()
        .map_err(failed("the account's home cannot be used"))?;
    if account.is_at_home() {
        return Ok(());
    }
    Err(failed("the server cannot be started anew")(
        account.start_over("server"),
    ))
}

/// Takes the locks of the one server, for the life of this process and of the browser that it starts.
pub(in crate::owner) fn lease() -> Result<Option<lease::ServerLease>, Failure> {
    if account::own().is_none() {
        return Ok(None);
    }
    let lease = lease::server().map_err(install::Failure::from)?;
    lease.hand_on().map_err(|source| Failure::System {
        what: "the lease cannot be handed on",
        source,
    })?;
    Ok(Some(lease))
}

/// The Chromium that may run under the account: the one that is wished for, where root alone can change it, or the one that the
/// install has unpacked. Whoever may start the server may run no program of their own choice as the account.
pub(in crate::owner) fn chromium(wished: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
    if account::own().is_none() {
        return Ok(wished);
    }
    let unpacked = place::LAYOUT.chromium();
    match wished {
        None => Ok(Some(unpacked).filter(|path| path.exists())),
        Some(path) => match install::is_roots_alone(&path) {
            Ok(()) => Ok(Some(path)),
            Err(why) => Err(Failure::ForeignChromium(why)),
        },
    }
}
