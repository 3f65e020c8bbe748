//! What the owner is told, and what the log keeps. The names are promises: to programs that read `--json`, and to the owner's
//! command, which may be another process than the session.

use serde::{Deserialize, Serialize};

use crate::browser::probe::Verdict;

/// Something happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// What the start is doing.
    Progress {
        /// In words.
        text: String,
    },
    /// The link works.
    Ready(Box<Ready>),
    /// A call was answered.
    Call {
        /// Method and path.
        tool: String,
        /// The page it named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<String>,
        /// The status of the answer.
        status: u16,
        /// How long it took.
        ms: u64,
    },
    /// A page was opened, closed or lost, or its owner is protected from it.
    Page {
        /// Its name.
        page: String,
        /// What became of it.
        state: PageState,
        /// What it shows.
        url: String,
        /// Why, where it was frozen or killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody has called for long; the session goes on.
    Idle {
        /// Since the last call.
        minutes: u64,
    },
    /// A link is new, or dead and replaced.
    Link {
        /// The link; empty where the relay would not make one.
        link: String,
        /// What the owner calls it.
        label: String,
        /// Why.
        reason: String,
    },
    /// The browser was lost, is back, or is given up.
    Browser {
        /// How it is.
        state: BrowserState,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The relay is away, or back.
    Relay {
        /// How it is.
        state: RelayState,
        /// Why, and what to try.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A host was refused.
    Refused {
        /// The host as it was asked for.
        host: String,
        /// The stable word.
        reason: String,
    },
    /// An agent asks for more hosts: a question for the owner.
    Request {
        /// What an answer names.
        number: u32,
        /// The hosts in their wire form.
        hosts: Vec<String>,
        /// The agent's reason, as it came.
        reason: String,
        /// The page that wants them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<String>,
    },
    /// A question has ended.
    Answered {
        /// The question.
        number: u32,
        /// `allowed`, `denied` or `expired`.
        decision: String,
        /// The hosts.
        hosts: Vec<String>,
        /// What the owner said beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Events that nobody took in time.
    Missed {
        /// How many.
        count: u64,
    },
}

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageState {
    /// It was sent to an address.
    Opened,
    /// It was closed.
    Closed,
    /// It went with its browser, or closed itself.
    Lost,
    /// It was busy while nobody used it, and rests until the next call that names it.
    Frozen,
    /// It took too much, and its renderer was killed.
    Killed,
}

/// How the browser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrowserState {
    /// It ended, and is being started again.
    Lost,
    /// It runs again.
    Restarted,
    /// It is given up.
    Failed,
}

/// How the relay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayState {
    /// Not reached; the link goes on trying.
    Away,
    /// There again.
    Back,
}

macro_rules! words {
    ($($state:ident { $($variant:ident => $word:literal),* })*) => {$(
        impl $state {
            /// The stable word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }
    )*};
}
words! {
    PageState { Opened => "opened", Closed => "closed", Lost => "lost", Frozen => "frozen", Killed => "killed" }
    BrowserState { Lost => "lost", Restarted => "restarted", Failed => "failed" }
    RelayState { Away => "away", Back => "back" }
}

/// A session that works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// The link for the agent.
    pub link: String,
    /// The relay's address.
    pub relay: String,
    /// What the GPU was proven to do.
    pub gpu: Verdict,
    /// Chromium's version.
    pub browser: String,
    /// Whether Chromium's own sandbox is on.
    pub sandbox: bool,
    /// Whether the browser has a network of its own.
    pub network_namespace: bool,
    /// Why it has none.
    pub network_namespace_reason: Option<String>,
    /// The account that the browser runs under, where it is not the owner's.
    pub account: Option<String>,
    /// When the session ends, seconds since 1970.
    pub end_unix_s: u64,
    /// How long the start took.
    pub start_ms: u64,
}

impl Event {
    /// Whether it is one of many, so that it may be dropped where nobody keeps up.
    pub fn is_chatter(&self) -> bool {
        match self {
            Self::Progress { .. }
            | Self::Call { .. }
            | Self::Refused { .. }
            | Self::Missed { .. } => true,
            Self::Page { state, .. } => !matches!(state, PageState::Frozen | PageState::Killed),
            _ => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::browser::probe::Api;
    use crate::browser::rung::Rung;

    pub(crate) fn ready() -> Ready {
        Ready {
            link: "http://127.0.0.1:9/v1/t/as_x/agents.md".into(),
            relay: "http://127.0.0.1:9".into(),
            gpu: Verdict {
                rung: Rung::SoftwareX,
                display: "xvfb".into(),
                backend: "vulkan".into(),
                hardware: false,
                webgl: Api {
                    name: "SwiftShader".into(),
                    proven: true,
                    reason: None,
                },
                webgpu: Api {
                    name: String::new(),
                    proven: false,
                    reason: Some("navigator.gpu is missing".into()),
                },
                texture_side: 8192,
            },
            browser: "Chromium 1".into(),
            sandbox: true,
            network_namespace: true,
            network_namespace_reason: None,
            account: None,
            end_unix_s: 3600,
            start_ms: 900,
        }
    }

    #[test]
    fn each_event_is_one_object_under_its_name_and_reads_back() {
        let reason = || "it ended".to_owned();
        for (event, expected) in [
            (
                Event::Call {
                    tool: "POST /eval".into(),
                    page: Some("p1".into()),
                    status: 200,
                    ms: 7,
                },
                r#"{"event":"call","tool":"POST /eval","page":"p1","status":200,"ms":7}"#,
            ),
            (
                Event::Call {
                    tool: "GET /info".into(),
                    page: None,
                    status: 200,
                    ms: 1,
                },
                r#"{"event":"call","tool":"GET /info","status":200,"ms":1}"#,
            ),
            (
                Event::Page {
                    page: "p1".into(),
                    state: PageState::Opened,
                    url: "u".into(),
                    reason: None,
                },
                r#"{"event":"page","page":"p1","state":"opened","url":"u"}"#,
            ),
            (
                Event::Page {
                    page: "p1".into(),
                    state: PageState::Killed,
                    url: "u".into(),
                    reason: Some(reason()),
                },
                r#"{"event":"page","page":"p1","state":"killed","url":"u","reason":"it ended"}"#,
            ),
            (
                Event::Idle { minutes: 60 },
                r#"{"event":"idle","minutes":60}"#,
            ),
            (
                Event::Browser {
                    state: BrowserState::Lost,
                    reason: Some(reason()),
                },
                r#"{"event":"browser","state":"lost","reason":"it ended"}"#,
            ),
            (
                Event::Relay {
                    state: RelayState::Back,
                    reason: None,
                },
                r#"{"event":"relay","state":"back"}"#,
            ),
            (
                Event::Refused {
                    host: "a.example".into(),
                    reason: "not_allowed".into(),
                },
                r#"{"event":"refused","host":"a.example","reason":"not_allowed"}"#,
            ),
            (
                Event::Link {
                    link: "l".into(),
                    label: "a".into(),
                    reason: "r".into(),
                },
                r#"{"event":"link","link":"l","label":"a","reason":"r"}"#,
            ),
            (
                Event::Request {
                    number: 3,
                    hosts: vec!["a.example".into()],
                    reason: "r".into(),
                    page: None,
                },
                r#"{"event":"request","number":3,"hosts":["a.example"],"reason":"r"}"#,
            ),
            (
                Event::Answered {
                    number: 3,
                    decision: "denied".into(),
                    hosts: vec!["a.example".into()],
                    note: Some("no".into()),
                },
                r#"{"event":"answered","number":3,"decision":"denied","hosts":["a.example"],"note":"no"}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&event).unwrap(), expected);
            assert_eq!(serde_json::from_str::<Event>(expected).unwrap(), event);
        }
    }

    #[test]
    fn ready_names_the_link_the_relay_and_the_truth_about_the_gpu() {
        let event = Event::Ready(Box::new(ready()));
        let value = serde_json::to_value(&event).unwrap();
        assert_eq!(value["event"], "ready");
        assert_eq!(value["link"], "http://127.0.0.1:9/v1/t/as_x/agents.md");
        assert_eq!(
            (&value["gpu"]["hardware"], &value["gpu"]["webgpu"]["proven"]),
            (&false.into(), &false.into())
        );
        assert_eq!(value["network_namespace"], true);
        assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    }
}
