//! What a page is busy with: requests under way, a navigation that it has asked for, a drag that it has begun.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// Requests under way that are remembered; a page with more is busy in any case.
const REQUESTS: usize = 4_096;

struct State {
    requests: HashSet<String>,
    /// When the last one came or went.
    since: Instant,
    main_frame: String,
    navigation: Option<String>,
    drag: Option<Value>,
}

/// Folded from the same events as everything that is known of a page.
pub struct Activity(Mutex<State>);

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(State {
            requests: HashSet::new(),
            since: Instant::now(),
            main_frame: String::new(),
            navigation: None,
            drag: None,
        }))
    }
}

impl Activity {
    /// Whether no request has been under way for this long. A stream that the server keeps open (EventSource, WebSocket,
    /// a paused video) is no request that anybody waits for.
    pub fn is_quiet(&self, quiet: Duration) -> bool {
        let state = self.state();
        state.requests.is_empty() && state.since.elapsed() >= quiet
    }

    /// The address that the page has asked to go to and has not reached yet.
    pub fn navigation(&self) -> Option<String> {
        self.state().navigation.clone()
    }

    /// Whether the page has begun a drag.
    pub(super) fn has_drag(&self) -> bool {
        self.state().drag.is_some()
    }

    /// What is being dragged, where the page has begun a drag; takes it.
    pub(super) fn take_drag(&self) -> Option<Value> {
        self.state().drag.take()
    }

    /// Takes in an event of the page or of one of its frames and workers.
    pub(super) fn event(&self, method: &str, value: &Value) {
        let mut state = self.state();
        match method {
            "Network.requestWillBeSent" => state.sent(value),
            "Network.responseReceived" if value["response"]["mimeType"] == "text/event-stream" => {
                state.done(value);
            }
            "Network.loadingFinished" | "Network.loadingFailed" => state.done(value),
            "Page.frameNavigated" => state.committed(&value["frame"]),
            "Page.frameRequestedNavigation"
                if state.is_main(value) && value["disposition"] == "currentTab" =>
            {
                state.navigation = value["url"].as_str().map(str::to_owned);
            }
            // A navigation that came to nothing (a download, a 204) ends with the second of these.
            "Page.navigatedWithinDocument" | "Page.frameStoppedLoading" if state.is_main(value) => {
                state.navigation = None;
            }
            "Input.dragIntercepted" => state.drag = Some(value["data"].clone()),
            _ => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_main(&self, value: &Value) -> bool {
        value["frameId"] == self.main_frame.as_str()
    }

    fn sent(&mut self, value: &Value) {
        let endless = matches!(
            value["type"].as_str(),
            Some("EventSource" | "WebSocket" | "Media")
        );
        if endless || self.requests.len() >= REQUESTS {
            return;
        }
        let id = value["requestId"].as_str().unwrap_or_default();
        self.requests.insert(id.to_owned());
        self.since = Instant::now();
    }

    fn done(&mut self, value: &Value) {
        let id = value["requestId"].as_str().unwrap_or_default();
        if self.requests.remove(id) {
            self.since = Instant::now();
        }
    }

    /// The requests of the last document are nobody's any more; the new document's own has its loader's name.
    fn committed(&mut self, frame: &Value) {
        if frame["parentId"].is_string() {
            return;
        }
        self.requests.retain(|id| frame["loaderId"] == id.as_str());
        frame["id"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut self.main_frame);
        self.navigation = None;
        self.drag = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const QUIET: Duration = Duration::from_millis(500);

    fn sent(activity: &Activity, id: &str, kind: &str) {
        let event = json!({"requestId": id, "type": kind});
        activity.event("Network.requestWillBeSent", &event);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_quiet_half_a_second_after_its_last_request() {
        let activity = Activity::default();
        sent(&activity, "1", "Fetch");
        tokio::time::advance(QUIET).await;
        assert!(!activity.is_quiet(QUIET));
        activity.event("Network.loadingFinished", &json!({"requestId": "1"}));
        assert!(!activity.is_quiet(QUIET));
        tokio::time::advance(QUIET).await;
        assert!(activity.is_quiet(QUIET));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stays_open_is_not_waited_for() {
        let activity = Activity::default();
        sent(&activity, "1", "EventSource");
        sent(&activity, "2", "Fetch");
        let stream = json!({"requestId": "2", "response": {"mimeType": "text/event-stream"}});
        activity.event("Network.responseReceived", &stream);
        tokio::time::advance(QUIET).await;
        assert!(activity.is_quiet(QUIET));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_a_document_that_is_gone_are_forgotten() {
        let activity = Activity::default();
        sent(&activity, "old", "Fetch");
        sent(&activity, "L2", "Document");
        let frame = json!({"frame": {"id": "F", "loaderId": "L2"}});
        activity.event("Page.frameNavigated", &frame);
        activity.event("Network.loadingFinished", &json!({"requestId": "L2"}));
        tokio::time::advance(QUIET).await;
        assert!(activity.is_quiet(QUIET));
    }

    #[test]
    fn a_navigation_is_known_from_its_request_to_its_end() {
        let activity = Activity::default();
        let frame = json!({"frame": {"id": "F", "loaderId": "L"}});
        activity.event("Page.frameNavigated", &frame);
        let asked = |frame: &str| json!({"frameId": frame, "url": "https://a/", "disposition": "currentTab"});
        activity.event("Page.frameRequestedNavigation", &asked("child"));
        assert_eq!(activity.navigation(), None);
        for end in [
            ("Page.navigatedWithinDocument", json!({"frameId": "F"})),
            ("Page.frameStoppedLoading", json!({"frameId": "F"})),
            ("Page.frameNavigated", frame),
        ] {
            activity.event("Page.frameRequestedNavigation", &asked("F"));
            assert_eq!(activity.navigation().as_deref(), Some("https://a/"));
            activity.event(end.0, &end.1);
            assert_eq!(activity.navigation(), None, "{}", end.0);
        }
    }
}
