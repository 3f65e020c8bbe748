//! The tools that look into a page: its console, its requests.

use serde_json::{Value, json};

use super::{ToolEntry, object, page_id};
use crate::policy::limits::{BODY_REPLY, EVAL_VALUE_MOST, JOURNAL_LIST};

pub(super) fn tools() -> Vec<ToolEntry> {
    let post = |path, description, schema| ToolEntry {
        method: "POST",
        path,
        description,
        input_schema: Some(schema),
    };
    vec![
        post(
            "/console",
            "Lines of a page's console and uncaught errors, equal ones counted; stacks when asked",
            console(),
        ),
        post(
            "/network",
            "A page's requests, a line each, and what was refused; one request's headers and body by number",
            network(),
        ),
    ]
}

fn since() -> Value {
    json!({ "type": "integer", "minimum": 0, "description": "the last reply's cursor; 0 for all; left out: this document's" })
}

fn limit() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": JOURNAL_LIST.1, "default": JOURNAL_LIST.0 })
}

fn console() -> Value {
    object(
        &["page"],
        &json!({
            "page": page_id(),
            "since": since(),
            "level": { "enum": ["debug", "log", "warning", "error"], "description": "this or graver", "default": "debug" },
            "find": { "type": "string", "description": "part of the text or the address" },
            "stacks": { "type": "boolean" },
            "limit": limit(),
        }),
    )
}

fn network() -> Value {
    object(
        &["page"],
        &json!({
            "page": page_id(),
            "since": since(),
            "kind": { "type": "string", "description": "document, script, fetch, xhr, image, websocket, …" },
            "find": { "type": "string", "description": "part of the address" },
            "failed": { "type": "boolean" },
            "request": { "type": "integer", "minimum": 1, "description": "the detail of this one" },
            "body": { "type": "boolean", "description": "with request: its body" },
            "max_bytes": { "type": "integer", "minimum": 1, "maximum": EVAL_VALUE_MOST, "default": BODY_REPLY },
            "limit": limit(),
        }),
    )
}
