//! The embedded relay as an agent sees it: every rule of its HTTP, over real sockets.

mod relay_stage;

use relay_stage::*;
use serde_json::json;

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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
async fn web_pages_may_read_documents_and_call_nothing() {
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
    let (_relay, relay, mut app, base) = staged(|_| {}).await;
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
            assert_eq!(response.status(), 429);
        }
        other => panic!("{:?}", other.err()),
    }
    assert_eq!(
        get(relay.address(), "/v1/_ws").await.status,
        400,
        "no upgrade comes before the rate"
    );
}
