//! Calls and tasks at the embedded relay: what goes to the app, what comes back to the agent.

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

#[tokio::test]
async fn a_call_carries_method_path_body_and_allowed_headers() {
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
async fn the_hundred_and_first_call_in_flight_is_refused_before_its_tool_is_looked_up() {
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) =
        staged(|config| config.tool_timeout = Duration::from_millis(150)).await;
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
    let (_relay, relay, mut app, base) =
        staged(|config| config.tool_timeout = Duration::from_millis(600)).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
