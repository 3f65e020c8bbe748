//! Loading a page, up to an event of its life or a deadline: what is there at the deadline is better than nothing.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::command::{Crash, Evaluate, Navigate, RemoteObject};
use super::fold::Life;
use super::page::{Page, PageError};
use super::pipe::CallError;

/// How long a page that is asked for nothing but a word may think about it before it counts as hung.
const RESPONSIVE: Duration = Duration::from_secs(2);
/// Canvases that are described; the rest is counted.
const CANVASES: usize = 16;

/// How far a page must have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitUntil {
    /// The answer has come and the document begins.
    Commit,
    /// The document is parsed.
    DomContentLoaded,
    /// Its images, scripts and styles are there.
    #[default]
    Load,
    /// Loaded, and no request for half a second; streams that stay open do not count.
    NetworkIdle,
}

/// What became of a navigation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Navigation {
    /// Chromium's word for why there is no document.
    pub net_error: Option<String>,
    /// The deadline came first.
    pub timed_out: bool,
}

/// What a page shows, seen from the world of our own scripts.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Summary {
    /// The title.
    pub title: String,
    /// The address.
    pub url: String,
    /// The page's scroll position, CSS pixels.
    pub scroll: (f64, f64),
    /// All canvases of the page's own document.
    pub canvas_count: usize,
    /// The first of them.
    pub canvases: Vec<Canvas>,
}

/// A canvas of a page.
#[derive(Debug, Clone, PartialEq, Deserialize, serde::Serialize)]
pub struct Canvas {
    /// Its `id`, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Pixels of its bitmap.
    pub width: u32,
    /// Pixels of its bitmap.
    pub height: u32,
    /// Where it lies in the viewport, CSS pixels: left, top, width, height.
    #[serde(rename = "box")]
    pub bounds: [f64; 4],
}

impl Page {
    /// Goes to an address and waits for what `until` says, or for the deadline.
    pub async fn navigate(
        &self,
        url: &str,
        until: WaitUntil,
        deadline: Instant,
    ) -> Result<Navigation, PageError> {
        self.observed.take_events();
        self.observed.revive();
        let navigating = self
            .connection
            .start(Some(&self.session), &Navigate { url });
        let Ok(navigated) = timeout_at(deadline, navigating).await else {
            return Ok(Navigation {
                timed_out: true,
                ..Navigation::default()
            });
        };
        let navigated = match navigated {
            // A page that crashes as it is opened: the crash is the news.
            Err(CallError::Crashed) => return Err(CallError::Crashed.into()),
            other => other?,
        };
        if let Some(error) = navigated.error_text {
            return Ok(Navigation {
                net_error: Some(error),
                timed_out: false,
            });
        }
        let event = match until {
            WaitUntil::Commit => "commit",
            WaitUntil::DomContentLoaded => "DOMContentLoaded",
            WaitUntil::Load | WaitUntil::NetworkIdle => "load",
        };
        // No loader: the move stayed inside the document, and is done.
        let Some(loader) = navigated.loader_id else {
            return Ok(Navigation::default());
        };
        let mut timed_out = timeout_at(deadline, self.observed.reached(&loader, event))
            .await
            .is_err();
        // Chromium's own `networkIdle` never comes where an EventSource is open.
        if until == WaitUntil::NetworkIdle && !timed_out && self.life() == Life::Alive {
            timed_out = !self.until_quiet(deadline).await?;
        }
        match self.life() {
            Life::Alive => Ok(Navigation {
                net_error: None,
                timed_out,
            }),
            Life::Crashed => Err(CallError::Crashed.into()),
            // The end of a browser ends its pages too: that is the news.
            Life::Closed if self.is_orphan() => Err(CallError::Closed.into()),
            Life::Closed => Err(CallError::Detached.into()),
        }
    }

