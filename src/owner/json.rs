//! Events as JSON, for programs: one object a line. The names are promises to those programs.

use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};

use crate::server::{Event, Ready};

/// An event as its object; `None` for progress, which is for people.
pub(super) fn event(event: &Event) -> Option<Value> {
    Some(match event {
        Event::Progress(_) => return None,
        Event::Ready(ready) => self::ready(ready),
        Event::Call {
            tool,
            page,
            status,
            ms,
        } => {
            let mut call = with("call", "tool", tool);
            if let Some(page) = page {
                call.insert("page".into(), page.as_str().into());
            }
            call.insert("status".into(), (*status).into());
            call.insert("ms".into(), (*ms).into());
            call.into()
        }
        Event::Page { page, state, url } => {
            json!({"event": "page", "page": page, "state": state, "url": url})
        }
        Event::Link {
            link,
            label,
            reason,
        } => json!({"event": "link", "link": link, "label": label, "reason": reason}),
        Event::Browser { state, reason } => changed("browser", state, reason.as_deref()),
        Event::Relay { state, reason } => changed("relay", state, reason.as_deref()),
        Event::Refused { host, reason } => {
            json!({"event": "refused", "host": host, "reason": reason})
        }
    })
}

/// The last one of every session.
pub(super) fn ended(reason: &str) -> Value {
    json!({"event": "ended", "reason": reason})
}

fn ready(ready: &Ready) -> Value {
    let end = ready.end.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "event": "ready",
        "link": ready.link,
        "relay": ready.relay,
        "gpu": ready.gpu,
        "browser": ready.version,
        "sandbox": ready.sandbox,
        "network_namespace": ready.isolation.is_ok(),
        "network_namespace_reason": ready.isolation.as_ref().err(),
        "account": ready.account,
        "end_unix_s": end.as_secs(),
        "start_ms": ready.start_ms,
    })
}

fn changed(name: &str, state: &str, reason: Option<&str>) -> Value {
    let mut event = with(name, "state", state);
    if let Some(reason) = reason {
        event.insert("reason".into(), reason.into());
    }
    event.into()
}

fn with(name: &str, key: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([
        ("event".to_owned(), name.into()),
        (key.to_owned(), value.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::words::tests::ready;

    #[test]
    fn each_event_is_one_object_under_its_name() {
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
                    state: "opened",
                    url: "u".into(),
                },
                r#"{"event":"page","page":"p1","state":"opened","url":"u"}"#,
            ),
            (
                Event::Browser {
                    state: "lost",
                    reason: Some("it ended".into()),
                },
                r#"{"event":"browser","state":"lost","reason":"it ended"}"#,
            ),
            (
                Event::Relay {
                    state: "back",
                    reason: None,
                },
                r#"{"event":"relay","state":"back"}"#,
            ),
            (
                Event::Refused {
                    host: "a.example".into(),
                    reason: "not_allowed",
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
        ] {
            assert_eq!(super::event(&event).unwrap().to_string(), expected);
        }
        assert!(event(&Event::Progress("x".into())).is_none());
        assert_eq!(
            ended("time").to_string(),
            r#"{"event":"ended","reason":"time"}"#
        );
    }

    #[test]
    fn ready_names_the_link_the_relay_and_the_truth_about_the_gpu() {
        let value = event(&Event::Ready(Box::new(ready()))).unwrap();
        assert_eq!(value["event"], "ready");
        assert_eq!(value["link"], "http://127.0.0.1:9/v1/t/as_x/agents.md");
        assert_eq!(value["relay"], "http://127.0.0.1:9");
        assert_eq!(value["gpu"]["hardware"], false);
        assert_eq!(value["gpu"]["webgpu"]["proven"], false);
        assert_eq!(value["network_namespace"], true);
    }
}
