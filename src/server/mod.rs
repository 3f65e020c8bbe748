//! One session: a browser that draws, a link that leads to it, and the tools between them.

pub mod answer;
pub mod archive;
pub mod arguments;
pub mod artifacts;
pub mod audit;
pub mod blank;
pub mod briefing;
mod chronicle;
mod keeper;
mod launch;
mod pages;
mod router;
mod session;
pub mod tools;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::browser::find::NotFound;
use crate::browser::probe::Verdict;
use crate::browser::rung::GpuChoice;
use crate::policy::allowlist::Allowlist;
use crate::policy::switches::OwnerSwitches;
use crate::relay::address::RelayAddress;

pub use self::session::Server;

/// What a session is made of.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Our own program, which becomes Chromium inside its namespace.
    pub helper: PathBuf,
    /// The Chromium that the owner named.
    pub chromium: Option<PathBuf>,
    /// Which rungs of the ladder may be taken.
    pub gpu: GpuChoice,
    /// GPU switches of the owner's.
    pub switches: OwnerSwitches,
    /// Chromium's own sandbox; off only in development.
    pub sandbox: bool,
    /// Where agents come from.
    pub relay: RelayChoice,
    /// How long it lasts.
    pub length: Duration,
    /// The hosts that pages may reach.
    pub allow: Allowlist,
    /// What the owner calls the link.
    pub label: String,
    /// The folder of the log, where there is one.
    pub log: Option<PathBuf>,
}

/// The relay of a session.
#[derive(Debug, Clone)]
pub enum RelayChoice {
    /// One of our own, on loopback.
    Local,
    /// One somewhere.
    At(RelayAddress),
}

/// What the owner is told.
#[derive(Debug, Clone)]
pub enum Event {
    /// What the start is doing.
    Progress(String),
    /// The link works.
    Ready(Box<Ready>),
    /// A call was answered.
    Call {
        /// Method and path.
        tool: String,
        /// The page it named.
        page: Option<String>,
        /// The status of the answer.
        status: u16,
        /// How long it took.
        ms: u64,
    },
    /// A page was opened, closed or lost.
    Page {
        /// Its name.
        page: String,
        /// `opened`, `closed` or `lost`.
        state: &'static str,
        /// What it shows.
        url: String,
    },
    /// A link is new, or dead and replaced.
    Link {
        /// The link.
        link: String,
        /// What the owner calls it.
        label: String,
        /// Why.
        reason: String,
    },
    /// The browser was lost, is back, or is given up.
    Browser {
        /// `lost`, `restarted` or `failed`.
        state: &'static str,
        /// Why.
        reason: Option<String>,
    },
    /// The relay is away, or back.
    Relay {
        /// `away` or `back`.
        state: &'static str,
        /// Why, and what to try.
        reason: Option<String>,
    },
    /// A host was refused.
    Refused {
        /// The host as it was asked for.
        host: String,
        /// The stable word.
        reason: &'static str,
    },
}

/// A session that works.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The link for the agent.
    pub link: String,
    /// The relay's address.
    pub relay: String,
    /// What the GPU was proven to do.
    pub gpu: Verdict,
    /// Chromium's version.
    pub version: String,
    /// Whether Chromium's own sandbox is on.
    pub sandbox: bool,
    /// Whether the browser has a network of its own, or why not.
    pub isolation: Result<(), String>,
    /// The account that the browser runs under, where it is not the daemon's.
    pub account: Option<String>,
    /// When the session ends.
    pub end: SystemTime,
    /// How long the start took.
    pub start_ms: u64,
}

/// Why a session could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no Chromium that will do.
    #[error(transparent)]
    NoBrowser(#[from] NotFound),
    /// No rung of the ladder draws.
    #[error("no way to draw was proven on this machine:\n  {}", .0.join("\n  "))]
    NothingDraws(Vec<String>),
    /// The browser did not start.
    #[error(transparent)]
    Launch(#[from] crate::browser::chromium::LaunchError),
    /// The proxy could not be made.
    #[error(transparent)]
    Proxy(#[from] crate::proxy::ProxyError),
    /// The run's folder could not be made.
    #[error("the folder of the run could not be made: {0}")]
    Folder(std::io::Error),
    /// The embedded relay could not be started.
    #[error(transparent)]
    Relay(#[from] crate::relay::embedded::BindError),
    /// The relay could not be reached, or refused us.
    #[error("{reason}. {fix}")]
    Link {
        /// What went wrong.
        reason: String,
        /// What to try.
        fix: String,
    },
}

impl StartError {
    /// The exit code of a program that ends with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoBrowser(_) | Self::NothingDraws(_) | Self::Launch(_) => 4,
            Self::Proxy(_) | Self::Folder(_) | Self::Relay(_) | Self::Link { .. } => 1,
        }
    }
}
