//! The link against a relay that misbehaves on purpose.

mod relay_stage;

use std::time::Duration;

use futures_util::SinkExt as _;
use gpu_browser::relay::frames::{Body, TaskAnswer};
use gpu_browser::relay::link::{Link, LinkError, LinkEvent, LinkState, Trouble};
use relay_stage::fake::FakeRelay;
use relay_stage::*;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;

#[tokio::test]
async fn a_frame_cut_in_the_middle_is_a_lost_connection_that_is_resumed() {
    let relay = FakeRelay::bind().await;
    let (_link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.accept().await;
    assert_eq!(
        (socket.path.clone(), &socket.frame().await["type"]),
        ("/v1/_ws".into(), &json!("register"))
    );
    socket.admit(false).await;
    assert!(!up(&mut events).await);
    // A text frame of 100 bytes of which 5 come.
    socket
        .socket
        .get_mut()
        .write_all(b"\x81\x64{\"typ")
        .await
        .unwrap();
    drop(socket);
    assert!(matches!(away(&mut events).await, Trouble::Cut(_)));
    let mut socket = relay.accept().await;
    assert_eq!(socket.path, "/v1/_ws?session=ABCDEFGH");
    let resume = socket.frame().await;
    assert_eq!(
        (&resume["type"], &resume["secret"]),
        (&json!("resume"), &json!("s3cret"))
    );
    socket.admit(true).await;
    assert!(up(&mut events).await);
}

#[tokio::test]
async fn a_half_open_connection_is_given_up_and_heartbeats_are_exact() {
    let relay = FakeRelay::bind().await;
    let mut config = link_config(relay.address);
    config.timing.heartbeat = Duration::from_millis(100);
    config.timing.liveness = Duration::from_millis(250);
    let (link, mut events) = Link::open(config);
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    match soon(futures_util::StreamExt::next(&mut socket.socket)).await {
        Some(Ok(Message::Text(text))) => assert_eq!(text, r#"{"type":"ping","id":"as_hb"}"#),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        away(&mut events).await,
        Trouble::Silent(Duration::from_millis(250))
    );
    let mut socket = relay.welcome().await;
    assert!(up(&mut events).await);
    for _ in 0..4 {
        socket.frame_of("ping").await;
        socket.send_text(r#"{"type":"pong","id":"as_hb"}"#).await;
    }
    assert!(matches!(link.status().state, LinkState::Up { .. }));
    assert_eq!(link.status().reconnects, 1);
}

#[tokio::test]
async fn garbage_is_ignored() {
    let relay = FakeRelay::bind().await;
    let (link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.accept().await;
    socket.frame().await;
    let garbage = [
        "",
        "noise",
        "[]",
        "7",
        "{\"type\":7}",
        "{\"type\":\"register_reply\"",
        "{\"type\":\"tool_call\"}",
        "{\"type\":\"mint_agent_token_reply\",\"id\":\"x9\",\"ok\":1}",
    ];
    for text in garbage {
        socket.send_text(text).await;
    }
    socket.admit(false).await;
    up(&mut events).await;
    for text in garbage {
        socket.send_text(text).await;
    }
    socket
        .socket
        .send(Message::binary(b"\xff\xfe\x00".to_vec()))
        .await
        .unwrap();
    let (minted, _) = tokio::join!(link.mint("x"), socket.mint("as_T"));
    assert_eq!(minted.unwrap().token, "as_T");
    let (minted, _) = tokio::join!(link.mint("x"), socket.mint("../../evil?"));
    assert!(matches!(minted, Err(LinkError::Refused { .. })));
}

#[tokio::test]
async fn a_reply_that_never_comes_is_not_waited_for() {
    let relay = FakeRelay::bind().await;
    let mut config = link_config(relay.address);
    config.timing.answer = Duration::from_millis(100);
    config.timing.connect = Duration::from_millis(100);
    let (link, mut events) = Link::open(config);
    let mut silent = relay.accept().await;
    silent.frame().await;
    assert_eq!(
        away(&mut events).await,
        Trouble::NoAnswer(Duration::from_millis(100))
    );
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    let (minted, asked) = tokio::join!(link.mint("x"), socket.frame_of("mint_agent_token"));
    assert_eq!(minted, Err(LinkError::Away));
    // When the reply comes after all, nobody knows the link: it must not live on.
    socket.send(json!({ "type": "mint_agent_token_reply", "id": asked["id"], "ok": true, "token": "as_late" })).await;
    assert_eq!(
        socket.frame_of("revoke_agent_token").await["token"],
        "as_late"
    );
}

#[tokio::test]
async fn what_is_done_while_away_is_told_in_the_resume() {
    let relay = FakeRelay::bind().await;
    let mut config = link_config(relay.address);
    config.timing.backoff_first = Duration::from_millis(300);
    config.timing.backoff_cap = Duration::from_millis(300);
    let (link, mut events) = Link::open(config);
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    let (minted, _) = tokio::join!(link.mint("x"), socket.mint("as_T"));
    drop(socket);
    away(&mut events).await;
    assert_eq!(link.revoke(&minted.unwrap().token).await, Ok(true));
    link.update_tools(Vec::new(), Some("tools.json new".into()))
        .await
        .unwrap();
    let (later, resume) = tokio::join!(link.mint("later"), async {
        let mut socket = relay.accept().await;
        let resume = socket.frame().await;
        socket.admit(true).await;
        socket.mint("as_U").await;
        resume
    });
    assert_eq!(later.unwrap().token, "as_U", "a mint waits for the relay");
    assert_eq!(
        (&resume["revokeTokens"], &resume["tools"]),
        (&json!(["as_T"]), &json!([]))
    );
    assert_eq!(resume["agentsMd"], "tools.json new");
}

#[tokio::test]
async fn a_refused_resume_makes_every_link_again_and_tells_the_owner() {
    let relay = FakeRelay::bind().await;
    let (link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    for token in ["as_A", "as_B", "as_C"] {
        let (minted, _) = tokio::join!(link.mint(token), socket.mint(token));
        minted.unwrap();
    }
    let (revoked, _) = tokio::join!(
        link.revoke("as_B"),
        socket.answer("revoke_agent_token", json!({ "ok": true }))
    );
    revoked.unwrap();
    drop(socket);
    let mut socket = relay.accept().await;
    assert_eq!(socket.frame().await["type"], "resume");
    socket
        .send(
            json!({ "type": "register_reply", "ok": false, "error": { "code": "resume_failed" } }),
        )
        .await;
    socket.close(4401).await;
    let mut socket = relay.accept().await;
    assert_eq!(
        (socket.path.clone(), &socket.frame().await["type"]),
        ("/v1/_ws".into(), &json!("register"))
    );
    socket.admit(false).await;
    assert!(!up(&mut events).await);
    let first = socket.mint("as_X").await;
    // The connection goes in the middle of it; the session stays, and the rest is made on the next one.
    drop(socket);
    let mut socket = relay.welcome().await;
    let second = socket.mint("as_Y").await;
    let mut labels = [text(&first["label"]), text(&second["label"])];
    labels.sort();
    assert_eq!(labels, ["l", "l"], "as the relay has cut them");
    let links = loop {
        match soon(events.recv()).await.unwrap() {
            LinkEvent::Replaced { links } => break links,
            LinkEvent::Ended(ending) => panic!("{ending}"),
            _ => {}
        }
    };
    let base = format!("http://{}/v1/t", relay.address);
    let told: Vec<_> = links
        .iter()
        .map(|link| (link.old.clone(), link.new.clone().unwrap()))
        .collect();
    let expected = [("as_A", "as_X"), ("as_C", "as_Y")];
    assert_eq!(
        told,
        expected.map(|(old, new)| (
            format!("{base}/{old}/agents.md"),
            format!("{base}/{new}/agents.md")
        ))
    );
}

#[tokio::test]
async fn task_answers_are_sent_again_after_every_reconnect_and_late_replies_are_not() {
    let relay = FakeRelay::bind().await;
    let (link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    socket.call("c1").await;
    let call = called(&mut events).await;
    drop(socket);
    away(&mut events).await;
    let answer = |id: &str| TaskAnswer {
        task_id: id.into(),
        status: 200,
        body: Body::Json(json!(id)),
    };
    link.complete_task(&answer("t1")).unwrap();
    link.reply(&plain(&call, "late")).unwrap();
    for round in 0..3 {
        let mut socket = relay.welcome().await;
        up(&mut events).await;
        link.reply(&plain(&call, "later still")).unwrap();
        link.complete_task(&answer(&format!("new{round}"))).unwrap();
        let mut ids = Vec::new();
        for _ in 0..2 + round {
            let frame = socket.frame().await;
            assert_eq!(
                frame["type"], "task_complete",
                "the reply belongs to another connection"
            );
            ids.push(text(&frame["taskId"]));
        }
        assert!(ids.contains(&"t1".to_owned()), "{ids:?}");
        socket.call("c1").await;
        link.reply(&plain(&called(&mut events).await, "now"))
            .unwrap();
        assert_eq!(socket.frame().await["body"], "now");
    }
}

#[tokio::test]
async fn a_relay_that_does_not_read_makes_replies_refused_until_it_reads_again() {
    let relay = FakeRelay::bind().await;
    let (link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    socket.call("c1").await;
    let call = called(&mut events).await;
    let reply = plain(&call, "x".repeat(64 * 1024));
    let mut accepted = 0;
    let refused = soon(async {
        loop {
            match link.reply(&reply) {
                Ok(()) => accepted += 1,
                Err(error) => return error,
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(refused.await, LinkError::Busy);
    for _ in 0..accepted {
        socket.frame_of("tool_reply").await;
    }
    link.reply(&plain(&call, "last")).unwrap();
    assert_eq!(socket.frame_of("tool_reply").await["body"], "last");
}

#[tokio::test]
async fn more_calls_than_the_owner_takes_are_refused_at_once() {
    let relay = FakeRelay::bind().await;
    let (_link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    for number in 0..300 {
        socket.call(&format!("c{number}")).await;
    }
    let refused = socket.frame_of("tool_reply").await;
    assert_eq!(
        (&refused["status"], &refused["body"]["error"]["code"]),
        (&json!(503), &json!("busy"))
    );
    let first = called(&mut events).await;
    assert_eq!(first.path, "/echo");
}

#[tokio::test]
async fn a_slow_line_that_still_carries_pictures_is_not_given_up() {
    const LIVENESS: Duration = Duration::from_secs(1);
    let relay = FakeRelay::bind().await;
    let mut config = link_config(relay.address);
    config.timing.liveness = LIVENESS;
    let (link, mut events) = Link::open(config);
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    socket.call("c1").await;
    let call = called(&mut events).await;
    let picture = plain(&call, "x".repeat(3_000_000));
    for _ in 0..12 {
        link.reply(&picture).unwrap();
    }
    // The relay says nothing for longer than it may be silent, but it goes on reading.
    let begin = std::time::Instant::now();
    while begin.elapsed() < LIVENESS * 3 / 2 {
        tokio::time::sleep(LIVENESS / 5).await;
        socket.frame_of("tool_reply").await;
    }
    assert!(matches!(link.status().state, LinkState::Up { .. }));
    // When it does not even read any more, it is.
    assert_eq!(away(&mut events).await, Trouble::Silent(LIVENESS));
}
