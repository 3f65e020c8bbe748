//! `GET /info`: the truth about the GPU, the session and every limit.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::policy::limits as limit;
use crate::server::keeper::Browser;
use crate::server::session::Session;

/// Everything an agent may want to know before it begins.
pub(super) fn get(session: &Session) -> Value {
    let verdict = session.truth.verdict();
    let (files, bytes) = session.kit.uploads.total();
    let left = session
        .end
        .duration_since(SystemTime::now())
        .unwrap_or_default();
    let (browser, namespace) = match &*session.browser.borrow() {
        Browser::Running(chromium) => (chromium.version.clone(), Some(chromium.isolation.is_ok())),
        Browser::Restarting => ("restarting".to_owned(), None),
        Browser::Failed(_) => ("failed".to_owned(), None),
    };
    let refused: Vec<Value> = session
        .kit
        .proxy
        .totals()
        .refused_hosts
        .iter()
        .take(limit::INFO_LIST)
        .map(|host| json!({ "host": host.host, "reason": host.reason, "count": host.count, "fix": host.fix }))
        .collect();
    json!({
        "gpu": {
            "kind": session.truth.word(), "rung": verdict.rung.name(), "display": verdict.display, "backend": verdict.backend,
            "webgl": verdict.webgl, "webgpu": verdict.webgpu, "texture_side": verdict.texture_side,
        },
        "browser": browser,
        "sandbox": session.kit.setup.sandbox,
        "network_namespace": namespace,
        "session_ends_in_seconds": left.as_secs(),
        "pages": session.pages.list().iter().map(|opened| opened.id.clone()).collect::<Vec<_>>(),
        "uploads": { "files": files, "bytes": bytes },
        "allowed_hosts": session.hosts(),
        "refused_hosts": refused,
        "limits": limits(),
    })
}

fn limits() -> Value {
    json!({
        "pages": limit::PAGES,
        "upload_files": limit::UPLOAD_FILES, "upload_bytes": limit::UPLOAD_BYTES, "call_bytes": limit::REQUEST_BODY,
        "viewport_side": [limit::VIEWPORT_SIDE.start(), limit::VIEWPORT_SIDE.end()],
        "scale": [limit::SCALE.start(), limit::SCALE.end()],
        "picture_pixels": limit::PICTURE_PIXELS, "part_bytes": limit::PART,
        "artifacts": limit::ARTIFACTS, "artifact_bytes": limit::ARTIFACT_BYTES,
        "eval_value_bytes": [limit::EVAL_VALUE, limit::EVAL_VALUE_MOST],
        "timeout_ms_most": u64::try_from(limit::LONGEST_TIMEOUT.as_millis()).ok(),
        "calls_in_flight": limit::CALLS_IN_FLIGHT,
    })
}
