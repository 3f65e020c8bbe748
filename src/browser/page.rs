//! A page of the agent's: in a context of its own, primed for the proxy, in a window of its own so that it always draws.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use super::chromium::{Chromium, PRIME_URL};
use super::command::look::GetResponseBody;
use super::command::{
    CloseTarget, CreateBrowserContext, CreateIsolatedWorld, CreateTarget, DisposeBrowserContext,
    EnableLog, EnablePage, EnableRuntime, Navigate, ResetHistory, SetAutoAttach, SetDeviceMetrics,
    SetDownloadBehavior, SetFocusEmulation, SetLifecycleEvents,
};
use super::fold::Life;
use super::observed::{Observed, network};
use super::pipe::{CallError, Connection};
use super::targets::{Attached, Credential, Targets};

/// Why something on a page did not work.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PageError {
    /// The wire's reason.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The page's context could not be primed for the proxy.
    #[error("the page could not be primed for the proxy: {0}")]
    NotPrimed(String),
    /// A selector does not parse.
    #[error("{0}")]
    BadSelector(String),
    /// Its deadline came.
    #[error("the page did not answer in time")]
    Timeout,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text, decoded by the browser.
    Text(String),
    /// Anything else.
    Binary(Vec<u8>),
}

/// The size that a page believes in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Viewport {
    /// CSS pixels.
    pub width: u32,
    /// CSS pixels.
    pub height: u32,
    /// Device pixels a CSS pixel.
    pub scale: f64,
}

impl Viewport {
    /// Device pixels of its two sides.
    pub fn pixels(&self) -> (u32, u32) {
        let side = |css: u32| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 8,192 times 4"
            )]
            let pixels = (f64::from(css) * self.scale).round() as u32;
            pixels.max(1)
        };
        (side(self.width), side(self.height))
    }
}

/// An open page.
pub struct Page {
    pub(super) connection: Connection,
    pub(super) session: Arc<str>,
    pub(super) target: String,
    /// Its events.
    pub observed: Arc<Observed>,
    /// One picture at a time: a screencast belongs to the session, not to the call.
    pub(super) camera: tokio::sync::Mutex<()>,
    targets: Arc<Targets>,
    context: String,
    /// Its name and password at the proxy.
    credential: Credential,
    viewport: Mutex<Viewport>,
    world: Mutex<Option<(String, i64)>>,
}

impl Page {
    /// Opens a blank page in a new context and primes it for the proxy; where that fails, the context is gone again.
    pub async fn open(
        chromium: &Chromium,
        credential: Credential,
        viewport: Viewport,
    ) -> Result<Self, PageError> {
        let connection = &chromium.connection;
        let context = connection
            .start(
                None,
                &CreateBrowserContext {
                    dispose_on_detach: true,
                },
            )
            .await?
            .browser_context_id;
        let opened = Self::open_in(&context, chromium, credential, viewport).await;
        if opened.is_err() {
            chromium.targets.forget(&context);
            connection.tell(
                None,
                &DisposeBrowserContext {
                    browser_context_id: &context,
                },
            );
        }
        opened
    }

    async fn open_in(
        context: &str,
        chromium: &Chromium,
        credential: Credential,
        viewport: Viewport,
    ) -> Result<Self, PageError> {
        let connection = chromium.connection.clone();
        let observed = Observed::new(connection.clone());
        let attached = chromium.targets.expect(context, &observed);
        connection.tell(
            None,
            &SetDownloadBehavior {
                behavior: "deny",
                browser_context_id: context,
                events_enabled: true,
            },
        );
        let create = CreateTarget {
            url: "about:blank",
            browser_context_id: context,
            width: viewport.width.min(1_280),
            height: viewport.height.min(1_024),
            new_window: true,
        };
        connection.start(None, &create).await?;
        let Attached { target, session } = attached.await.map_err(|_| CallError::Closed)?;
        let page = Self {
            connection,
            session,
            target,
            observed,
            camera: tokio::sync::Mutex::default(),
            targets: Arc::clone(&chromium.targets),
            context: context.to_owned(),
            credential,
            viewport: Mutex::new(viewport),
            world: Mutex::default(),
        };
        page.set_up().await?;
        page.prime().await?;
        page.observed.forget_events();
        Ok(page)
    }

