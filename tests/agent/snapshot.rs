//! The accessibility tree: small by default, true to the page, and its refs good for as long as is promised.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::act::act;
use crate::daemon::Daemon;

const FORM: &str = r#"<!doctype html><title>form</title><main><h1>Order</h1><p>Some text</p>
<label>Name <input id=n value=Ada required></label><label><input type=checkbox checked> Agree</label>
<select id=s><option>Red</option><option selected>Green</option></select>
<button id=go disabled>Go</button><a href=x>More</a><canvas width=50 height=50></canvas>
<div id=part><button>Inner</button><div tabindex=0>Focusable</div></div></main>"#;

async fn snapshot(daemon: &Daemon, page: &str, fields: Value) -> Value {
    let mut body = fields;
    body["page"] = page.into();
    daemon.ok("snapshot", body).await
}

fn tree(reply: &Value) -> &str {
    reply["tree"].as_str().unwrap()
}

/// The ref at the beginning of the line that holds a text.
fn reference(reply: &Value, text: &str) -> String {
    let line = tree(reply).lines().find(|line| line.contains(text));
    let line = line.unwrap_or_else(|| panic!("no {text} in {reply}"));
    line.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn what_one_acts_on_is_listed_with_its_state() {
    let daemon = Daemon::shared();
    let page = daemon.open(FORM, 400, 300).await;
    let reply = snapshot(&daemon, &page, json!({})).await;
    let text = tree(&reply);
    for line in [
        "textbox \"Name\" =\"Ada\" required",
        "checkbox \"Agree\" checked",
        "combobox =\"Green\"",
        "button \"Go\" disabled",
        "link \"More\"",
        "button \"Inner\"",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(
        !text.contains("Order") && !text.contains("Some text"),
        "{text}"
    );
    let whole = snapshot(&daemon, &page, json!({"interactive": false})).await;
    assert!(
        tree(&whole).contains("heading \"Order\" level=1"),
        "{whole}"
    );
    assert!(tree(&whole).contains("text \"Some text\""), "{whole}");
    let part = snapshot(&daemon, &page, json!({"selector": "#part"})).await;
    assert_eq!(part["lines"], 2, "{part}");
    let flat = snapshot(&daemon, &page, json!({"interactive": false, "depth": 2})).await;
    assert!(flat["deeper"].as_u64().unwrap() > 3, "{flat}");
    for (find, hits) in [
        ("order", 1),
        ("/^go$/i", 1),
        ("/^Go|Inner$/", 2),
        ("no such", 0),
    ] {
        let found = snapshot(&daemon, &page, json!({ "find": find })).await;
        assert_eq!(found["lines"], hits, "{find}: {found}");
        assert!(
            hits == 0 || tree(&found).contains("in RootWebArea \"form\" > main"),
            "{found}"
        );
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_ref_is_good_until_the_next_snapshot_or_navigation() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><button id=a onclick='document.title = `hit`'>A</button><button id=b>B</button>";
    let page = daemon.open(html, 400, 300).await;
    let click = |at: &str| json!({"page": page, "actions": [{"action": "click", "ref": at}]});
    let error = daemon.refused("act", click("e1"), 409, "stale_ref").await;
    assert!(error["fix"].as_str().unwrap().contains("/snapshot"));
    let first = snapshot(&daemon, &page, json!({})).await;
    let (a, b) = (reference(&first, "\"A\""), reference(&first, "\"B\""));
    let line = act(&daemon, &page, json!({"action": "click", "ref": a})).await;
    assert!(line["on"].as_str().unwrap().contains("id=\"a\""), "{line}");
    assert_eq!(daemon.eval(&page, "document.title").await, "hit");
    // Its element is gone.
    daemon
        .eval(&page, "document.querySelector('#b').remove()")
        .await;
    daemon.refused("act", click(&b), 409, "stale_ref").await;
    // Another snapshot, and another document.
    let second = snapshot(&daemon, &page, json!({})).await;
    daemon.refused("act", click(&a), 409, "stale_ref").await;
    let again = reference(&second, "\"A\"");
    assert_ne!(a, again);
    daemon.ok("act", click(&again)).await;
    daemon.ok("page", json!({"page": page, "html": html})).await;
    let error = daemon.refused("act", click(&again), 409, "stale_ref").await;
    assert!(
        error["message"].as_str().unwrap().contains("navigated"),
        "{error}"
    );
    let rest = json!({"page": page, "after": "s2.1"});
    daemon.refused("snapshot", rest, 409, "stale_ref").await;
    daemon.close(&page).await;
}

#[tokio::test]
async fn twenty_thousand_nodes_come_in_parts_and_in_time() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><title>large</title><body><script>
        let s = ''; for (let n = 0; n < 20000; n++) s += `<div><button>button ${n}</button></div>`; document.body.innerHTML = s</script>";
    let page = daemon.open(html, 400, 300).await;
    let began = Instant::now();
    let mut reply = snapshot(&daemon, &page, json!({})).await;
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(reply["lines"], 20_000, "{}", reply["nodes"]);
    let (mut lines, mut calls) = (tree(&reply).lines().count(), 1);
    while let Some(after) = reply["after"].as_str() {
        assert!(tree(&reply).len() <= 24 * 1024);
        let body = json!({ "page": page, "after": after });
        reply = daemon.ok("snapshot", body).await;
        lines += tree(&reply).lines().count();
        calls += 1;
    }
    assert!(
        lines == 20_000 && calls > 10,
        "{lines} lines in {calls} calls"
    );
    let last = reference(&reply, "\"button 19999\"");
    let line = act(&daemon, &page, json!({"action": "click", "ref": last})).await;
    assert!(
        line["on"].as_str().unwrap().contains("button 19999"),
        "{line}"
    );
    let found = snapshot(
        &daemon,
        &page,
        json!({"find": "/^button 1234\\d$/", "interactive": true}),
    )
    .await;
    assert_eq!(found["lines"], 10, "{found}");
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_page_that_is_too_large_is_refused_and_its_part_is_not() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><body><p id=part><button>one</button></p><script>
        const f = document.createDocumentFragment(); for (let n = 0; n < 60000; n++) f.append(document.createElement('i')); document.body.append(f)</script>";
    let page = daemon.open(html, 400, 300).await;
    let body = json!({ "page": page });
    daemon.refused("snapshot", body, 400, "bad_arguments").await;
    let part = snapshot(&daemon, &page, json!({"selector": "#part"})).await;
    assert!(tree(&part).contains("button \"one\""), "{part}");
    daemon.close(&page).await;
}

#[tokio::test]
async fn names_that_would_turn_or_break_a_line_are_written_out() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><body><script>
        for (const name of ['a\\u202eb', 'c\\ud800d', 'e\\nf', 'g\"h', '😀'])
            document.body.append(Object.assign(document.createElement('button'), {ariaLabel: name}))</script>";
    let page = daemon.open(html, 400, 300).await;
    let reply = snapshot(&daemon, &page, json!({})).await;
    assert_eq!(reply["lines"], 5, "{reply}");
    let text = tree(&reply);
    for name in ["\"a\\u{202e}b\"", "\"c\u{fffd}d\"", "\"g\\\"h\"", "\"😀\""] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert_eq!(text.lines().count(), 5);
    daemon.close(&page).await;
}

#[tokio::test]
async fn frames_are_part_of_the_tree_and_their_refs_work() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><iframe title=inner srcdoc=\"<button onclick='top.hit = event.isTrusted'>In</button>\"></iframe>";
    let page = daemon.open(html, 400, 300).await;
    let reply = snapshot(&daemon, &page, json!({})).await;
    let at = reference(&reply, "button \"In\"");
    act(&daemon, &page, json!({"action": "click", "ref": at})).await;
    assert_eq!(daemon.eval(&page, "hit").await, true);
    daemon.close(&page).await;
}

#[tokio::test]
async fn wrong_arguments_are_refused() {
    let daemon = Daemon::shared();
    let page = daemon.open("<!doctype html>", 100, 100).await;
    for (fields, code) in [
        (json!({"find": "/(/"}), "bad_arguments"),
        (json!({"find": ""}), "bad_arguments"),
        (json!({"depth": 0}), "bad_arguments"),
        (json!({"after": "x"}), "bad_arguments"),
        (json!({"after": "s1.1", "depth": 2}), "bad_arguments"),
        (json!({"deep": 2}), "bad_arguments"),
        (json!({"selector": "#no"}), "bad_selector"),
        (json!({"selector": "a["}), "bad_selector"),
    ] {
        let mut body = fields;
        body["page"] = page.as_str().into();
        daemon.refused("snapshot", body, 400, code).await;
    }
    daemon
        .refused("snapshot", json!({"page": "p999"}), 404, "not_found")
        .await;
    daemon.close(&page).await;
}
