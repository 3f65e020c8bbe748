//! Bodies that are wrong: each gets a clear refusal, and the next call works.

use hyper::Method;
use serde_json::{Value, json};

use crate::daemon::{Daemon, judge_refusal};

const PAGE: &str = "<!doctype html><title>well</title><p id=p>well</p>";

/// Sends calls that must be refused with one status and code, and asks a page for a sign of life after each.
async fn all_refused(
    daemon: &Daemon,
    page: &str,
    rows: Vec<(&str, Value)>,
    status: u16,
    code: &str,
) {
    for (tool, body) in rows {
        daemon.refused(tool, body.clone(), status, code).await;
        assert_eq!(
            daemon.eval(page, "document.title").await,
            "well",
            "after {tool} {body}"
        );
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_or_of_the_wrong_shape_is_refused_by_every_tool() {
    let daemon = Daemon::shared();
    for tool in ["files", "page", "close", "eval", "screenshot", "image"] {
        for body in [
            "",
            "{",
            "[]",
            "null",
            "7",
            "\"text\"",
            "{\"page\":\"\\ud800\"}",
            "{\"page\":p1}",
            "{} {}",
        ] {
            let reply = daemon.send(Method::POST, tool, body).await;
            judge_refusal(&reply, &format!("{tool} {body}"), 400, "bad_arguments");
        }
        let reply = daemon
            .send(Method::POST, tool, vec![b'{', b'"', 0xff, 0xfe])
            .await;
        assert_eq!(reply.status, 400, "{tool}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_wrong_type_and_an_unknown_field_are_named_with_what_was_meant() {
    let daemon = Daemon::shared();
    for (tool, body, named, fix) in [
        ("page", json!({"html": 5}), "html", ""),
        ("page", json!({"html": "x", "width": "wide"}), "width", ""),
        (
            "page",
            json!({"html": "x", "wait_until": "never"}),
            "never",
            "",
        ),
        ("page", json!({"html": "x", "widht": 5}), "widht", "width"),
        (
            "screenshot",
            json!({"page": "p1", "fullPage": true}),
            "fullPage",
            "full_page",
        ),
        (
            "screenshot",
            json!({"page": "p1", "format": "gif"}),
            "gif",
            "",
        ),
        (
            "screenshot",
            json!({"page": "p1", "clip": {"x": 1}}),
            "clip",
            "",
        ),
        ("eval", json!({"page": "p1", "script": "1"}), "script", "js"),
        ("eval", json!({"js": "1"}), "page", ""),
        (
            "files",
            json!({"files": [{"path": "a", "text": 1}]}),
            "files[0].text",
            "",
        ),
        (
            "files",
            json!({"archive": {"base64": "", "format": "rar"}}),
            "rar",
            "",
        ),
        ("image", json!({"image": "i1", "part": "one"}), "part", ""),
        ("close", json!({"pages": "p1"}), "pages", "page"),
    ] {
        let error = daemon
            .refused(tool, body.clone(), 400, "bad_arguments")
            .await;
        assert!(
            error["message"].as_str().unwrap().contains(named),
            "{body}: {error}"
        );
        assert!(
            error["fix"].as_str().unwrap().contains(fix),
            "{body}: {error}"
        );
    }
}

#[tokio::test]
async fn a_page_a_picture_an_upload_and_a_tool_that_are_not_there_are_not_found() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    let rows = vec![
        ("eval", json!({"page": "p9999", "js": "1"})),
        ("eval", json!({"page": "", "js": "1"})),
        ("eval", json!({"page": "../p1", "js": "1"})),
        ("screenshot", json!({"page": "p9999"})),
        ("close", json!({"page": "p9999"})),
        ("page", json!({"page": "p9999", "html": "x"})),
        ("page", json!({"path": "never-uploaded.html"})),
        ("files", json!({"delete": ["never-uploaded.html"]})),
        ("image", json!({"image": "i9999"})),
        ("image", json!({"image": "../../etc/passwd"})),
    ];
    all_refused(&daemon, &page, rows, 404, "not_found").await;
    // A tool that is not there the relay refuses itself, in its own words.
    let (status, reply) = daemon.post("fly", json!({})).await;
    assert_eq!(
        (status, &reply["error"]["code"]),
        (404, &json!("not_found")),
        "{reply}"
    );
    let receipt = daemon.ok("screenshot", json!({ "page": page })).await;
    let beyond = vec![
        ("image", json!({"image": receipt["image"], "part": 0})),
        ("image", json!({"image": receipt["image"], "part": 2})),
    ];
    all_refused(&daemon, &page, beyond, 400, "bad_arguments").await;
    daemon.close(&page).await;
}

#[tokio::test]
async fn numbers_out_of_bounds_are_refused() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    let clip = |x: f64, width: f64| json!({"page": page, "clip": {"x": x, "y": 0, "width": width, "height": 9}});
    let rows = vec![
        ("page", json!({"html": "x", "width": 15})),
        ("page", json!({"html": "x", "height": 8193})),
        ("page", json!({"html": "x", "width": -1})),
        ("page", json!({"html": "x", "width": 1e20})),
        ("page", json!({"html": "x", "width": 100.5})),
        ("page", json!({"html": "x", "scale": 0.09})),
        ("page", json!({"html": "x", "scale": 4.1})),
        ("page", json!({"html": "x", "width": 8192, "height": 8192})),
        ("page", json!({"html": "x", "timeout_ms": 0})),
        ("page", json!({"html": "x", "timeout_ms": 600_000})),
        ("page", json!({"html": "x", "path": "a"})),
        ("page", json!({})),
        ("eval", json!({"page": page, "js": "1", "timeout_ms": 0})),
        (
            "eval",
            json!({"page": page, "js": "1", "max_bytes": 10_000_000}),
        ),
        ("screenshot", json!({"page": page, "quality": 0})),
        (
            "screenshot",
            json!({"page": page, "quality": 101, "format": "jpeg"}),
        ),
        ("screenshot", json!({"page": page, "scale": 99})),
        ("screenshot", json!({"page": page, "max_side": 1})),
        (
            "screenshot",
            json!({"page": page, "full_page": true, "selector": "p"}),
        ),
        ("screenshot", clip(-1.0, 9.0)),
        ("screenshot", clip(0.0, 0.0)),
        ("screenshot", clip(0.0, 1e9)),
        ("close", json!({})),
        ("close", json!({"page": page, "all": true})),
    ];
    all_refused(&daemon, &page, rows, 400, "bad_arguments").await;
    daemon.close(&page).await;
}

#[tokio::test]
async fn an_address_that_is_no_public_name_over_http_is_refused() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    let urls = [
        "file:///etc/passwd",
        "chrome://gpu",
        "chrome://crash",
        "devtools://devtools/bundled/inspector.html",
        "view-source:https://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "about:blank",
        "blob:https://example.com/1",
        "filesystem:https://example.com/temporary/x",
        "ftp://example.com/",
        "https://127.0.0.1/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://93.184.216.34/",
        "http://localhost/",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "https://",
        "example.com",
        "",
        " file:///etc/passwd",
        "FILE:///etc/passwd",
        "java\nscript:alert(1)",
    ];
    for to in [Value::Null, json!(page)] {
        let body = |url: &&str| ("page", json!({"url": url, "page": to}));
        all_refused(
            &daemon,
            &page,
            urls.iter().map(body).collect(),
            400,
            "bad_url",
        )
        .await;
    }
    daemon.close(&page).await;
}

#[tokio::test]
async fn a_selector_that_is_invalid_or_matches_nothing_is_refused_in_time() {
    let daemon = Daemon::shared();
    let page = daemon.open(PAGE, 320, 200).await;
    let rows = vec![
        ("screenshot", json!({"page": page, "selector": "#none"})),
        ("screenshot", json!({"page": page, "selector": ":::"})),
        (
            "screenshot",
            json!({"page": page, "selector": "p'); alert(1); ('"}),
        ),
        (
            "screenshot",
            json!({"page": page, "wait_for": "[[", "timeout_ms": 1000}),
        ),
        (
            "screenshot",
            json!({"page": page, "wait_for": "#none", "timeout_ms": 300}),
        ),
        ("page", json!({"html": "<p>", "wait_for": "p:::"})),
    ];
    all_refused(&daemon, &page, rows, 400, "bad_selector").await;
    daemon.close(&page).await;
}