    /// One burst of commands; the last one's answer says that all were taken.
    async fn set_up(&self) -> Result<(), CallError> {
        let session = Some(&self.session);
        self.connection.tell(session, &EnablePage {});
        self.connection
            .tell(session, &SetLifecycleEvents { enabled: true });
        self.connection.tell(session, &EnableRuntime {});
        self.connection.tell(session, &EnableLog {});
        self.connection.tell(session, &network());
        let attach = SetAutoAttach {
            auto_attach: true,
            wait_for_debugger_on_start: true,
            flatten: true,
        };
        self.connection.tell(session, &attach);
        self.connection
            .tell(session, &SetFocusEmulation { enabled: true });
        let viewport = self.viewport();
        self.connection.start(session, &metrics(viewport)).await?;
        Ok(())
    }

    /// Its name at the proxy.
    pub fn user(&self) -> &str {
        &self.credential.user
    }

    /// Loads the priming page: the proxy asks for the password once, and the context remembers it until Chromium's
    /// network service is started anew.
    pub async fn prime(&self) -> Result<(), PageError> {
        self.targets.prime(&self.target, self.credential.clone());
        let navigated = self
            .connection
            .start(Some(&self.session), &Navigate { url: PRIME_URL })
            .await?;
        if let Some(error) = navigated.error_text {
            return Err(PageError::NotPrimed(error));
        }
        self.connection
            .start(Some(&self.session), &Navigate { url: "about:blank" })
            .await?;
        self.connection.tell(Some(&self.session), &ResetHistory {});
        self.observed.take_events();
        Ok(())
    }

    /// Its size.
    pub fn viewport(&self) -> Viewport {
        *self.viewport.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives it another size.
    pub async fn set_viewport(&self, viewport: Viewport) -> Result<(), CallError> {
        if self.viewport() == viewport {
            return Ok(());
        }
        self.connection
            .start(Some(&self.session), &metrics(viewport))
            .await?;
        *self.viewport.lock().unwrap_or_else(PoisonError::into_inner) = viewport;
        Ok(())
    }

    /// The world of our own scripts in the document that is shown: what the page has redefined is not redefined there.
    pub(super) async fn world(&self) -> Result<i64, CallError> {
        let loader = self.observed.document().loader;
        let known = self
            .world
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some((_, world)) = known.filter(|(document, _)| *document == loader) {
            return Ok(world);
        }
        let create = CreateIsolatedWorld {
            frame_id: &self.target,
            world_name: "gpu-browser",
        };
        let world = self
            .connection
            .start(Some(&self.session), &create)
            .await?
            .execution_context_id;
        *self.world.lock().unwrap_or_else(PoisonError::into_inner) = Some((loader, world));
        Ok(world)
    }

    /// Forgets the world of our scripts: it belonged to a document that is gone.
    pub(super) fn forget_world(&self) {
        *self.world.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The body of a request's answer, where the browser still has it.
    pub async fn response_body(
        &self,
        request_id: &str,
        session: Option<&Arc<str>>,
    ) -> Result<Body, PageError> {
        let session = session.unwrap_or(&self.session);
        let command = GetResponseBody { request_id };
        let answered = self.connection.start(Some(session), &command).await?;
        if !answered.base64_encoded {
            return Ok(Body::Text(answered.body));
        }
        let decoded = BASE64_STANDARD.decode(answered.body);
        let malformed = |_| CallError::Malformed {
            method: "Network.getResponseBody",
        };
        Ok(Body::Binary(decoded.map_err(malformed)?))
    }

    /// Whether the page is there.
    pub fn life(&self) -> Life {
        self.observed.life()
    }

    /// Whether its browser is gone.
    pub fn is_orphan(&self) -> bool {
        self.connection.is_gone()
    }

    /// Whether it is a page of this browser.
    pub fn belongs_to(&self, chromium: &Chromium) -> bool {
        Arc::ptr_eq(&self.targets, &chromium.targets)
    }

    /// Closes it and its context, hung or not.
    pub async fn close(&self) {
        self.targets.forget(&self.context);
        self.connection.tell(
            None,
            &CloseTarget {
                target_id: &self.target,
            },
        );
        let dispose = DisposeBrowserContext {
            browser_context_id: &self.context,
        };
        let _ = self.connection.start(None, &dispose).await;
    }
}

fn metrics(viewport: Viewport) -> SetDeviceMetrics {
    let Viewport {
        width,
        height,
        scale,
    } = viewport;
    SetDeviceMetrics {
        width,
        height,
        device_scale_factor: scale,
        mobile: false,
    }
}
