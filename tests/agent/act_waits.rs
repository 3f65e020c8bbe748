//! Waits of all kinds: they end when their time has come, and not before.

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::act::act;
use crate::daemon::Daemon;

#[tokio::test]
async fn a_wait_ends_with_what_it_waits_for() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><body><p id=old>old</p>";
    for (change, wait) in [
        (
            "document.body.append(Object.assign(document.createElement('i'), {id: 'new'}))",
            json!({"selector": "#new"}),
        ),
        (
            "document.body.append('now   it is\\nhere')",
            json!({"text": "it is here"}),
        ),
        ("old.remove()", json!({"gone": "#old"})),
        ("old.style.display = 'none'", json!({"gone": "#old"})),
        ("window.app = {ready: true}", json!({"js": "app.ready"})),
        ("0", json!({"ms": 300})),
    ] {
        let page = daemon.open(html, 300, 200).await;
        daemon
            .eval(&page, &format!("setTimeout(() => {{ {change} }}, 300); 0"))
            .await;
        let mut wait = wait;
        wait["action"] = "wait".into();
        let began = Instant::now();
        let line = act(&daemon, &page, wait.clone()).await;
        let took = began.elapsed();
        assert!(
            (Duration::from_millis(150)..Duration::from_secs(4)).contains(&took),
            "{wait}: {took:?} {line}"
        );
        daemon.close(&page).await;
    }
}

#[tokio::test]
async fn a_wait_for_nothing_ends_at_its_time_and_says_so() {
    let daemon = Daemon::shared();
    let page = daemon
        .open(
            "<!doctype html><p id=p>p</p><script>window.v = 7</script>",
            300,
            200,
        )
        .await;
    for (wait, code, said) in [
        (json!({"selector": "#no"}), "timed_out", "#no"),
        (json!({"text": "nowhere"}), "timed_out", "nowhere"),
        (json!({"gone": "#p"}), "timed_out", "#p"),
        (json!({"js": "v === 8"}), "timed_out", "it was last false"),
        (
            json!({"js": "nothing.at.all"}),
            "timed_out",
            "nothing is not defined",
        ),
        (json!({"js": "1 +"}), "eval_threw", "SyntaxError"),
        (
            json!({"selector": "a["}),
            "bad_selector",
            "not a valid selector",
        ),
    ] {
        let mut wait = wait;
        wait["action"] = "wait".into();
        wait["timeout_ms"] = 400.into();
        let status = match code {
            "timed_out" => 504,
            "eval_threw" => 422,
            _ => 400,
        };
        let began = Instant::now();
        let body = json!({"page": page, "actions": [wait]});
        let error = daemon.refused("act", body, status, code).await;
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
        assert!(began.elapsed() < Duration::from_secs(5), "{error}");
    }
    // A call's own time ends it too.
    let body = json!({"page": page, "timeout_ms": 500, "actions": [{"action": "wait", "ms": 5000}, {"action": "wait", "ms": 1}]});
    let error = daemon.refused("act", body, 504, "timed_out").await;
    assert_eq!(error["left"], json!(["wait"]), "{error}");
    daemon.close(&page).await;
}

#[tokio::test]
async fn the_network_is_quiet_though_an_event_source_is_open() {
    let daemon = Daemon::shared();
    daemon.ok("files", json!({"files": [{"path": "quiet/stream", "text": "retry: 10\ndata: 1\n\n", "content_type": "text/event-stream"},
        {"path": "quiet/data.json", "text": "{}"}]})).await;
    let html = "<!doctype html><title>open</title><script>
        window.loaded = 0;
        const more = () => fetch('/quiet/data.json?' + loaded).then(r => r.json()).then(() => { if (++loaded < 5) setTimeout(more, 100) });
        more();
        // A stream that reconnects again and again is never silent.
        new EventSource('/quiet/stream');</script>";
    let body = json!({"html": html, "wait_until": "networkidle", "timeout_ms": 8000});
    let verdict = daemon.ok("page", body).await;
    assert!(verdict.get("timed_out").is_none(), "{verdict}");
    let page: &Value = &verdict["page"];
    assert_eq!(daemon.eval(page.as_str().unwrap(), "loaded").await, 5);
    daemon
        .eval(page.as_str().unwrap(), "loaded = 0; more(); 0")
        .await;
    act(
        &daemon,
        page.as_str().unwrap(),
        json!({"action": "wait", "network": "quiet"}),
    )
    .await;
    assert_eq!(daemon.eval(page.as_str().unwrap(), "loaded").await, 5);
    // Its twin: one that asks without an end is not quiet.
    daemon
        .eval(page.as_str().unwrap(), "loaded = -1e9; more(); 0")
        .await;
    let body = json!({"page": page, "actions": [{"action": "wait", "network": "quiet", "timeout_ms": 1500}]});
    daemon.refused("act", body, 504, "timed_out").await;
    daemon.close(page.as_str().unwrap()).await;
}

#[tokio::test]
async fn a_page_that_hangs_under_a_click_is_killed() {
    let daemon = Daemon::shared();
    let page = daemon
        .open(
            "<!doctype html><button id=b onclick='for (;;);'>B</button>",
            300,
            200,
        )
        .await;
    let began = Instant::now();
    let body = json!({"page": page, "timeout_ms": 1500, "actions": [{"action": "click", "selector": "#b"}]});
    daemon.refused("act", body, 504, "page_hung").await;
    assert!(began.elapsed() < Duration::from_secs(8));
    let pages = daemon.send(Method::GET, "pages", "").await;
    assert!(!pages.text().contains(&format!("\"{page}\"")));
}
