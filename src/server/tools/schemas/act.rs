//! Acting on a page, and reading it as a screen reader does.

use serde_json::{Value, json};

use super::{ToolEntry, object, page_id, timeout};
use crate::policy::limits::{ACT_TIMEOUT, ACTIONS, DRAG_STEPS};
use crate::server::tools::act::NAMES;

/// The tools of this group.
pub(super) fn tools() -> Vec<ToolEntry> {
    vec![
        ToolEntry {
            method: "POST",
            path: "/act",
            description: "Click, type, drag, scroll, press keys, select, upload, wait: a list; replies a line for each",
            input_schema: Some(act()),
        },
        ToolEntry {
            method: "GET",
            path: "/actions",
            description: "The last actions of the session and what came of them",
            input_schema: None,
        },
        ToolEntry {
            method: "POST",
            path: "/snapshot",
            description: "The accessibility tree as lines `ref role \"name\" state`; refs are targets of POST /act",
            input_schema: Some(snapshot()),
        },
    ]
}

/// One shape for all actions, each field with the actions that take it: ten shapes would cost a model three times as much.
fn act() -> Value {
    let point =
        json!({ "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 });
    let text = json!({ "type": "string" });
    let mut at = point.clone();
    at["description"] = "target: [x,y] in pixels of the last picture".into();
    let mut by = point;
    by["description"] = "scroll: [right,down]; without it, scrolls to the target".into();
    let action = object(
        &["action"],
        &json!({
            "action": { "enum": NAMES },
            "at": at,
            "unit": { "enum": ["px", "norm"], "description": "norm: 0 to 1 of the picture" },
            "selector": { "type": "string", "description": "target: CSS; also of wait" },
            "ref": { "type": "string", "description": "target: of the last snapshot, like \"e12\"" },
            "from": { "type": "object", "description": "drag: a target" },
            "to": { "type": "object", "description": "drag: a target" },
            "steps": { "type": "integer", "maximum": DRAG_STEPS, "description": "drag; default 10" },
            "button": { "enum": ["left", "middle", "right"] },
            "count": { "type": "integer", "description": "clicks (to 3) or key presses" },
            "modifiers": { "type": "array", "items": text, "description": "of click, hover, drag, scroll" },
            "by": by,
            "text": { "type": "string", "description": "type, wait" },
            "clear": { "type": "boolean", "description": "type: replace what is there" },
            "key": { "type": "string", "description": "\"Enter\", \"Control+a\"" },
            "hold_ms": { "type": "integer", "description": "key: held so long" },
            "value": { "description": "select: value, label or index" },
            "values": { "type": "array", "description": "select several" },
            "path": { "type": "string", "description": "upload: an upload of yours" },
            "paths": { "type": "array", "items": text },
            "ms": { "type": "integer", "description": "wait" },
            "gone": { "type": "string", "description": "wait until this selector is not seen" },
            "js": { "type": "string", "description": "wait until this is true" },
            "network": { "enum": ["quiet"], "description": "wait" },
            "timeout_ms": { "type": "integer", "description": "of a target (1000) or a wait (10000)" },
        }),
    );
    // A screenshot takes the fields of POST /screenshot too.
    let mut action = action;
    action["additionalProperties"] = json!(true);
    action["description"] = "screenshot also takes the fields of POST /screenshot".into();
    object(
        &["page", "actions"],
        &json!({
            "page": page_id(),
            "actions": { "type": "array", "maxItems": ACTIONS, "items": action },
            "timeout_ms": timeout(ACT_TIMEOUT),
        }),
    )
}

fn snapshot() -> Value {
    object(
        &["page"],
        &json!({
            "page": page_id(),
            "interactive": { "type": "boolean", "description": "only what one acts on; default true, false with find" },
            "depth": { "type": "integer", "minimum": 1, "description": "levels of lines" },
            "selector": { "type": "string", "description": "only this part" },
            "find": { "type": "string", "description": "a text, or /regex/ or /regex/i: hits with their path" },
            "after": { "type": "string", "description": "the rest: `after` of the last reply" },
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unknown field is answered with the fields that are known: all of them are in the schema.
    #[test]
    fn the_schema_of_act_names_the_fields_of_every_action() {
        let uploads = crate::proxy::uploads::UploadStore::new();
        let schema = act();
        let fields = schema["properties"]["actions"]["items"]["properties"]
            .as_object()
            .unwrap();
        for name in NAMES.iter().filter(|name| **name != "screenshot") {
            let body = json!({"page": "p1", "actions": [{"action": name, "zzz": 1}]});
            let refused =
                crate::server::tools::act::check(&uploads, &body.to_string()).unwrap_err();
            let known = refused.fix.rsplit("known fields: ").next().unwrap();
            for field in known.split(", ") {
                assert!(fields.contains_key(field), "{name}: {field}");
            }
        }
    }
}
