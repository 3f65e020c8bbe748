//! The tools as `tools.json` lists them: for the reader who has not read the briefing, or wants each field.
//!
//! The schemas are documentation; what a body must be is decided by the types that parse it. A test holds the names of
//! the fields against the types where both are here.

mod act;
mod look;

use serde_json::{Value, json};

use crate::policy::limits::{
    EVAL_TIMEOUT, EVAL_VALUE, EVAL_VALUE_MOST, LONGEST_TIMEOUT, PAGE_TIMEOUT, REQUEST_HOSTS,
    REQUEST_REASON, SCALE, SCREENSHOT_TIMEOUT, VIEWPORT, VIEWPORT_SIDE,
};

/// A tool as it is registered at the relay.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEntry {
    /// The HTTP method.
    pub method: &'static str,
    /// The path after `$BASE`.
    pub path: &'static str,
    /// One line for the agent.
    pub description: &'static str,
    /// The JSON schema of the body; `None` where there is none.
    pub input_schema: Option<Value>,
}

/// All tools, in the order in which an agent meets them.
pub fn tools() -> Vec<ToolEntry> {
    let bodiless = |path, description| ToolEntry {
        method: "GET",
        path,
        description,
        input_schema: None,
    };
    let post = |path, description, schema| ToolEntry {
        method: "POST",
        path,
        description,
        input_schema: Some(schema),
    };
    let first = vec![
        bodiless(
            "/info",
            "The GPU (hardware or software, proven by pixels), browser, session end, allowed hosts, limits",
        ),
        post(
            "/files",
            "Upload files: text, base64, chunks by offset, or a tar.gz or zip; delete or clear",
            files(),
        ),
        bodiless("/files", "List the uploads with their addresses"),
        post(
            "/page",
            "Open an upload, a URL or HTML in a new page, or navigate an open one; replies with the verdict",
            page(),
        ),
        bodiless("/pages", "List the open pages"),
        post("/close", "Close a page, or all", close()),
        post(
            "/eval",
            "Run JavaScript in a page; promises are awaited; replies with the value as JSON",
            eval(),
        ),
        post(
            "/screenshot",
            "Take a picture; replies with a receipt, fetch the picture with POST /image",
            screenshot(),
        ),
        post(
            "/image",
            "Fetch a part of a picture as plain base64; the parts joined are the file",
            image(),
        ),
        post(
            "/request",
            "Ask the owner for more hosts; replies 202 with a task to poll at $BASE/_as_tasks/<taskId>",
            request(),
        ),
        bodiless(
            "/requests",
            "What was asked of the owner and what was answered",
        ),
    ];
    let groups = [act::tools(), look::tools()];
    first
        .into_iter()
        .chain(groups.into_iter().flatten())
        .collect()
}

fn object(required: &[&str], properties: &Value) -> Value {
    let mut schema =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn request() -> Value {
    object(
        &["hosts", "reason"],
        &json!({
            "hosts": { "type": "array", "maxItems": REQUEST_HOSTS, "items": { "type": "string", "description": "like \"cdn.example.com\" or \"*.example.com\"" } },
            "reason": { "type": "string", "maxLength": REQUEST_REASON, "description": "what for; a person reads it" },
            "page": page_id(),
        }),
    )
}

fn page_id() -> Value {
    json!({ "type": "string", "description": "like \"p1\"" })
}

fn timeout(default: std::time::Duration) -> Value {
    millis(default.as_millis(), LONGEST_TIMEOUT.as_millis())
}

fn millis(default: u128, most: u128) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": u64::try_from(most).ok(), "default": u64::try_from(default).ok() })
}

fn side(default: u32) -> Value {
    json!({ "type": "integer", "minimum": VIEWPORT_SIDE.start(), "maximum": VIEWPORT_SIDE.end(), "default": default })
}

fn scale() -> Value {
    json!({ "type": "number", "minimum": SCALE.start(), "maximum": SCALE.end(), "default": 1 })
}

fn files() -> Value {
    let file = object(
        &["path"],
        &json!({
            "path": { "type": "string", "description": "relative, like \"js/app.js\"" },
            "text": { "type": "string" },
            "base64": { "type": "string", "description": "instead of text, for any bytes" },
            "content_type": { "type": "string", "description": "from the path's ending where left out" },
            "offset": { "type": "integer", "minimum": 0, "description": "where this chunk begins; 0 replaces the file" },
        }),
    );
    let archive = object(
        &["base64", "format"],
        &json!({
            "base64": { "type": "string" },
            "format": { "enum": ["tar.gz", "tgz", "zip"] },
            "prefix": { "type": "string", "description": "a folder to unpack into" },
        }),
    );
    object(
        &[],
        &json!({
            "files": { "type": "array", "items": file },
            "archive": archive,
            "delete": { "type": "array", "items": { "type": "string" } },
            "clear": { "type": "boolean", "description": "drop all first" },
        }),
    )
}