    /// Waits until a selector matches something, or for the deadline; `false` where the deadline came first.
    pub async fn wait_for(&self, selector: &str, deadline: Instant) -> Result<bool, PageError> {
        const WAIT: &str = r"selector => new Promise((done, fail) => {
            const look = () => { try { return document.querySelector(selector) } catch (error) { fail(error); return true } };
            if (look()) return done(true);
            const watch = new MutationObserver(() => { if (look()) { watch.disconnect(); done(true) } });
            watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
        })";
        let script = format!("({WAIT})({})", serde_json::Value::from(selector));
        loop {
            match timeout_at(deadline, self.ours(&script)).await {
                Err(_) => return Ok(false),
                Ok(Ok(Ok(_))) => return Ok(true),
                Ok(Ok(Err(thrown))) => return Err(PageError::BadSelector(thrown)),
                // The document went away under the wait: wait in the next one.
                Ok(Err(CallError::Refused { .. })) => tokio::task::yield_now().await,
                Ok(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// The title, the address and the canvases.
    pub async fn summary(&self) -> Result<Summary, PageError> {
        let script = format!(
            "(() => {{
                const all = [...document.querySelectorAll('canvas')];
                const describe = canvas => {{
                    const box = canvas.getBoundingClientRect();
                    return {{id: canvas.id || null, width: canvas.width, height: canvas.height,
                        box: [box.x, box.y, box.width, box.height]}};
                }};
                return {{title: document.title, url: location.href, scroll: [scrollX, scrollY],
                    canvas_count: all.length, canvases: all.slice(0, {CANVASES}).map(describe)}};
            }})()"
        );
        let deadline = Instant::now() + RESPONSIVE;
        let value = self.ask(&script, deadline).await?;
        serde_json::from_value(value).map_err(|_| {
            CallError::Malformed {
                method: "Runtime.evaluate",
            }
            .into()
        })
    }

    /// Scrolls to what a selector matches, and says where in the document it lies: left, top, width, height in CSS
    /// pixels. `None` where it matches nothing.
    pub async fn bounds_of(
        &self,
        selector: &str,
        deadline: Instant,
    ) -> Result<Option<[f64; 4]>, PageError> {
        let selector = serde_json::Value::from(selector);
        let script = format!(
            "(() => {{
                const found = document.querySelector({selector});
                if (!found) return null;
                found.scrollIntoView({{block: 'nearest', inline: 'nearest', behavior: 'instant'}});
                const box = found.getBoundingClientRect();
                return [box.x + scrollX, box.y + scrollY, box.width, box.height];
            }})()"
        );
        let value = self.ask(&script, deadline).await?;
        serde_json::from_value(value).map_err(|_| {
            CallError::Malformed {
                method: "Runtime.evaluate",
            }
            .into()
        })
    }

    /// Whether the page's scripts still run: a loop without an end holds them for ever.
    pub async fn is_responsive(&self) -> bool {
        self.ask("1", Instant::now() + RESPONSIVE).await.is_ok()
    }

    /// Kills the renderer: the one thing that reaches a page whose scripts hang.
    pub async fn kill(&self) {
        let _ = timeout_at(
            Instant::now() + RESPONSIVE,
            self.connection.start(Some(&self.session), &Crash {}),
        )
        .await;
    }

    /// A question to the document in the world of our own scripts.
    pub(super) async fn ask(
        &self,
        script: &str,
        deadline: Instant,
    ) -> Result<serde_json::Value, PageError> {
        match timeout_at(deadline, self.ours(script)).await {
            Err(_) => Err(PageError::Timeout),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(Err(thrown))) => Err(PageError::BadSelector(thrown)),
            Ok(Ok(Ok(result))) => Ok(result.value.unwrap_or_default()),
        }
    }

    /// Runs a script in our world; the inner error is what it threw.
    async fn ours(&self, script: &str) -> Result<Result<RemoteObject, String>, CallError> {
        let world = self.world().await?;
        let evaluate = Evaluate {
            expression: script,
            context_id: Some(world),
            return_by_value: true,
            await_promise: true,
            repl_mode: false,
            user_gesture: false,
        };
        match self.connection.start(Some(&self.session), &evaluate).await {
            Err(error @ CallError::Refused { .. }) => {
                self.forget_world();
                Err(error)
            }
            Err(error) => Err(error),
            Ok(evaluated) => Ok(match evaluated.exception_details {
                None => Ok(evaluated.result),
                Some(details) => Err(details
                    .exception
                    .and_then(|thrown| thrown.description)
                    .unwrap_or(details.text)),
            }),
        }
    }
}
