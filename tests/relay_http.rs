//! The embedded relay as an agent sees it: every rule of its HTTP, over real sockets.

#![allow(
    clippy::disallowed_methods,
    reason = "agents of these tests open connections of their own"
)]

mod relay_stage;

use std::time::Duration;

use relay_stage::*;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

const GUARD: &str = "sandbox; default-src 'none'";

/// A relay, an app with `POST /a` and `GET /g`, and the path of a link.
macro_rules! stage {
    ($relay:ident, $app:ident, $base:ident) => {
        let $relay = relay().await;
        let (mut $app, _session) = App::registered($relay.address(), &["POST /a", "GET /g"]).await;
        let $base = $app.mint().await;
        let $relay = $relay.address();
    };
    ($relay:ident, $app:ident, $base:ident, $change:expr) => {
        let embedded = relay_with($change).await;
        let $relay = embedded.address();
        let (mut $app, _session) = App::registered($relay, &["POST /a", "GET /g"]).await;
        let $base = $app.mint().await;
    };
}

#[tokio::test]
async fn the_front_page_says_what_this_is() {
    let relay = relay().await;
    let page = get(relay.address(), "/").await;
    assert!(page.status == 200 && page.text().contains("agent-socket relay"));
    assert_eq!(get(relay.address(), "/other").await.code(), "not_found");
    assert_eq!(get(relay.address(), "/v1/_ws/").await.status, 404);
}

#[tokio::test]
async fn another_hosts_name_is_refused() {
    let embedded = relay_with(|config| config.names = vec!["relay.example".into()]).await;
    for (host, status) in [
        ("evil.example", 421),
        ("relay.example", 200),
        ("localhost:1", 200),
        ("127.0.0.1.evil.example", 421),
    ] {
        let mut asked = request("GET", "/", "");
        asked.headers_mut().insert("host", host.parse().unwrap());
        assert_eq!(
            ask(embedded.address(), asked).await.status,
            status,
            "{host}"
        );
    }
    let mut upgrade = request("GET", "/v1/_ws", "");
    upgrade
        .headers_mut()
        .insert("host", "evil.example".parse().unwrap());
    assert_eq!(ask(embedded.address(), upgrade).await.code(), "wrong_host");
}

#[tokio::test]
async fn documents_answer_any_method_at_exactly_their_path() {
    stage!(relay, app, base);
    for method in ["GET", "POST", "DELETE", "FOO"] {
        let briefing = ask(relay, request(method, &format!("{base}/agents.md"), "")).await;
        assert_eq!((briefing.status, briefing.text()), (200, "tools.json"));
        assert_eq!(
            briefing.header("content-type"),
            "text/markdown; charset=utf-8"
        );
        let tools = ask(
            relay,
            request(method, &format!("{base}/tools.json?x=/y"), ""),
        )
        .await;
        assert_eq!(tools.json()["tools"][0]["path"], "/a");
    }
    let head = ask(relay, request("HEAD", &format!("{base}/agents.md"), "")).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    for other in [
        "/Agents.md",
        "/agents.md/",
        "/tools.JSON",
        "/_as_x",
        "/_as_tasks",
        "",
        "/",
    ] {
        assert_eq!(
            get(relay, &format!("{base}{other}")).await.code(),
            "not_found",
            "{other}"
        );
    }
    app.request(json!({ "type": "list_agent_tokens" })).await;
}

#[tokio::test]
async fn malformed_unknown_and_revoked_tokens_are_told_apart() {
    stage!(relay, app, base);
    let token = base.strip_prefix("/v1/t/").unwrap();
    for malformed in [
        "x",
        &token.to_lowercase(),
        &format!("{token}x"),
        &token.replace('_', "%5F"),
        "",
    ] {
        let answer = get(relay, &format!("/v1/t/{malformed}/agents.md")).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "not_found"),
            "{malformed}"
        );
    }
    let unknown = format!("/v1/t/as_00000000_{}/agents.md", &token[12..]);
    let answer = get(relay, &unknown).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "app_offline")
    );
    assert!(!answer.headers.contains_key("retry-after"));
    let wrong = format!("/v1/t/{}AAAAAAAAAAAAAAAAAAAAAA/agents.md", &token[..12]);
    let answer = get(relay, &wrong).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (401, "token_invalid")
    );
    let revoked = app
        .request(json!({ "type": "revoke_agent_token", "token": token }))
        .await;
    assert_eq!(revoked["ok"], true);
    assert_eq!(get(relay, &format!("{base}/tools.json")).await.status, 401);
}

