//! The command lines of `install` and what belongs to it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// How a change is made.
#[derive(Debug, Clone, Args)]
pub struct Manner {
    /// Print the plan and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Ask nothing
    #[arg(long)]
    pub yes: bool,
    /// One JSON event a line on standard output, for programs
    #[arg(long)]
    pub json: bool,
    /// Kill the process after so many effects: for tests of what a kill leaves
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, default_value_t = 0)]
    pub stop_after: u32,
}

/// What a version is made from.
#[derive(Debug, Clone, Args)]
pub struct Source {
    /// Who may start the server; the caller of sudo unless given
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// A Chrome for Testing (zip) to unpack beside the program, in place of the system's Chromium
    #[arg(long, value_name = "FILE", requires = "sha256")]
    pub chromium_archive: Option<PathBuf>,
    /// The SHA-256 of that archive, 64 hex digits
    #[arg(long, value_name = "HEX", requires = "chromium_archive", value_parser = sha256)]
    pub sha256: Option<String>,
    /// Leave the self-test for later; what is installed is then not proven (exit code 5)
    #[arg(long)]
    pub skip_self_test: bool,
}

/// `gpu-browser install`.
#[derive(Debug, Args)]
pub struct Install {
    /// What it is made from.
    #[command(flatten)]
    pub source: Source,
    /// Take back a run that was left unfinished
    #[arg(long, conflicts_with_all = ["chromium_archive", "skip_self_test"])]
    pub undo: bool,
    /// How.
    #[command(flatten)]
    pub manner: Manner,
}

/// `gpu-browser update`.
#[derive(Debug, Args)]
pub struct Update {
    /// What it is made from.
    #[command(flatten)]
    pub source: Source,
    /// How.
    #[command(flatten)]
    pub manner: Manner,
}

/// `gpu-browser uninstall`.
#[derive(Debug, Args)]
pub struct Uninstall {
    /// How.
    #[command(flatten)]
    pub manner: Manner,
}

/// `gpu-browser self-test`.
#[derive(Debug, Args)]
pub struct SelfTest {
    /// Print what would be tested, and test nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Accepted for scripts: a self-test asks nothing
    #[arg(long)]
    pub yes: bool,
    /// One JSON object a check on standard output
    #[arg(long)]
    pub json: bool,
}

/// `gpu-browser doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Run the commands that mend what needs no decision
    #[arg(long)]
    pub fix: bool,
    /// With --fix: say what would be run, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Accepted for scripts: a doctor asks nothing
    #[arg(long)]
    pub yes: bool,
    /// One JSON object a finding on standard output
    #[arg(long)]
    pub json: bool,
    /// A relay to reach
    #[arg(long, value_name = "URL")]
    pub relay: Option<String>,
}

/// The body of the self-test.
#[derive(Debug, Args)]
pub struct SelfTestBody {
    /// The home that must be closed to us.
    #[arg(long)]
    pub closed: Option<PathBuf>,
    /// The Chromium.
    #[arg(long)]
    pub chromium: Option<PathBuf>,
}

/// A connection from where a browser lives.
#[derive(Debug, Args)]
pub struct Reach {
    /// A process of that browser.
    pub process: u32,
    /// Where to.
    pub to: SocketAddr,
}

fn sha256(text: &str) -> Result<String, String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.to_lowercase())
    } else {
        Err("a SHA-256 has 64 hex digits".to_owned())
    }
}
