//! `gpu-browser self-test`: the installed program, under the account, in a folder of its own, so that it never disturbs a
//! running server. Where nothing is installed, the present program, as `start --dev` would run it.

pub(super) mod body;
pub(super) mod processes;
pub(super) mod reach;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::unistd::User;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use super::installing::arguments::SelfTest;
use super::installing::{Voice, in_rule, need_root};
use super::{Failure, helper};
use crate::browser::account::Account;
use crate::browser::namespace::Program;
use crate::browser::spawn::{Launch, Log, prepare};
use crate::install::{self, State, Way};
use crate::place;
use crate::policy::limits::{INSTALL_LOG_LINES, SELF_TEST};

/// The folder of a self-test in the account's home. Chromium puts a socket below it, whose path has room for 107 bytes: no
/// longer than the server's own `tmp`.
const SCRATCH: &str = "try";
/// A body that has reported ends by itself.
const ENDING: Duration = Duration::from_secs(1);

/// One thing that was tested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Check {
    /// What.
    pub(super) name: String,
    /// Whether it is as it must be.
    pub(super) ok: bool,
    /// What was seen, and what to do where it is not well.
    pub(super) said: String,
}

impl Check {
    pub(super) fn new(name: &str, ok: bool, said: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            ok,
            said: said.into(),
        }
    }

    /// Its line on the screen.
    pub(super) fn line(&self) -> String {
        let mark = if self.ok { "ok  " } else { "FAIL" };
        format!("{mark} {}: {}", self.name, self.said)
    }
}

/// Runs it and says what was seen; done only where every check is.
pub(super) async fn run(arguments: SelfTest) -> Result<(), Failure> {
    if install::installed() != State::Absent {
        need_root()?;
    }
    let mut voice = Voice::new(arguments.json);
    if arguments.dry_run {
        return voice.say("plan", "start Chromium with its sandbox; prove WebGL2 and WebGPU by pixels; open and close a context; try to get past the proxy").await;
    }
    prove(&mut voice).await
}

/// Runs all checks, and writes down what they come to where something is installed.
pub(super) async fn prove(voice: &mut Voice) -> Result<(), Failure> {
    let is_installed = install::installed() != State::Absent;
    let (mut checks, log) = tested(is_installed).await?;
    if is_installed && let Some(owner) = in_rule() {
        checks.push(way_in(&owner));
    }
    for check in &checks {
        voice.say("check", &check.line()).await?;
    }
    let failed: Vec<&str> = checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| check.name.as_str())
        .collect();
    if is_installed {
        install::prove(failed.is_empty()).map_err(install::Failure::from)?;
    }
    if failed.is_empty() {
        return Ok(());
    }
    let what = if is_installed {
        "installed, not proven: "
    } else {
        ""
    };
    let log = log.tail(INSTALL_LOG_LINES);
    let log = if log.is_empty() {
        log
    } else {
        format!("\nthe end of the log:\n{log}")
    };
    Err(Failure::Unproven(format!(
        "{what}the self-test failed: {}{log}",
        failed.join(", ")
    )))
}

fn way_in(owner: &str) -> Check {
    let name = "the owner's way in";
    match install::way_in(Some(owner)) {
        Ok(Way::Open) => Check::new(
            name,
            true,
            format!("{owner} may start the server without a password"),
        ),
        Ok(Way::Shut(words)) => Check::new(
            name,
            false,
            format!("sudo refuses {owner}: {words}; mend it with `sudo gpu-browser update`"),
        ),
        Err(error) => Check::new(name, false, error.to_string()),
    }
}

