//! The session's parts, for `gpu-browser status`.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::desk::OpenPage;
use super::guard::mebibytes;
use super::keeper::Browser;
use super::session::Server;
use crate::relay::link::LinkState;

/// How a session is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The daemon's version.
    pub version: String,
    /// Seconds since its start began.
    pub up_s: u64,
    /// Seconds until it ends.
    pub ends_in_s: u64,
    /// `hardware` or `software`, and the rung.
    pub gpu: String,
    /// What is watched.
    pub parts: Vec<Part>,
    /// The open pages.
    pub pages: Vec<OpenPage>,
    /// Files uploaded.
    pub upload_files: usize,
    /// Their bytes.
    pub upload_bytes: usize,
    /// Requests that wait for the owner.
    pub requests_waiting: usize,
}

/// A part that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// `browser`, `display`, `proxy` or `link`.
    pub name: String,
    /// In a word.
    pub state: String,
    /// Seconds in this state.
    pub for_s: u64,
    /// How often it was started, or came back, after the first time.
    pub restarts: u64,
    /// What else there is to say.
    pub detail: String,
}

impl Server {
    /// All of it, as it is now.
    pub(super) fn status(&self) -> Status {
        let session = &self.session;
        let (upload_files, upload_bytes) = session.kit.uploads.total();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            up_s: self.began.elapsed().as_secs(),
            ends_in_s: session
                .end
                .duration_since(SystemTime::now())
                .unwrap_or_default()
                .as_secs(),
            gpu: format!(
                "{} ({})",
                session.truth.word(),
                session.truth.verdict().rung.name()
            ),
            parts: vec![
                self.browser_part(),
                self.display_part(),
                self.proxy_part(),
                self.link_part(),
            ],
            pages: self.pages(),
            upload_files,
            upload_bytes,
            requests_waiting: session.approvals.waiting(),
        }
    }

    fn browser_part(&self) -> Part {
        let vitals = &self.session.vitals;
        let (state, mut detail) = match &*self.session.browser.borrow() {
            Browser::Running(chromium) => ("running", chromium.version.clone()),
            Browser::Restarting => ("restarting", String::new()),
            Browser::Failed(reason) => ("failed", reason.clone()),
        };
        if let Some(bytes) = vitals.memory() {
            let (held, most) = (mebibytes(bytes), mebibytes(self.session.max_memory));
            detail.push_str(&format!(", {held} of {most} MiB"));
        }
        let frozen = self.session.pages.list().into_iter();
        let frozen: Vec<String> = frozen
            .filter(|opened| opened.watched.is_frozen())
            .map(|opened| opened.id.clone())
            .collect();
        if !frozen.is_empty() {
            detail.push_str(&format!(", frozen: {}", frozen.join(", ")));
        }
        part("browser", state, vitals.since(), vitals.restarts(), detail)
    }

    /// The display is started with its browser and ends with it.
    fn display_part(&self) -> Part {
        let vitals = &self.session.vitals;
        let verdict = self.session.truth.verdict();
        let state = match (
            &*self.session.browser.borrow(),
            verdict.rung.needs_display(),
        ) {
            (_, false) => "not needed",
            (Browser::Running(_), true) => "running",
            (_, true) => "down",
        };
        part(
            "display",
            state,
            vitals.since(),
            vitals.restarts(),
            verdict.display,
        )
    }

    fn proxy_part(&self) -> Part {
        let totals = self.session.kit.proxy.totals();
        let detail = format!(
            "{} connections open, {} refusals",
            totals.tunnels, totals.refusals
        );
        part("proxy", "running", self.began.elapsed(), 0, detail)
    }

    fn link_part(&self) -> Part {
        let status = self.link.status();
        let age = |since: &SystemTime| SystemTime::now().duration_since(*since).unwrap_or_default();
        let (state, since, detail) = match &status.state {
            LinkState::Connecting => (
                "connecting",
                self.began.elapsed(),
                self.relay_address.clone(),
            ),
            LinkState::Up { since, .. } => ("up", age(since), self.relay_address.clone()),
            LinkState::Away { since, reason } => (
                "away",
                age(since),
                format!("{}: {reason}", self.relay_address),
            ),
            LinkState::Ended(ending) => ("ended", Duration::ZERO, ending.to_string()),
        };
        part("link", state, since, status.reconnects, detail)
    }
}

fn part(name: &str, state: &str, since: Duration, restarts: u64, detail: String) -> Part {
    Part {
        name: name.to_owned(),
        state: state.to_owned(),
        for_s: since.as_secs(),
        restarts,
        detail,
    }
}