#[tokio::test]
async fn a_call_carries_method_path_body_and_allowed_headers() {
    stage!(relay, app, base);
    let mut asked = request(
        "POST",
        &format!("{base}/x/../a?secret=1"),
        b"h\xff\xc3\xa4".to_vec(),
    );
    let headers = asked.headers_mut();
    for (name, value) in [
        ("content-type", "text/x"),
        ("X-One", "1"),
        ("x-one", "2"),
        ("x-real-ip", "9"),
        ("x-forwarded-host", "9"),
        ("cookie", "9"),
    ] {
        headers.append(
            hyper::header::HeaderName::from_bytes(name.as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    let (answer, call) = tokio::join!(ask(relay, asked), app.answer(json!({ "status": 200 })));
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(
        (&call["method"], &call["path"]),
        (&json!("POST"), &json!("/a"))
    );
    assert_eq!(call["body"], "h\u{fffd}ä");
    assert_eq!(
        call["headers"],
        json!({ "content-type": "text/x", "x-one": "1, 2" })
    );
    let path = format!("{base}/g");
    let (_, call) = tokio::join!(get(relay, &path), app.answer(json!({ "status": 200 })));
    assert_eq!((&call["body"], &call["headers"]), (&json!(""), &json!({})));
}

#[tokio::test]
async fn replies_become_responses_by_the_rule() {
    stage!(relay, app, base);
    let html = json!({ "content-type": "text/html" });
    let plain = json!({ "content-type": "text/x; charset=utf-8", "x-other": "dropped", "set-cookie": "dropped" });
    let json_type = "application/json; charset=utf-8";
    for (fields, status, content_type, body) in [
        (
            json!({ "status": 200, "body": { "a": [1] } }),
            200,
            json_type,
            r#"{"a":[1]}"#,
        ),
        (
            json!({ "status": 599, "body": null }),
            599,
            json_type,
            "null",
        ),
        (
            json!({ "status": 404, "body": "text" }),
            404,
            json_type,
            r#""text""#,
        ),
        (json!({ "status": 200 }), 200, json_type, ""),
        (
            json!({ "status": 200, "headers": plain, "body": "ä\n\u{1}" }),
            200,
            "text/x; charset=utf-8",
            "ä\n\u{1}",
        ),
        (
            json!({ "status": 200, "headers": html, "body": "<b>" }),
            200,
            "text/plain; charset=utf-8",
            "<b>",
        ),
        (
            json!({ "status": 200, "headers": html, "body": { "a": 1 } }),
            200,
            json_type,
            r#"{"a":1}"#,
        ),
        (
            json!({ "status": 202, "body": "x", "taskId": "" }),
            202,
            json_type,
            r#""x""#,
        ),
        (json!({ "status": 204 }), 204, json_type, ""),
    ] {
        let path = format!("{base}/a");
        let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(fields.clone()));
        assert_eq!((answer.status, answer.text()), (status, body), "{fields}");
        assert_eq!(answer.header("content-type"), content_type, "{fields}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("content-security-policy"), GUARD);
        assert!(
            !answer.headers.contains_key("x-other") && !answer.headers.contains_key("set-cookie")
        );
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn replies_that_make_no_response_give_502() {
    stage!(relay, app, base);
    for fields in [
        json!({ "status": 199 }),
        json!({ "status": 600 }),
        json!({ "status": "200" }),
        json!({ "status": 200.5 }),
        json!({ "body": 1 }),
        json!({ "status": 204, "body": null }),
        json!({ "status": 304, "body": "x" }),
        json!({ "status": 202, "taskId": 7 }),
        json!({ "status": 202, "taskId": "a b" }),
        json!({ "status": 202, "taskId": "x".repeat(65) }),
        json!({ "status": 200, "headers": { "content-type": "a\nb" }, "body": "x" }),
    ] {
        let path = format!("{base}/a");
        let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(fields.clone()));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (502, "protocol_error"),
            "{fields}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(!answer.headers.contains_key("content-security-policy"));
    }
}

#[tokio::test]
async fn web_pages_may_read_documents_and_call_nothing() {
    stage!(relay, app, base);
    let from_page = |path: &str| {
        let mut asked = request("POST", &format!("{base}{path}"), "");
        asked
            .headers_mut()
            .insert("sec-fetch-site", "same-origin".parse().unwrap());
        asked
    };
    for exempt in ["/agents.md", "/tools.json"] {
        assert_eq!(ask(relay, from_page(exempt)).await.status, 200, "{exempt}");
    }
    assert_eq!(
        ask(relay, from_page("/_as_tasks/none")).await.code(),
        "not_found"
    );
    for refused in ["/a", "/unknown"] {
        let answer = ask(relay, from_page(refused)).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "csrf_denied")
        );
    }
    let mut by_hand = request("POST", &format!("{base}/a"), "");
    by_hand
        .headers_mut()
        .insert("sec-fetch-site", "none".parse().unwrap());
    let (answer, _) = tokio::join!(ask(relay, by_hand), app.answer(json!({ "status": 200 })));
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_body_passes_to_the_last_byte_and_is_judged_before_the_token() {
    stage!(relay, app, base);
    let most = vec![1; 1 << 20];
    let over = vec![1; (1 << 20) + 1];
    let path = format!("{base}/a");
    let (answer, call) = tokio::join!(
        post(relay, &path, most),
        app.answer(json!({ "status": 200 }))
    );
    assert_eq!((answer.status, text(&call["body"]).len()), (200, 1 << 20));
    for path in [path.as_str(), "/v1/t/as_00000000_AAAAAAAAAAAAAAAAAAAAAA/a"] {
        let answer = post(relay, path, over.clone()).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (413, "body_too_large")
        );
    }
    assert_eq!(post(relay, "/v1/t/malformed/a", over).await.status, 404);
}

#[tokio::test]
async fn upgrades_are_judged_in_order() {
    stage!(relay, app, base);
    assert_eq!(get(relay, "/v1/_ws").await.code(), "protocol_error");
    for query in ["?session=", "?session=0123abcd", "?session=0123ABCDE"] {
        assert!(App::try_connect(relay, query).await.is_err(), "{query}");
    }
    for token in [base.as_str(), "/v1/t/as_00000000_AAAAAAAAAAAAAAAAAAAAAA"] {
        let mut asked = request("GET", &format!("{token}/agents.md"), "");
        asked
            .headers_mut()
            .insert("upgrade", "websocket".parse().unwrap());
        let answer = ask(relay, asked).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "protocol_error")
        );
    }
    app.request(json!({ "type": "list_agent_tokens" })).await;
}

