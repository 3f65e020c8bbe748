//! What the owner wants of a session: plain values from the command line and the config file, which travel as JSON to a
//! session that runs under another account, and become a [`ServerConfig`] where it runs.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::browser::rung::GpuChoice;
use crate::policy::allowlist::{Allowlist, Rule, RuleError};
use crate::policy::limits::{SESSION, SESSION_MINUTES_MOST};
use crate::policy::size::{SizeError, enough_memory};
use crate::policy::switches::{OwnerSwitches, SwitchRefusal};
use crate::relay::address::{AddressError, PlainHttp, RelayAddress};
use crate::server::{RelayChoice, ServerConfig};

/// A session as its owner wants it. Nothing in here weakens the boundary of an installed session: that Chromium keeps its
/// sandbox is no wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// The relay's address, or `local`.
    pub relay: String,
    /// The length of the session.
    pub minutes: u64,
    /// Rules of the allowlist beside the built-in ones.
    pub hosts: Vec<String>,
    /// Whether the built-in list counts.
    pub default_hosts: bool,
    /// Whether any public host may be reached.
    pub allow_any_public: bool,
    /// Which rungs may be taken.
    pub gpu: GpuChoice,
    /// The Chromium to start.
    pub chromium: Option<PathBuf>,
    /// GPU switches for it.
    pub chromium_flags: Vec<String>,
    /// What to call the first link.
    pub label: String,
    /// Bytes of memory that Chromium may hold; without it, a part of the machine's.
    #[serde(default)]
    pub max_memory: Option<u64>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            relay: "local".to_owned(),
            minutes: SESSION.as_secs() / 60,
            hosts: Vec::new(),
            default_hosts: true,
            allow_any_public: false,
            gpu: GpuChoice::Auto,
            chromium: None,
            chromium_flags: Vec::new(),
            label: "agent".to_owned(),
            max_memory: None,
        }
    }
}

/// Wishes that are each readable and cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Usage {
    /// A switch that Chromium may not get.
    #[error(transparent)]
    Switch(#[from] SwitchRefusal),
    /// A host that can never be allowed.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// No relay.
    #[error(transparent)]
    Relay(#[from] AddressError),
    /// No length of a session.
    #[error("a session lasts 1 to {SESSION_MINUTES_MOST} minutes, not {0}")]
    Minutes(u64),
    /// Too little memory.
    #[error("max memory: {0}")]
    Memory(#[from] SizeError),
}

impl Wish {
    /// The session that is wanted; `helper` is our own program, which becomes Chromium.
    ///
    /// # Errors
    /// Names the first wish that cannot be had.
    pub fn config(self, helper: PathBuf, sandbox: bool) -> Result<ServerConfig, Usage> {
        if !(1..=SESSION_MINUTES_MOST).contains(&self.minutes) {
            return Err(Usage::Minutes(self.minutes));
        }
        Ok(ServerConfig {
            helper,
            allow: self.allowlist()?,
            chromium: self.chromium,
            gpu: self.gpu,
            switches: OwnerSwitches::parse(&self.chromium_flags)?,
            sandbox,
            relay: relay_choice(&self.relay)?,
            length: Duration::from_secs(self.minutes * 60),
            label: self.label,
            max_memory: self.max_memory.map(enough_memory).transpose()?,
            log: None,
        })
    }

    fn allowlist(&self) -> Result<Allowlist, RuleError> {
        let own = self
            .hosts
            .iter()
            .map(|host| Rule::parse(host))
            .collect::<Result<Vec<_>, _>>()?;
        let built_in = self.default_hosts.then(Allowlist::default_rules);
        let list = Allowlist::new(built_in.into_iter().flatten().chain(own));
        Ok(if self.allow_any_public {
            list.or_any_public()
        } else {
            list
        })
    }
}

/// The relay of a word.
pub(super) fn relay_choice(text: &str) -> Result<RelayChoice, AddressError> {
    match text {
        "local" => Ok(RelayChoice::Local),
        url => RelayAddress::parse(url, PlainHttp::LoopbackOnly).map(RelayChoice::At),
    }
}
