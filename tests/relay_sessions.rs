//! The embedded relay as an app sees it: registration, links, frames, limits, and the life of a session.

mod relay_stage;

use std::time::{Duration, Instant};

use relay_stage::*;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

const HEARTBEAT: &str = r#"{"type":"ping","id":"as_hb"}"#;
const FRAME: usize = 4_194_304;

/// A frame that does nothing and has exactly `units` characters.
fn filler(units: usize, character: &str) -> String {
    let empty = r#"{"type":"news","x":""}"#;
    let count = (units - empty.len()) / character.encode_utf16().count();
    let text = format!(r#"{{"type":"news","x":"{}"}}"#, character.repeat(count));
    let missing = units - text.encode_utf16().count();
    text + &" ".repeat(missing)
}

#[tokio::test]
async fn a_registration_tells_who_we_are() {
    let relay = relay().await;
    let (_app, session) = App::registered(relay.address(), &["POST /a"]).await;
    assert_eq!((session.id.len(), session.secret.len()), (8, 43));
}

#[tokio::test]
async fn bad_registrations_are_refused_with_a_code_and_a_close() {
    let relay = relay().await;
    let with = |field: &str, value: serde_json::Value| {
        let mut frame = registration(&["POST /a"]);
        frame[field] = value;
        frame
    };
    for (frame, code, close) in [
        (with("appId", json!("a b")), "invalid_app_id", 4001),
        (with("agentsMd", json!(null)), "agents_md_too_large", 4413),
        (
            with("agentsMd", json!("x".repeat(65_537))),
            "agents_md_too_large",
            4413,
        ),
        (
            with("tools", json!([{ "path": "/agents.md" }])),
            "reserved_path",
            4400,
        ),
        (
            with("tools", json!([{ "path": "/" }])),
            "reserved_path",
            4400,
        ),
        (
            registration(&["POST /a", "post /a"]),
            "protocol_error",
            4400,
        ),
    ] {
        let mut app = App::connect(relay.address(), "").await;
        app.send(frame).await;
        let reply = app.frame().await;
        assert_eq!(
            (&reply["ok"], &reply["error"]["code"]),
            (&json!(false), &json!(code))
        );
        assert_eq!(app.close_code().await, close);
    }
    let mut most = App::connect(relay.address(), "").await;
    most.send(with("agentsMd", json!("😀".repeat(32_768))))
        .await;
    assert_eq!(most.frame().await["ok"], true);
}

#[tokio::test]
async fn before_registration_only_pings_are_answered() {
    let relay = relay().await;
    let mut app = App::connect(relay.address(), "").await;
    app.send_text(HEARTBEAT).await;
    assert_eq!(app.frame().await, json!({ "type": "pong", "id": "as_hb" }));
    for kind in [
        "mint_agent_token",
        "revoke_agent_token",
        "list_agent_tokens",
    ] {
        let reply = app.request(json!({ "type": kind })).await;
        assert_eq!(
            (&reply["type"], &reply["error"]["code"]),
            (&json!(format!("{kind}_reply")), &json!("protocol_error"))
        );
    }
    app.send(json!({ "type": "tool_reply", "id": "1", "status": 200 }))
        .await;
    app.send(registration(&[])).await;
    assert_eq!(app.frame().await["ok"], true);
    app.send(registration(&["POST /other"])).await;
    let second = app.frame().await;
    assert_eq!(
        (&second["ok"], &second["error"]["code"]),
        (&json!(false), &json!("protocol_error"))
    );
    app.request(json!({ "type": "ping" })).await;
}

#[tokio::test]
async fn a_socket_without_a_first_frame_is_closed() {
    let relay = relay_with(|config| config.first_frame = Duration::from_millis(100)).await;
    for query in ["", "?session=00000000"] {
        let mut app = App::connect(relay.address(), query).await;
        app.send_text(HEARTBEAT).await;
        assert_eq!(app.close_code().await, 4408, "{query}");
    }
}

#[tokio::test]
async fn links_are_minted_cut_listed_and_counted() {
    let relay = relay().await;
    let (mut app, _) = App::registered(relay.address(), &[]).await;
    let minted = app
        .request(json!({ "type": "mint_agent_token", "label": "x".repeat(300) }))
        .await;
    let token = text(&minted["token"]);
    assert_eq!(text(&minted["label"]).len(), 256);
    assert_eq!(minted["url"], format!("__BASE__/v1/t/{token}/agents.md"));
    assert!(minted["ok"] == true && minted["expiresAt"].is_null());
    let listed = app.request(json!({ "type": "list_agent_tokens" })).await;
    assert_eq!(listed["tokens"][0]["token"], token);
    assert!(listed["tokens"][0]["mintedAt"].as_u64().unwrap() > 1_600_000_000_000);
    for _ in 1..50 {
        app.mint().await;
    }
    let over = app.request(json!({ "type": "mint_agent_token" })).await;
    assert_eq!(over["error"]["code"], "too_many_tokens");
    for expected in [true, false] {
        let revoked = app
            .request(json!({ "type": "revoke_agent_token", "token": token }))
            .await;
        assert_eq!(revoked["ok"], expected);
    }
    app.mint().await;
}

#[tokio::test]
async fn an_update_replaces_the_tools_or_changes_nothing() {
    let relay = relay().await;
    let (mut app, _) = App::registered(relay.address(), &["POST /a"]).await;
    let base = app.mint().await;
    let update = |tools: serde_json::Value| json!({ "type": "update_tools", "tools": tools });
    for (frame, ok) in [
        (
            update(json!([{ "path": "/b" }, { "path": "/_as_b" }])),
            false,
        ),
        (json!({ "type": "update_tools" }), false),
        (
            json!({ "type": "update_tools", "tools": [], "agentsMd": null }),
            false,
        ),
        (update(json!([{ "path": "/c" }])), true),
    ] {
        assert_eq!(app.request(frame).await["ok"], ok);
        let expected = if ok { "/c" } else { "/a" };
        let tools = get(relay.address(), &format!("{base}/tools.json"))
            .await
            .json();
        assert_eq!(tools["tools"][0]["path"], expected);
    }
    app.send(json!({ "type": "update_tools", "id": 7, "tools": [] }))
        .await;
    app.request(json!({ "type": "ping" })).await;
}

#[tokio::test]
async fn frames_are_read_leniently_and_ids_echoed_as_they_are() {
    let relay = relay().await;
    let (mut app, _) = App::registered(relay.address(), &[]).await;
    for ignored in [
        "no json",
        "7",
        "{\"type\":\"news\"}",
        "[]",
        "{}",
        "{\"type\":7}",
    ] {
        app.send_text(ignored).await;
    }
    app.send_message(Message::binary(
        br#"{"type":"ping","id":{"a":[1.50]}}"#.to_vec(),
    ))
    .await;
    assert_eq!(
        app.frame().await,
        json!({ "type": "pong", "id": { "a": [1.50] } })
    );
}

#[tokio::test]
async fn a_frame_passes_to_the_last_character_and_one_more_ends_the_session() {
    let relay = relay().await;
    for character in ["x", "ä", "😀"] {
        let (mut app, session) = App::registered(relay.address(), &[]).await;
        let base = app.mint().await;
        app.send_text(filler(FRAME, character)).await;
        app.request(json!({ "type": "ping" })).await;
        app.send_text(filler(FRAME + 1, character)).await;
        assert_eq!(app.close_code().await, 1009, "{character}");
        assert_eq!(
            get(relay.address(), &format!("{base}/agents.md"))
                .await
                .status,
            503
        );
        assert_eq!(resumed(&relay, &session).await, "resume_failed");
    }
}

#[tokio::test]
async fn a_frame_far_over_the_limit_is_closed_before_it_is_whole() {
    let relay = relay().await;
    let (mut app, _) = App::registered(relay.address(), &[]).await;
    app.send_text("x".repeat(3 * FRAME + 1)).await;
    assert_eq!(app.close_code().await, 1009);
}

#[tokio::test]
async fn an_oversized_frame_on_a_waiting_socket_closes_only_that_socket() {
    let relay = relay().await;
    let (mut app, session) = App::registered(relay.address(), &[]).await;
    let mut waiting = App::connect(relay.address(), &session.query()).await;
    waiting.send_text(filler(FRAME + 1, "x")).await;
    assert_eq!(waiting.close_code().await, 1009);
    app.request(json!({ "type": "ping" })).await;
}

#[tokio::test]
async fn only_frames_that_are_json_count_as_life() {
    const LIVENESS: Duration = Duration::from_millis(600);
    let relay = relay_with(|config| config.liveness = LIVENESS).await;
    let silent_after = async |sign: &str| {
        let (mut app, session) = App::registered(relay.address(), &[]).await;
        let base = app.mint().await;
        let begin = Instant::now();
        tokio::time::sleep(LIVENESS * 2 / 3).await;
        app.send_text(sign).await;
        app.send_message(Message::Ping("x".into())).await;
        assert_eq!(app.close_code().await, 4408, "{sign}");
        let lived = begin.elapsed();
        let held = get(relay.address(), &format!("{base}/x")).await;
        assert_eq!(held.header("retry-after"), "2");
        assert_eq!(resumed(&relay, &session).await, "");
        lived
    };
    let (object, array, heartbeat, noise, number, string) = tokio::join!(
        silent_after("{}"),
        silent_after("[]"),
        silent_after(HEARTBEAT),
        silent_after("hello"),
        silent_after("7"),
        silent_after("\"x\""),
    );
    for life in [object, array, heartbeat] {
        assert!(life >= LIVENESS * 5 / 3, "{life:?}");
    }
    for silence in [noise, number, string] {
        assert!(silence < LIVENESS * 3 / 2, "{silence:?}");
    }
}

/// Tries to resume: the error's code, or nothing. The socket is closed again with 1000.
async fn resumed(relay: &gpu_browser::relay::embedded::EmbeddedRelay, session: &Session) -> String {
    let mut app = App::connect(relay.address(), &session.query()).await;
    app.send(session.resume(&[])).await;
    let reply = app.frame().await;
    let code = reply["error"]["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    match code.as_str() {
        "" => app.close(1000).await,
        _ => assert_eq!(app.close_code().await, 4401),
    }
    code
}
