//! The commands of the Chrome DevTools Protocol that we send, each with what we need of its answer.
//!
//! Answers name only the fields that are read and tolerate all others, so that a newer Chromium stays understood.
//! `tests/protocol.rs` holds every name here against the published protocol.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A command: its parameters are the type itself.
pub trait Command: Serialize {
    /// `Domain.command`.
    const METHOD: &'static str;
    /// What is read of the answer.
    type Reply: DeserializeOwned + Send + 'static;
}

/// An answer that says nothing but "done".
#[derive(Debug, Deserialize)]
pub struct NoReply {}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? = $method:literal -> $reply:ty {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty),* $(,)?
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Serialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name $(<$life>)? {
                $($(#[$field_doc])* #[serde(skip_serializing_if = "is_absent")] pub $field: $kind,)*
            }
            impl $(<$life>)? Command for $name $(<$life>)? {
                const METHOD: &'static str = $method;
                type Reply = $reply;
            }
        )*
        /// Each command's name with its parameters' names, for the test against the published protocol.
        pub const SENT: &[(&str, &[&str])] = &[$(($method, &[$(stringify!($field)),*])),*];
    };
}

/// Whether a field is an `Option` without a value; only those are left out.
fn is_absent<T: Absent>(value: &T) -> bool {
    value.absent()
}

trait Absent {
    fn absent(&self) -> bool {
        false
    }
}
impl<T> Absent for Option<T> {
    fn absent(&self) -> bool {
        self.is_none()
    }
}
impl Absent for bool {}
impl Absent for u32 {}
impl Absent for f64 {}
impl Absent for &str {}
impl Absent for Value {}
impl<T> Absent for Vec<T> {}

pub mod act;
pub mod lifecycle;

commands! {
    /// The browser's product and protocol.
    GetVersion = "Browser.getVersion" -> Version {}
    /// What becomes of downloads in a context.
    SetDownloadBehavior<'a> = "Browser.setDownloadBehavior" -> NoReply {
        /// `deny`.
        behavior: &'a str,
        /// The context.
        browser_context_id: &'a str,
        /// Whether `Browser.downloadWillBegin` is sent.
        events_enabled: bool,
    }
    /// A context: cookies, storage and cache of its own.
    CreateBrowserContext = "Target.createBrowserContext" -> CreatedContext {
        /// Whether it ends with the connection.
        dispose_on_detach: bool,
    }
    /// Ends a context and every page in it.
    DisposeBrowserContext<'a> = "Target.disposeBrowserContext" -> NoReply {
        /// The context.
        browser_context_id: &'a str,
    }
    /// A page.
    CreateTarget<'a> = "Target.createTarget" -> CreatedTarget {
        /// What it shows first.
        url: &'a str,
        /// The context it lives in.
        browser_context_id: &'a str,
        /// Width of its window, outer, DIP.
        width: u32,
        /// Height of its window, outer, DIP.
        height: u32,
        /// A window of its own: a page in a background tab stops drawing.
        new_window: bool,
    }
    /// Closes a page.
    CloseTarget<'a> = "Target.closeTarget" -> NoReply {
        /// The page.
        target_id: &'a str,
    }
    /// Attaches to everything that comes to be.
    SetAutoAttach = "Target.setAutoAttach" -> NoReply {
        /// On or off.
        auto_attach: bool,
        /// New targets wait until they are told to run.
        wait_for_debugger_on_start: bool,
        /// One connection for all sessions.
        flatten: bool,
    }
    /// Lets a target run that waits.
    RunIfWaiting = "Runtime.runIfWaitingForDebugger" -> NoReply {}
    /// Events of a page.
    EnablePage = "Page.enable" -> NoReply {}
    /// Events of its scripts.
    EnableRuntime = "Runtime.enable" -> NoReply {}
    /// What the browser itself logs.
    EnableLog = "Log.enable" -> NoReply {}
    /// Events of its requests.
    EnableNetwork = "Network.enable" -> NoReply {
        /// Bytes of bodies kept for us.
        max_total_buffer_size: u32,
        /// The same for one resource.
        max_resource_buffer_size: u32,
    }
    /// Whether `Page.lifecycleEvent` is sent.
    SetLifecycleEvents = "Page.setLifecycleEventsEnabled" -> NoReply {
        /// On or off.
        enabled: bool,
    }
    /// The size that a page believes in.
    SetDeviceMetrics = "Emulation.setDeviceMetricsOverride" -> NoReply {
        /// CSS pixels.
        width: u32,
        /// CSS pixels.
        height: u32,
        /// Device pixels a CSS pixel.
        device_scale_factor: f64,
        /// A phone's layout.
        mobile: bool,
    }
    /// A page believes that it has the focus.
    SetFocusEmulation = "Emulation.setFocusEmulationEnabled" -> NoReply {
        /// On or off.
        enabled: bool,
    }
    /// Goes to an address.
    Navigate<'a> = "Page.navigate" -> Navigated {
        /// The address.
        url: &'a str,
    }
    /// Forgets where a page has been.
    ResetHistory = "Page.resetNavigationHistory" -> NoReply {}
    /// Answers a dialog.
    HandleDialog = "Page.handleJavaScriptDialog" -> NoReply {
        /// OK or cancel.
        accept: bool,
    }
    /// Kills a page's renderer.
    Crash = "Page.crash" -> NoReply {}
    /// A world of scripts that the page's own cannot touch.
    CreateIsolatedWorld<'a> = "Page.createIsolatedWorld" -> IsolatedWorld {
        /// The frame.
        frame_id: &'a str,
        /// Its name.
        world_name: &'a str,
    }
    /// Whether a script parses.
    CompileScript<'a> = "Runtime.compileScript" -> Compiled {
        /// The script.
        expression: &'a str,
        /// Its name in errors.
        #[serde(rename = "sourceURL")]
        source_url: &'a str,
        /// Whether it may be run later.
        persist_script: bool,
    }
    /// Runs a script.
    Evaluate<'a> = "Runtime.evaluate" -> Evaluated {
        /// The script.
        expression: &'a str,
        /// The world, or the page's own.
        context_id: Option<i64>,
        /// The value itself instead of a handle.
        return_by_value: bool,
        /// Waits for a promise.
        await_promise: bool,
        /// As the console has it: top-level `await`, the last statement's value.
        repl_mode: bool,
        /// Counts as the user's doing.
        user_gesture: bool,
    }
    /// Stops the script that runs.
    TerminateExecution = "Runtime.terminateExecution" -> NoReply {}
    /// A picture.
    CaptureScreenshot<'a> = "Page.captureScreenshot" -> NoReply {
        /// `png`, `jpeg` or `webp`.
        format: &'a str,
        /// 0 to 100, JPEG and WebP.
        quality: Option<u32>,
        /// A part of the page.
        clip: Option<Clip>,
        /// Beyond the viewport.
        capture_beyond_viewport: bool,
        /// A fast deflate, PNG only.
        optimize_for_speed: bool,
    }
    /// The size of a page's content.
    GetLayoutMetrics = "Page.getLayoutMetrics" -> LayoutMetrics {}
    /// Pauses requests that match, and asks us for the proxy's password.
    EnableFetch<'a> = "Fetch.enable" -> NoReply {
        /// What is paused.
        patterns: Vec<RequestPattern<'a>>,
        /// Whether passwords are asked of us.
        handle_auth_requests: bool,
    }
    /// Lets a paused request go on.
    ContinueRequest<'a> = "Fetch.continueRequest" -> NoReply {
        /// The request.
        request_id: &'a str,
    }
    /// Answers a question for a password.
    ContinueWithAuth<'a> = "Fetch.continueWithAuth" -> NoReply {
        /// The request.
        request_id: &'a str,
        /// The answer.
        auth_challenge_response: AuthAnswer<'a>,
    }
}

