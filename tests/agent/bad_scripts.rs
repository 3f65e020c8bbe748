//! Scripts that go wrong in a page: the agent is told how, and the page goes on where it can.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daemon::Daemon;

const PAGE: &str = "<!doctype html><title>well</title>";

#[tokio::test]
async fn a_script_that_throws_says_what_and_where() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    for (js, said, line) in [
        ("throw new Error('so wrong')", "so wrong", 1),
        ("\n\nthrow 'text'", "text", 3),
        ("null.x", "null", 1),
        ("Promise.reject(new TypeError('later'))", "later", 1),
        ("throw undefined", "undefined", 1),
        ("1 +", "SyntaxError", 1),
        ("}); alert(1); ({", "SyntaxError", 1),
    ] {
        let error = daemon
            .refused("eval", json!({"page": page, "js": js}), 422, "eval_threw")
            .await;
        assert!(
            error["message"].as_str().unwrap().contains(said),
            "{js}: {error}"
        );
        if said == "SyntaxError" {
            assert_eq!(error["line"], line, "{js}: {error}");
        }
        assert_eq!(
            daemon.eval(&page, "document.title").await,
            "well",
            "after {js}"
        );
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_script_that_never_ends_is_stopped_in_time() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    for js in [
        "for (;;);",
        "new Promise(() => {})",
        "await new Promise(() => {})",
    ] {
        let began = Instant::now();
        let body = json!({"page": page, "js": js, "timeout_ms": 500});
        daemon.refused("eval", body, 504, "timed_out").await;
        assert!(
            began.elapsed() < Duration::from_secs(4),
            "{js}: {:?}",
            began.elapsed()
        );
        assert_eq!(
            daemon.eval(&page, "document.title").await,
            "well",
            "after {js}"
        );
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_page_that_hangs_by_itself_is_killed_and_the_next_one_works() {
    let daemon = Daemon::shared();
    let page = daemon
        .open(
            "<!doctype html><script>onload = () => setTimeout(() => { for (;;); }, 300)</script>",
            320,
            200,
        )
        .await;
    // Its own loop begins under this script, so that the order of events is certain.
    let body = json!({"page": page, "js": "new Promise(() => {})", "timeout_ms": 2000});
    let (status, reply) = daemon.post("eval", body).await;
    let code = reply["error"]["code"].as_str().unwrap();
    assert!(
        matches!((status, code), (504, "page_hung" | "timed_out")),
        "{reply}"
    );
    if code == "page_hung" {
        daemon
            .refused("eval", json!({"page": page, "js": "1"}), 404, "not_found")
            .await;
    }
    let next = daemon.open(PAGE, 320, 200).await;
    assert_eq!(daemon.eval(&next, "document.title").await, "well");
    daemon.close(&next).await;
}

#[tokio::test]
async fn a_value_that_has_no_json_is_refused_and_one_that_has_is_not() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    for js in ["const a = {}; a.a = a; return a", "window"] {
        daemon
            .refused("eval", json!({"page": page, "js": js}), 422, "eval_threw")
            .await;
    }
    for (js, value) in [
        ("({a: [1, null, 'ä']})", json!({"a": [1, null, "ä"]})),
        ("'a\\ud800b'", json!("a\u{fffd}b")),
        ("['\\udc00']", json!(["\u{fffd}"])),
        ("'\\ud83d\\ude00'", json!("😀")),
        ("undefined", Value::Null),
        ("return args.n + 1", json!(8)),
        ("const n = await args.n; return n + 2", json!(9)),
        ("const n = await 9; n", json!(9)),
    ] {
        let reply = daemon
            .ok("eval", json!({"page": page, "js": js, "args": {"n": 7}}))
            .await;
        assert_eq!(reply["value"], value, "{js}: {reply}");
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_value_of_100_mb_is_cut_and_says_its_size() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    let js = "'x'.repeat(100e6)";
    for (most, cut) in [(None, 256 * 1024), (Some(3_000_000), 3_000_000)] {
        let reply = daemon
            .ok("eval", json!({"page": page, "js": js, "max_bytes": most}))
            .await;
        assert_eq!(
            (&reply["truncated"], &reply["bytes"]),
            (&json!(true), &json!(100_000_000))
        );
        assert_eq!(reply["value"].as_str().unwrap().len(), cut);
    }
    // Inside a list it has no short form: whatever the answer, there is one, and the page goes on.
    let (status, reply) = daemon
        .post("eval", json!({"page": page, "js": format!("[{js}]")}))
        .await;
    let truncated = reply["truncated"] == true;
    assert!(
        (status == 200 && truncated) || (status == 422 && reply["error"]["fix"].is_string()),
        "{status}"
    );
    assert_eq!(daemon.eval(&page, "document.title").await, "well");
    daemon.close(&page).await;
}