fn page() -> Value {
    object(
        &[],
        &json!({
            "path": { "type": "string", "description": "an upload; exactly one of path, url, html" },
            "url": { "type": "string", "description": "http or https, on an allowed host" },
            "html": { "type": "string" },
            "page": { "type": "string", "description": "navigate this open page in place of opening one" },
            "width": side(VIEWPORT.0),
            "height": side(VIEWPORT.1),
            "scale": scale(),
            "wait_for": { "type": "string", "description": "a CSS selector that must be there" },
            "wait_until": { "enum": ["load", "domcontentloaded", "networkidle"], "default": "load" },
            "timeout_ms": timeout(PAGE_TIMEOUT),
        }),
    )
}

fn close() -> Value {
    object(
        &[],
        &json!({ "page": page_id(), "all": { "type": "boolean" } }),
    )
}

fn eval() -> Value {
    object(
        &["page", "js"],
        &json!({
            "page": page_id(),
            "js": { "type": "string", "description": "an expression, or a function body with return" },
            "args": { "type": "array", "description": "the function body's `args`" },
            "timeout_ms": timeout(EVAL_TIMEOUT),
            "max_bytes": { "type": "integer", "minimum": 1, "maximum": EVAL_VALUE_MOST, "default": EVAL_VALUE },
        }),
    )
}

fn screenshot() -> Value {
    let number = json!({ "type": "number" });
    let clip = object(
        &["x", "y", "width", "height"],
        &json!({ "x": number, "y": number, "width": number, "height": number }),
    );
    object(
        &["page"],
        &json!({
            "page": page_id(),
            "format": { "enum": ["png", "jpeg", "webp"], "default": "png" },
            "quality": { "type": "integer", "minimum": 1, "maximum": 100, "description": "of jpeg and webp" },
            "compression": { "enum": ["fast", "small"], "description": "of png: fast to make, or small to send" },
            "full_page": { "type": "boolean" },
            "selector": { "type": "string", "description": "the picture of this element" },
            "clip": clip,
            "scale": scale(),
            "max_side": { "type": "integer", "minimum": 16, "description": "shrink until no side is longer, in pixels" },
            "wait_for": { "type": "string", "description": "a CSS selector that must be there first" },
            "inline": { "type": "boolean", "description": "put the picture into the reply as `data`, where it fits" },
            "timeout_ms": timeout(SCREENSHOT_TIMEOUT),
        }),
    )
}

fn image() -> Value {
    object(
        &["image"],
        &json!({
            "image": { "type": "string", "description": "like \"i1\", from a receipt" },
            "part": { "type": "integer", "minimum": 1, "default": 1 },
        }),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::proxy::uploads::store::UploadStore;
    use crate::server::tools::files;

    #[test]
    fn each_tool_is_listed_once_with_one_line() {
        let tools = tools();
        let names: BTreeSet<_> = tools.iter().map(|tool| (tool.method, tool.path)).collect();
        assert_eq!((names.len(), tools.len()), (16, 16));
        for tool in &tools {
            assert!(
                tool.description.len() <= 110 && !tool.description.contains('\n'),
                "{}",
                tool.path
            );
            assert_eq!(tool.method == "POST", tool.input_schema.is_some());
        }
    }

    #[test]
    fn the_list_is_small_enough_for_a_model_to_read() {
        let bytes: usize = tools()
            .iter()
            .filter_map(|tool| Some(tool.input_schema.as_ref()?.to_string().len()))
            .sum();
        assert!(bytes < 11 * 1024, "{bytes} bytes");
    }

    /// An unknown field is answered with the fields that are known: those of the schema.
    #[test]
    fn the_schema_of_files_names_the_fields_of_its_type() {
        let refused = files::post(&UploadStore::new(), r#"{"zzz":1}"#).unwrap_err();
        let schema = files();
        let fields = schema["properties"].as_object().unwrap();
        let names: Vec<_> = fields.keys().map(String::as_str).collect();
        assert_eq!(refused.fix, format!("known fields: {}", names.join(", ")));
    }
}