#[tokio::test]
async fn the_hundred_and_first_upgrade_in_ten_seconds_is_refused() {
    let relay = relay().await;
    for number in 0..100 {
        // Attempts that fail for another reason count too.
        let query = if number % 2 == 0 { "?session=bad" } else { "" };
        drop(App::try_connect(relay.address(), query).await);
    }
    match App::try_connect(relay.address(), "?session=bad").await {
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
            assert_eq!(response.status(), 429)
        }
        other => panic!("{:?}", other.err()),
    }
    assert_eq!(
        get(relay.address(), "/v1/_ws").await.status,
        400,
        "no upgrade comes before the rate"
    );
}

#[tokio::test]
async fn the_hundred_and_first_call_in_flight_is_refused_before_its_tool_is_looked_up() {
    stage!(relay, app, base);
    let other = app.mint().await;
    let mut agents = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let path = format!("{base}/a");
        agents.spawn(async move { post(relay, &path, "").await.status });
    }
    let mut calls = Vec::new();
    for _ in 0..100 {
        calls.push(app.frame().await);
    }
    for path in [format!("{other}/a"), format!("{base}/unknown")] {
        let answer = post(relay, &path, "").await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (429, "too_many_inflight")
        );
    }
    assert_eq!(get(relay, &format!("{base}/agents.md")).await.status, 200);
    for call in &calls {
        app.reply(call, json!({ "status": 201 })).await;
    }
    while let Some(status) = soon(agents.join_next()).await {
        assert_eq!(status.unwrap(), 201);
    }
    assert_eq!(
        post(relay, &format!("{base}/unknown"), "").await.status,
        404
    );
}