pub mod look;

/// Which requests `Fetch` pauses.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestPattern<'a> {
    /// With `*` for any text.
    pub url_pattern: &'a str,
}

/// The answer to a question for a password.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthAnswer<'a> {
    /// `ProvideCredentials` or `CancelAuth`.
    pub response: &'a str,
    /// The user name.
    pub username: &'a str,
    /// The password.
    pub password: &'a str,
}
impl Absent for AuthAnswer<'_> {}

/// A rectangle of a page, CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Clip {
    /// From the left of the page.
    pub x: f64,
    /// From the top of the page.
    pub y: f64,
    /// CSS pixels.
    pub width: f64,
    /// CSS pixels.
    pub height: f64,
    /// Picture pixels a CSS pixel, times the device scale factor.
    pub scale: f64,
}

/// `Browser.getVersion`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `Chrome/156.0.8078.114`.
    pub product: String,
}

/// `Target.createBrowserContext`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedContext {
    /// The context.
    pub browser_context_id: String,
}

/// `Target.createTarget`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedTarget {
    /// The page.
    pub target_id: String,
}

/// `Page.navigate`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    /// The document that is loaded; none for a move inside the same one.
    pub loader_id: Option<String>,
    /// Chromium's word for why it failed.
    pub error_text: Option<String>,
}

/// `Page.createIsolatedWorld`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IsolatedWorld {
    /// The world.
    pub execution_context_id: i64,
}

/// `Runtime.compileScript`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compiled {
    /// Why it does not parse.
    pub exception_details: Option<ExceptionDetails>,
}

/// `Runtime.evaluate`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluated {
    /// What came out.
    pub result: RemoteObject,
    /// What was thrown.
    pub exception_details: Option<ExceptionDetails>,
}

/// A value of a page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteObject {
    /// `object`, `function`, `string`, `undefined`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Its class, for objects.
    pub class_name: Option<String>,
    /// The value, where it has one in JSON.
    pub value: Option<Value>,
    /// `NaN`, `-0`, `Infinity`, `12n`.
    pub unserializable_value: Option<String>,
    /// How it reads in the console.
    pub description: Option<String>,
    /// The handle.
    pub object_id: Option<String>,
}

/// What a script threw.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExceptionDetails {
    /// `Uncaught` and the like.
    pub text: String,
    /// The thing thrown.
    pub exception: Option<RemoteObject>,
    /// Where: the address of the script.
    pub url: Option<String>,
    /// Where: the line, from 0.
    pub line_number: u32,
    /// Where: the column, from 0.
    pub column_number: u32,
}

/// `Page.getLayoutMetrics`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayoutMetrics {
    /// The part that is seen, CSS pixels.
    pub css_visual_viewport: VisualViewport,
    /// The whole, CSS pixels.
    pub css_content_size: ContentSize,
}

/// Where a page is scrolled to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisualViewport {
    /// From the left of the page.
    pub page_x: f64,
    /// From the top of the page.
    pub page_y: f64,
}

/// The size of a page's content.
#[derive(Debug, Deserialize)]
pub struct ContentSize {
    /// CSS pixels.
    pub width: f64,
    /// CSS pixels.
    pub height: f64,
}
