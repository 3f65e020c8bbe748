//! The verdict on a page: what it shows, what went wrong, and what the boundary refused, in few words.

use serde_json::{Map, Value, json};

use crate::browser::fold::{Capped, Events, short};
use crate::browser::navigate::{Navigation, Summary};
use crate::policy::limits::VERDICT_LIST;
use crate::server::pages::Opened;
use crate::server::session::Session;

/// The verdict; lists that are empty are left out, so that a good page costs few words.
pub(super) fn verdict(
    session: &Session,
    opened: &Opened,
    navigation: &Navigation,
    summary: &Summary,
    ms: u64,
) -> Value {
    let events = opened.page.observed.take_events();
    let refused: Vec<Value> = session
        .kit
        .proxy
        .refusals(&opened.page.user)
        .iter()
        .map(|host| json!({ "host": host.host, "reason": host.reason, "fix": host.fix }))
        .collect();
    let mut verdict = Map::new();
    let mut put = |name: &str, value: Value| drop(verdict.insert(name.to_owned(), value));
    put("page", json!(opened.id));
    put(
        "status",
        json!(
            opened
                .page
                .observed
                .document()
                .status
                .filter(|_| navigation.net_error.is_none())
        ),
    );
    put("title", json!(short(&summary.title)));
    put("url", json!(short(&summary.url)));
    put("ms", json!(ms));
    if let Some(error) = &navigation.net_error {
        put("error", json!(error));
    }
    if navigation.timed_out {
        put("timed_out", json!(true));
    }
    lists(&events, &mut put);
    if !refused.is_empty() {
        let count = refused.len();
        put(
            "refused_hosts",
            json!({ "items": &refused[..count.min(VERDICT_LIST)], "count": count }),
        );
    }
    put(
        "canvases",
        json!({ "items": &summary.canvases[..summary.canvases.len().min(VERDICT_LIST)], "count": summary.canvas_count }),
    );
    Value::Object(verdict)
}

fn lists(events: &Events, put: &mut impl FnMut(&str, Value)) {
    fn filled<T: serde::Serialize>(
        name: &str,
        list: &Capped<T>,
        put: &mut impl FnMut(&str, Value),
    ) {
        if list.count > 0 {
            put(name, json!(*list));
        }
    }
    filled("console_errors", &events.console_errors, put);
    filled("page_errors", &events.page_errors, put);
    filled("failed_requests", &events.failed_requests, put);
    filled("dialogs", &events.dialogs, put);
    filled("popups", &events.popups, put);
    filled("downloads", &events.downloads, put);
}
