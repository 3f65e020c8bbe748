use serde_json::json;

use super::*;

fn plan(actions: &Value) -> Result<Plan, Refused> {
    let body = json!({ "page": "p1", "actions": actions }).to_string();
    Plan::parse(&UploadStore::new(), &body)
}

#[test]
fn each_action_is_parsed_with_its_defaults() {
    let actions = json!([
        {"action": "click", "at": [1, 2]},
        {"action": "click", "selector": "#a", "button": "right", "count": 2, "modifiers": ["ctrl", "Shift"]},
        {"action": "hover", "ref": "e3"},
        {"action": "drag", "from": {"at": [0, 0], "unit": "norm"}, "to": {"selector": "#b"}, "steps": 300},
        {"action": "scroll", "by": [0, 100]},
        {"action": "scroll", "by": [0, 0.5], "unit": "norm"},
        {"action": "scroll", "selector": "#far"},
        {"action": "type", "text": "hello"},
        {"action": "type", "selector": "#a", "text": "", "clear": true},
        {"action": "key", "key": "ctrl+a"},
        {"action": "select", "selector": "select", "value": "x"},
        {"action": "select", "selector": "select", "values": ["x", 2]},
        {"action": "wait", "ms": 10},
        {"action": "wait", "js": "window.done", "timeout_ms": 500},
        {"action": "wait", "network": "quiet"},
        {"action": "screenshot", "max_side": 64},
    ]);
    let plan = plan(&actions).unwrap();
    assert_eq!(plan.steps.len(), 16);
    assert!(matches!(
        &plan.steps[0].action,
        Action::Click {
            target: Target::At {
                x: 1.0,
                y: 2.0,
                norm: false
            },
            count: 1,
            button: Button::Left,
            ..
        }
    ));
    assert!(matches!(
        &plan.steps[2].action,
        Action::Hover {
            target: Target::Ref(3),
            ..
        }
    ));
    assert!(matches!(
        &plan.steps[5].action,
        Action::Scroll {
            target: None,
            norm: true,
            ..
        }
    ));
}

#[test]
fn an_argument_that_an_action_does_not_take_is_refused_with_its_place() {
    let rows = [
        (json!([]), "0 entries", "1 to 50"),
        (
            json!([{"at": [1, 2]}]),
            "actions[0]: it has no `action`",
            "click, hover",
        ),
        (
            json!([{"action": "clik"}]),
            "no action \"clik\"",
            "did you mean \"click\"?",
        ),
        (
            json!([{"action": "wait", "ms": 1}, {"action": "click", "selecter": "#a"}]),
            "unknown field \"selecter\" in actions[1]",
            "did you mean \"selector\"?",
        ),
        (
            json!([{"action": "click", "text": "x", "at": [1, 2]}]),
            "unknown field \"text\"",
            "known fields",
        ),
        (
            json!([{"action": "click"}]),
            "actions[0]: it has no target",
            "`at`",
        ),
        (
            json!([{"action": "click", "at": [1]}]),
            "actions[0].at: invalid length 1",
            "input_schema",
        ),
        (
            json!([{"action": "click", "at": [1, 2], "ref": "e1"}]),
            "exclude each other",
            "one of them",
        ),
        (
            json!([{"action": "click", "at": [2, 0], "unit": "norm"}]),
            "out of bounds",
            "0 to 1",
        ),
        (
            json!([{"action": "click", "ref": "12"}]),
            "`ref` is \"12\"",
            "e12",
        ),
        (
            json!([{"action": "click", "selector": " "}]),
            "empty",
            "name an element",
        ),
        (
            json!([{"action": "click", "at": [1, 2], "count": 9}]),
            "`count` is 9",
            "1 to 3",
        ),
        (
            json!([{"action": "click", "at": [1, 2], "modifiers": ["hyper"]}]),
            "no modifier \"hyper\"",
            "Control",
        ),
        (
            json!([{"action": "drag", "from": {"at": [1, 2]}, "to": {}}]),
            "actions[0].to: it has no target",
            "`at`",
        ),
        (
            json!([{"action": "drag", "from": {"at": [1, 2]}, "to": {"at": [1, 2]}, "steps": 0}]),
            "`steps` is 0",
            "1000",
        ),
        (json!([{"action": "scroll"}]), "goes nowhere", "`by`"),
        (
            json!([{"action": "scroll", "at": [1, 2]}]),
            "`at` needs `by`",
            "`by`",
        ),
        (
            json!([{"action": "type", "text": ""}]),
            "`text` is empty",
            "`clear`",
        ),
        (
            json!([{"action": "type", "text": "x", "modifiers": ["Shift"]}]),
            "unknown field \"modifiers\"",
            "known",
        ),
        (
            json!([{"action": "key", "key": "Entr"}]),
            "did you mean \"Enter\"?",
            "W3C",
        ),
        (
            json!([{"action": "select", "selector": "a"}]),
            "names no option",
            "`value`",
        ),
        (
            json!([{"action": "select", "at": [1, 2], "value": "x"}]),
            "takes an element",
            "selector",
        ),
        (
            json!([{"action": "select", "selector": "a", "value": {}}]),
            "a text or an index",
            "label",
        ),
        (
            json!([{"action": "upload", "selector": "a", "path": "no.png"}]),
            "no upload \"no.png\"",
            "/files",
        ),
        (
            json!([{"action": "upload", "selector": "a", "path": "../x"}]),
            "actions[0]",
            "uploaded under",
        ),
        (
            json!([{"action": "upload", "selector": "a"}]),
            "names no upload",
            "`path`",
        ),
        (json!([{"action": "wait"}]), "for one thing", "`ms`"),
        (
            json!([{"action": "wait", "ms": 1, "text": "x"}]),
            "for one thing",
            "`ms`",
        ),
        (
            json!([{"action": "wait", "ms": 60_000}]),
            "`ms` is 60000",
            "at most",
        ),
        (
            json!([{"action": "screenshot", "scale": 9}]),
            "`scale`",
            "use",
        ),
        (
            json!([{"action": "screenshot", "page": "p2"}]),
            "the call's page",
            "leave",
        ),
    ];
    for (actions, message, fix) in rows {
        let refused = plan(&actions).unwrap_err();
        assert!(
            refused.message.contains(message),
            "{actions}: {}",
            refused.message
        );
        assert!(refused.fix.contains(fix), "{actions}: {}", refused.fix);
        assert!(refused.body().to_string().len() < 2_048);
    }
}

#[test]
fn fifty_one_actions_are_too_many() {
    let actions = vec![json!({"action": "wait", "ms": 1}); ACTIONS + 1];
    assert!(plan(&json!(actions)).is_err());
    assert!(plan(&json!(actions[1..])).is_ok());
}
