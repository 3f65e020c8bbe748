//! One session: a browser that draws, a link that leads to it, and the tools between them.

pub mod answer;
mod approvals;
pub mod archive;
pub mod arguments;
pub mod artifacts;
pub mod audit;
pub mod blank;
pub mod briefing;
pub mod canary;
mod chronicle;
pub mod desk;
pub mod event;
mod guard;
mod herald;
mod keeper;
mod launch;
mod linked;
mod pages;
mod relay_wait;
mod router;
mod session;
mod sight;
pub mod status;
pub mod tools;
mod truth;

use std::path::PathBuf;
use std::time::Duration;

use crate::browser::find::NotFound;
use crate::browser::rung::GpuChoice;
use crate::policy::allowlist::Allowlist;
use crate::policy::switches::OwnerSwitches;
use crate::relay::address::RelayAddress;

pub use self::desk::run;
pub use self::event::{Event, Ready};

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
    /// Bytes of memory that Chromium may hold, where the owner has said it.
    pub max_memory: Option<u64>,
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
    /// The browser does not stay inside the proxy, or that could not be seen.
    #[error(transparent)]
    Canary(#[from] canary::CanaryError),
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
    /// Whoever wanted the session listens no more.
    #[error("the start was given up")]
    Unwanted,
}

impl StartError {
    /// The exit code of a program that ends with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoBrowser(_) | Self::NothingDraws(_) | Self::Launch(_) | Self::Canary(_) => 4,
            Self::Proxy(_)
            | Self::Folder(_)
            | Self::Relay(_)
            | Self::Link { .. }
            | Self::Unwanted => 1,
        }
    }
}