#[tokio::test]
async fn a_call_without_a_reply_times_out_and_a_late_reply_is_dropped() {
    stage!(relay, app, base, |config| config.tool_timeout =
        Duration::from_millis(150));
    let path = format!("{base}/a");
    let (answer, call) = tokio::join!(post(relay, &path, ""), app.frame());
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (504, "tool_timeout")
    );
    app.reply(&call, json!({ "status": 200, "body": "late" }))
        .await;
    app.reply(&json!({ "id": "unknown" }), json!({ "status": 200 }))
        .await;
    let (answer, _) = tokio::join!(
        post(relay, &path, ""),
        app.answer(json!({ "status": 200, "body": "new" }))
    );
    assert_eq!(answer.json(), "new");
}

#[tokio::test]
async fn an_agent_that_hangs_up_keeps_its_place_until_the_timeout() {
    stage!(relay, app, base, |config| config.tool_timeout =
        Duration::from_millis(600));
    for _ in 0..100 {
        let mut agent = tokio::net::TcpStream::connect(relay).await.unwrap();
        let head = format!("POST {base}/a HTTP/1.1\r\nhost: {relay}\r\ncontent-length: 0\r\n\r\n");
        agent.write_all(head.as_bytes()).await.unwrap();
        app.frame().await;
    }
    let path = format!("{base}/a");
    assert_eq!(post(relay, &path, "").await.code(), "too_many_inflight");
    soon(async { while post(relay, &format!("{base}/unknown"), "").await.status == 429 {} }).await;
    let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(json!({ "status": 200 })));
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn tasks_are_pending_then_given_once_then_gone() {
    stage!(relay, app, base);
    let (path, poll) = (format!("{base}/a"), format!("{base}/_as_tasks/t-1"));
    let begin = json!({ "status": 202, "taskId": "t-1", "body": "ignored" });
    let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(begin.clone()));
    assert_eq!((answer.status, answer.text()), (202, r#"{"taskId":"t-1"}"#));
    assert!(
        !answer.headers.contains_key("x-content-type-options"),
        "only its content type"
    );
    let pending = get(relay, &poll).await;
    assert_eq!(
        (pending.status, pending.text()),
        (202, r#"{"taskId":"t-1","completed":false}"#)
    );
    assert_eq!(pending.header("content-security-policy"), GUARD);
    let complete = |task: &str, status: u16, body: &str| json!({ "type": "task_complete", "taskId": task, "status": status, "body": body });
    // Dropped in silence, each of them.
    for wrong in [
        complete("other", 200, "x"),
        complete("t-1", 600, "x"),
        complete("t-1", 100, "x"),
        complete("t-1", 200, &"x".repeat(65_535)),
    ] {
        app.send(wrong).await;
    }
    let mut long_type = complete("t-1", 200, "x");
    long_type["headers"] = json!({ "content-type": "a".repeat(257) });
    app.send(long_type).await;
    app.request(json!({ "type": "ping" })).await;
    assert_eq!(get(relay, &poll).await.status, 202);
    app.send(complete("t-1", 404, "first")).await;
    app.send(complete("t-1", 201, &"x".repeat(65_534))).await;
    app.request(json!({ "type": "ping" })).await;
    let done = get(relay, &poll).await;
    assert_eq!((done.status, done.body.len()), (201, 65_536));
    assert_eq!(get(relay, &poll).await.code(), "not_found");
    tokio::join!(post(relay, &path, ""), app.answer(begin));
    app.send(complete("t-1", 200, "x")).await;
    app.request(json!({ "type": "ping" })).await;
    assert_eq!(ask(relay, request("HEAD", &poll, "")).await.status, 200);
    assert_eq!(get(relay, &poll).await.status, 404, "a HEAD consumes it");
}

#[tokio::test]
async fn the_hundred_and_first_task_is_refused() {
    stage!(relay, app, base);
    let path = format!("{base}/a");
    for number in 0..=100 {
        let begin = json!({ "status": 202, "taskId": number.to_string() });
        let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(begin));
        match number {
            100 => assert_eq!(
                (answer.status, answer.code().as_str()),
                (503, "too_many_tasks")
            ),
            _ => assert_eq!(answer.status, 202),
        }
    }
}

#[tokio::test]
async fn a_head_request_does_not_reach_a_get_tool() {
    stage!(relay, app, base);
    assert_eq!(
        ask(relay, request("HEAD", &format!("{base}/g"), ""))
            .await
            .status,
        404
    );
    assert_eq!(
        ask(relay, request("OPTIONS", &format!("{base}/g"), ""))
            .await
            .status,
        404
    );
    app.request(json!({ "type": "ping" })).await;
}