/// Runs the body in a process of its own, as the account where there is one.
async fn tested(is_installed: bool) -> Result<(Vec<Check>, Log), Failure> {
    let scratch = tempfile::Builder::new()
        .prefix("gpu-browser-self-test-")
        .tempdir();
    let scratch =
        scratch.map_err(|source| system("cannot make a folder for the self-test", source))?;
    let mut program = Program {
        path: helper()?,
        arguments: vec!["__self-test".to_owned()],
        pipe: false,
    };
    let mut account = None;
    let mut base = scratch.path().to_owned();
    if is_installed {
        let found = install::account::find().ok_or(install::lease::Busy::NotInstalled);
        let found = found.map_err(install::Failure::from)?;
        base = found.home.join(SCRATCH);
        program.path = place::LAYOUT.installed();
        program.arguments.extend(closed());
        let chromium = place::LAYOUT.chromium();
        if chromium.exists() {
            program
                .arguments
                .extend(["--chromium".to_owned(), chromium.display().to_string()]);
        }
        account = Some(as_account(&found));
    } else {
        // The browser's account passes through.
        std::fs::set_permissions(&base, PermissionsExt::from_mode(0o711))
            .map_err(|source| system("cannot open the folder of the self-test", source))?;
    }
    let mut environment = install::account::environment(&base);
    environment.retain(|(name, _)| *name != "TMPDIR");
    environment.push(("TMPDIR", base.clone()));
    let launch = Launch {
        helper: program.path.clone(),
        account,
        environment,
        network: false,
    };
    let broke = |error: String| {
        system(
            "the self-test could not be started",
            std::io::Error::other(error),
        )
    };
    let waiting = prepare(&launch)
        .await
        .map_err(|error| broke(error.to_string()))?;
    let (process, output) = waiting
        .run(&program)
        .map_err(|error| broke(error.to_string()))?;
    let log = process.log();
    let read = tokio::task::spawn_blocking(move || report(output));
    let checks = match timeout(SELF_TEST, read).await {
        Ok(Ok(Ok(checks))) => checks,
        Ok(Ok(Err(error))) => vec![Check::new(
            "the self-test",
            false,
            format!("it ended without a report: {error}"),
        )],
        Ok(Err(error)) => return Err(broke(error.to_string())),
        Err(_) => vec![Check::new("the self-test", false, "it did not end in time")],
    };
    process.end(ENDING).await;
    // The account may have put a link there; what is removed is the link then.
    let _ = std::fs::remove_dir_all(&base);
    Ok((checks, log))
}

fn report(mut output: UnixStream) -> std::io::Result<Vec<Check>> {
    output.set_read_timeout(Some(SELF_TEST))?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The home that the account must find closed.
fn closed() -> Vec<String> {
    let owner = in_rule().and_then(|name| User::from_name(&name).ok().flatten());
    owner.map_or(Vec::new(), |owner| {
        vec!["--closed".to_owned(), owner.dir.display().to_string()]
    })
}

/// The account with all its groups: without them the GPU is lost.
fn as_account(found: &install::account::Account) -> Account {
    Account {
        uid: found.uid,
        gid: found.gid,
        groups: groups(found.gid),
        name: place::ACCOUNT.to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn groups(own: u32) -> Vec<u32> {
    let name = std::ffi::CString::new(place::ACCOUNT).unwrap_or_default();
    let groups = nix::unistd::getgrouplist(&name, nix::unistd::Gid::from_raw(own));
    groups
        .unwrap_or_default()
        .into_iter()
        .map(nix::unistd::Gid::as_raw)
        .collect()
}

/// No group grants the GPU there.
#[cfg(not(target_os = "linux"))]
fn groups(own: u32) -> Vec<u32> {
    vec![own]
}

fn system(what: &'static str, source: std::io::Error) -> Failure {
    Failure::System { what, source }
}

/// A report as the body writes it.
pub(super) fn written(checks: &[Check]) -> String {
    json!(checks).to_string()
}

/// Makes the folder that a body works in, as its environment names it; who started it takes it away.
pub(super) fn make_place() -> std::io::Result<()> {
    let folder = place::run_folder_base();
    std::fs::create_dir_all(&folder)?;
    if folder == Path::new("/tmp") {
        return Ok(());
    }
    // Where root tests without an install, the browser's account passes through.
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o711))
}
