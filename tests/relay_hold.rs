//! The life of a session at the embedded relay: held, resumed, replaced, ended.

mod relay_stage;

use std::time::Duration;

use relay_stage::*;
use serde_json::json;

#[tokio::test]
async fn a_session_is_held_after_any_close_but_1000() {
    let relay = relay().await;
    for (code, held) in [
        (None, true),
        (Some(1001), true),
        (Some(4000), true),
        (Some(1000), false),
    ] {
        let (mut app, _) = App::registered(relay.address(), &["POST /a"]).await;
        let base = app.mint().await;
        match code {
            Some(code) => app.close(code).await,
            None => app.cut(),
        }
        let path = format!("{base}/unknown");
        let answer = soon(async {
            loop {
                let answer = post(relay.address(), &path, "").await;
                if answer.status != 404 {
                    return answer;
                }
            }
        })
        .await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (503, "app_offline"),
            "{code:?}"
        );
        assert_eq!(answer.header("retry-after"), if held { "2" } else { "" });
        assert_eq!(answer.text().contains("has been offline for"), held);
        let briefing = get(relay.address(), &format!("{base}/agents.md")).await;
        assert_eq!(briefing.status, if held { 200 } else { 503 });
    }
}

#[tokio::test]
async fn calls_in_flight_fail_when_the_app_goes_and_links_and_tasks_stay() {
    let relay = relay().await;
    let (mut app, session) = App::registered(relay.address(), &["POST /a"]).await;
    let base = app.mint().await;
    let path = format!("{base}/a");
    let begin = json!({ "status": 202, "taskId": "t" });
    tokio::join!(post(relay.address(), &path, ""), app.answer(begin));
    let (answer, ()) = tokio::join!(post(relay.address(), &path, ""), async {
        app.frame().await;
        app.cut();
    });
    assert_eq!((answer.status, answer.header("retry-after")), (503, "2"));
    assert_eq!(
        get(relay.address(), &format!("{base}/_as_tasks/t"))
            .await
            .status,
        202
    );

    let mut app = App::connect(relay.address(), &session.query()).await;
    app.send(session.resume(&["POST /b"])).await;
    let reply = app.frame().await;
    assert_eq!(
        (&reply["ok"], &reply["resumed"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (text(&reply["sessionId"]), text(&reply["resumeSecret"])),
        (session.id.clone(), session.secret.clone())
    );
    app.send(json!({ "type": "task_complete", "taskId": "t", "status": 200, "body": 7 }))
        .await;
    app.request(json!({ "type": "ping" })).await;
    assert_eq!(
        get(relay.address(), &format!("{base}/_as_tasks/t"))
            .await
            .text(),
        "7"
    );
    assert_eq!(
        post(relay.address(), &path, "").await.status,
        404,
        "the new registration counts"
    );
    let path = format!("{base}/b");
    let (answer, _) = tokio::join!(
        post(relay.address(), &path, ""),
        app.answer(json!({ "status": 200 }))
    );
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn links_named_in_a_resume_die_before_the_app_is_live() {
    let relay = relay().await;
    let (mut app, session) = App::registered(relay.address(), &[]).await;
    let (dead, alive) = (app.mint().await, app.mint().await);
    app.cut();
    let mut resume = session.resume(&[]);
    resume["revokeTokens"] = json!([dead.strip_prefix("/v1/t/").unwrap(), "no token", 7]);
    let mut app = App::connect(relay.address(), &session.query()).await;
    app.send(resume).await;
    assert_eq!(app.frame().await["ok"], true);
    assert_eq!(
        get(relay.address(), &format!("{dead}/agents.md"))
            .await
            .status,
        401
    );
    assert_eq!(
        get(relay.address(), &format!("{alive}/agents.md"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn wrong_secrets_and_unknown_sessions_look_the_same() {
    let relay = relay().await;
    let (_app, mut session) = App::registered(relay.address(), &[]).await;
    session.secret = session.secret.chars().rev().collect();
    let unknown = Session {
        id: "00000000".into(),
        secret: session.secret.clone(),
    };
    let mut replies = Vec::new();
    for session in [&session, &unknown] {
        for frame in [
            session.resume(&[]),
            json!({ "type": "end", "sessionId": session.id, "secret": session.secret }),
        ] {
            let mut app = App::connect(relay.address(), &session.query()).await;
            app.send(frame).await;
            let reply = app.frame().await;
            assert_eq!(reply["error"]["code"], "resume_failed");
            assert_eq!(app.close_code().await, 4401);
            replies.push(reply);
        }
    }
    assert_eq!(replies[..2], replies[2..]);
}

#[tokio::test]
async fn a_resume_judges_the_registration_before_the_secret() {
    let relay = relay().await;
    let unknown = Session {
        id: "00000000".into(),
        secret: "x".into(),
    };
    let mut app = App::connect(relay.address(), &unknown.query()).await;
    app.send(unknown.resume(&["POST /_as_x"])).await;
    assert_eq!(app.frame().await["error"]["code"], "reserved_path");
    assert_eq!(app.close_code().await, 4400);
}

#[tokio::test]
async fn a_resume_takes_a_live_session_over() {
    let relay = relay().await;
    let (mut old, session) = App::registered(relay.address(), &["POST /a"]).await;
    let base = old.mint().await;
    let path = format!("{base}/a");
    let (answer, mut new) = tokio::join!(post(relay.address(), &path, ""), async {
        old.frame().await;
        let mut new = App::connect(relay.address(), &session.query()).await;
        new.send(session.resume(&["POST /a"])).await;
        assert_eq!(new.frame().await["resumed"], true);
        assert_eq!(old.close_code().await, 4410);
        new
    });
    assert_eq!(answer.status, 503, "a call of the old socket fails");
    drop(old);
    let (answer, _) = tokio::join!(
        post(relay.address(), &path, ""),
        new.answer(json!({ "status": 200 }))
    );
    assert_eq!(
        answer.status, 200,
        "the end of the old socket does not hold the session"
    );
}

#[tokio::test]
async fn the_fifth_socket_that_waits_on_a_session_is_refused() {
    let relay = relay().await;
    let (mut app, session) = App::registered(relay.address(), &[]).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut socket = App::connect(relay.address(), &session.query()).await;
        socket.request(json!({ "type": "ping" })).await;
        waiting.push(socket);
    }
    let mut fifth = App::connect(relay.address(), &session.query()).await;
    assert_eq!(fifth.close_code().await, 4409);
    waiting.remove(0).close(1000).await;
    let mut next = App::connect(relay.address(), &session.query()).await;
    next.request(json!({ "type": "ping" })).await;
    app.request(json!({ "type": "ping" })).await;
}

#[tokio::test]
async fn end_ends_a_held_and_a_live_session_at_once() {
    let relay = relay().await;
    for live in [true, false] {
        let (mut app, session) = App::registered(relay.address(), &[]).await;
        let base = app.mint().await;
        let mut still = live.then_some(app);
        let mut ender = App::connect(relay.address(), &session.query()).await;
        ender
            .send(json!({ "type": "end", "sessionId": session.id, "secret": session.secret }))
            .await;
        assert_eq!(
            ender.frame().await,
            json!({ "type": "end_reply", "ok": true })
        );
        assert_eq!(ender.close_code().await, 1000);
        if let Some(app) = &mut still {
            assert_eq!(app.close_code().await, 1000);
        }
        let answer = get(relay.address(), &format!("{base}/agents.md")).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, ""));
    }
}

#[tokio::test]
async fn a_session_is_forgotten_when_the_hold_is_over() {
    let relay = relay_with(|config| config.hold = Duration::from_millis(200)).await;
    let (mut app, session) = App::registered(relay.address(), &[]).await;
    let base = app.mint().await;
    app.close(4000).await;
    let path = format!("{base}/agents.md");
    assert_eq!(get(relay.address(), &path).await.status, 200);
    soon(async { while get(relay.address(), &path).await.status == 200 {} }).await;
    assert_eq!(get(relay.address(), &path).await.header("retry-after"), "");
    let mut app = App::connect(relay.address(), &session.query()).await;
    app.send(session.resume(&[])).await;
    assert_eq!(app.frame().await["error"]["code"], "resume_failed");
}

#[tokio::test]
async fn first_frames_on_the_wrong_path_are_refused() {
    let relay = relay().await;
    let (_app, session) = App::registered(relay.address(), &[]).await;
    let mut waiting = App::connect(relay.address(), &session.query()).await;
    waiting.send(registration(&[])).await;
    assert_eq!(waiting.frame().await["error"]["code"], "protocol_error");
    assert_eq!(waiting.close_code().await, 4400);
    let mut plain = App::connect(relay.address(), "").await;
    plain.send(session.resume(&[])).await;
    assert_eq!(plain.frame().await["error"]["code"], "resume_failed");
    assert_eq!(plain.close_code().await, 4401);
}

#[tokio::test]
async fn a_link_revoked_during_a_call_lets_the_call_end_and_no_other_begin() {
    let relay = relay().await;
    let (mut app, _) = App::registered(relay.address(), &["POST /a"]).await;
    let base = app.mint().await;
    let path = format!("{base}/a");
    let (answer, ()) = tokio::join!(post(relay.address(), &path, ""), async {
        let call = app.frame().await;
        let token = base.strip_prefix("/v1/t/").unwrap();
        app.request(json!({ "type": "revoke_agent_token", "token": token }))
            .await;
        app.reply(&call, json!({ "status": 200, "body": 1 })).await;
    });
    assert_eq!(answer.status, 200);
    assert_eq!(
        post(relay.address(), &path, "").await.code(),
        "token_invalid"
    );
}

#[tokio::test]
async fn closing_the_relay_says_goodbye_and_answers_calls_in_flight() {
    let relay = relay().await;
    let address = relay.address();
    let (mut app, _) = App::registered(address, &["POST /a"]).await;
    let path = format!("{}/a", app.mint().await);
    let (answer, ()) = tokio::join!(post(address, &path, ""), async {
        app.frame().await;
        let (code, ()) = tokio::join!(app.close_code(), soon(relay.close()));
        assert_eq!(code, 1001);
    });
    assert_eq!(answer.status, 503);
}
