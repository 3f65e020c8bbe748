//! The contract against the real program with short time limits, so that each of them is seen to pass.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the relay under test is a process of its own"
)]

mod relay_stage;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use relay_stage::*;
use serde_json::{Value, json};
use tokio::time::sleep;

const TOOL: Duration = Duration::from_secs(3);
const HOLD: Duration = Duration::from_secs(3);
const LIVENESS: Duration = Duration::from_secs(15);
/// How late a busy machine may be.
const LATE: Duration = Duration::from_secs(2);
const HEARTBEAT: &str = r#"{"type":"ping","id":"as_hb"}"#;

/// `gpu-browser relay` with these limits.
struct Program(Child);

impl Program {
    fn run() -> (Self, SocketAddr) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gpu-browser"))
            .args(["relay", "--listen", "127.0.0.1:0"])
            .args(["--tool-timeout", "3s", "--liveness", "15s", "--hold", "3s"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("relay at http://").unwrap();
        let address = address.parse().unwrap();
        (Self(child), address)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_about(took: Duration, limit: Duration) {
    assert!(
        took >= limit - Duration::from_millis(50),
        "{took:?} for {limit:?}"
    );
    assert!(took < limit + LATE, "{took:?} for {limit:?}");
}

async fn resumed(relay: SocketAddr, session: &Session, frame: Value) -> (App, Value) {
    let mut app = App::connect(relay, &session.query()).await;
    app.send(frame).await;
    let reply = app.frame().await;
    (app, reply)
}

/// A held or an ended session, told apart as agents do.
async fn is_held(relay: SocketAddr, base: &str, held: bool) {
    let call = post(relay, &format!("{base}/a"), "").await;
    assert_eq!((call.status, call.code().as_str()), (503, "app_offline"));
    assert_eq!(call.header("retry-after"), if held { "2" } else { "" });
    let briefing = get(relay, &format!("{base}/agents.md")).await;
    assert_eq!(briefing.status, if held { 200 } else { 503 });
}

async fn a_call_times_out(relay: SocketAddr) {
    let (mut app, _) = App::registered(relay, &["POST /a"]).await;
    let path = format!("{}/a", app.mint().await);
    let begin = Instant::now();
    let (answer, call) = tokio::join!(post(relay, &path, ""), app.frame());
    is_about(begin.elapsed(), TOOL);
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (504, "tool_timeout")
    );
    app.reply(&call, json!({ "status": 200, "body": "late" }))
        .await;
    let new = json!({ "status": 200, "body": "new" });
    let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(new));
    assert_eq!(answer.json(), "new");
}

async fn a_task_outlives_the_tool_timeout(relay: SocketAddr) {
    let (mut app, session) = App::registered(relay, &["POST /a"]).await;
    let base = app.mint().await;
    let (path, poll) = (format!("{base}/a"), format!("{base}/_as_tasks/t"));
    let begin = json!({ "status": 202, "taskId": "t" });
    let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(begin));
    assert_eq!(
        (answer.status, answer.json()),
        (202, json!({ "taskId": "t" }))
    );
    sleep(TOOL + Duration::from_secs(1)).await;
    let pending = get(relay, &poll).await;
    assert_eq!(pending.json(), json!({ "taskId": "t", "completed": false }));
    app.cut();
    let (mut app, reply) = resumed(relay, &session, session.resume(&["POST /a"])).await;
    assert_eq!(reply["resumed"], true);
    app.send(json!({ "type": "task_complete", "taskId": "t", "status": 201, "body": [1] }))
        .await;
    app.request(json!({ "type": "ping" })).await;
    let done = get(relay, &poll).await;
    assert_eq!((done.status, done.json()), (201, json!([1])));
    assert_eq!(get(relay, &poll).await.code(), "not_found");
}

async fn a_session_is_held_and_resumed(relay: SocketAddr) {
    let (mut app, session) = App::registered(relay, &["POST /a"]).await;
    let (base, dead) = (app.mint().await, app.mint().await);
    app.cut();
    sleep(HOLD - Duration::from_millis(1_500)).await;
    is_held(relay, &base, true).await;
    let mut frame = session.resume(&["POST /a"]);
    frame["revokeTokens"] = json!([dead.strip_prefix("/v1/t/").unwrap()]);
    let (mut app, reply) = resumed(relay, &session, frame).await;
    assert_eq!(
        (&reply["resumed"], &reply["resumeSecret"]),
        (&json!(true), &json!(session.secret))
    );
    // The hold is over now, and the session is not.
    sleep(HOLD).await;
    let path = format!("{base}/a");
    let (answer, _) = tokio::join!(post(relay, &path, ""), app.answer(json!({ "status": 200 })));
    assert_eq!(answer.status, 200);
    assert_eq!(
        get(relay, &format!("{dead}/agents.md")).await.code(),
        "token_invalid"
    );
}

async fn a_session_is_forgotten_after_the_hold(relay: SocketAddr) {
    let (mut app, session) = App::registered(relay, &["POST /a"]).await;
    let base = app.mint().await;
    app.close(4000).await;
    is_held(relay, &base, true).await;
    sleep(HOLD + Duration::from_secs(1)).await;
    is_held(relay, &base, false).await;
    let (mut app, reply) = resumed(relay, &session, session.resume(&[])).await;
    assert_eq!(reply["error"]["code"], "resume_failed");
    assert_eq!(app.close_code().await, 4401);
}

async fn a_silent_app_is_closed_and_held(relay: SocketAddr) {
    let (mut silent, session) = App::registered(relay, &["POST /a"]).await;
    let (mut lively, _) = App::registered(relay, &["POST /a"]).await;
    let base = silent.mint().await;
    let begin = Instant::now();
    while begin.elapsed() < LIVENESS - Duration::from_secs(3) {
        sleep(Duration::from_secs(4)).await;
        lively.send_text(HEARTBEAT).await;
        assert_eq!(
            lively.frame().await,
            json!({ "type": "pong", "id": "as_hb" })
        );
    }
    assert_eq!(silent.close_code().await, 4408);
    is_about(begin.elapsed(), LIVENESS);
    is_held(relay, &base, true).await;
    assert_eq!(
        resumed(relay, &session, session.resume(&[])).await.1["resumed"],
        true
    );
    sleep(LATE).await;
    lively.request(json!({ "type": "ping" })).await;
}

async fn a_socket_without_a_first_frame_is_closed(relay: SocketAddr) {
    let mut app = App::connect(relay, "").await;
    let begin = Instant::now();
    sleep(Duration::from_secs(8)).await;
    assert_eq!(app.close_code().await, 4408);
    is_about(begin.elapsed(), Duration::from_secs(10));
}

async fn end_and_1000_end_a_session(relay: SocketAddr) {
    let (mut app, session) = App::registered(relay, &["POST /a"]).await;
    let base = app.mint().await;
    let end = json!({ "type": "end", "sessionId": session.id, "secret": session.secret });
    let (mut ender, reply) = resumed(relay, &session, end.clone()).await;
    assert_eq!(reply, json!({ "type": "end_reply", "ok": true }));
    assert_eq!(
        (ender.close_code().await, app.close_code().await),
        (1000, 1000)
    );
    is_held(relay, &base, false).await;
    let (mut again, reply) = resumed(relay, &session, end).await;
    assert_eq!(reply["error"]["code"], "resume_failed");
    assert_eq!(again.close_code().await, 4401);
    let (mut app, _) = App::registered(relay, &["POST /a"]).await;
    let base = app.mint().await;
    app.close(1000).await;
    is_held(relay, &base, false).await;
}

async fn a_revoked_link_is_dead(relay: SocketAddr) {
    let (mut app, _) = App::registered(relay, &["POST /a"]).await;
    let base = app.mint().await;
    let revoke =
        json!({ "type": "revoke_agent_token", "token": base.strip_prefix("/v1/t/").unwrap() });
    for ok in [true, false] {
        assert_eq!(app.request(revoke.clone()).await["ok"], ok);
        assert_eq!(
            post(relay, &format!("{base}/a"), "").await.code(),
            "token_invalid"
        );
    }
}

async fn each_close_has_its_code(relay: SocketAddr) {
    let with = |field: &str, value: Value| {
        let mut frame = registration(&["POST /a"]);
        frame[field] = value;
        frame
    };
    for (frame, code) in [
        (with("appId", json!("a b")), 4001),
        (with("tools", json!([{ "path": "/_as_x" }])), 4400),
        (with("agentsMd", json!("x".repeat(65_537))), 4413),
    ] {
        let mut app = App::connect(relay, "").await;
        app.send(frame).await;
        assert_eq!(app.close_code().await, code);
    }
    let (mut old, session) = App::registered(relay, &[]).await;
    let (mut new, reply) = resumed(relay, &session, session.resume(&[])).await;
    assert_eq!(reply["resumed"], true);
    assert_eq!(old.close_code().await, 4410);
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut socket = App::connect(relay, &session.query()).await;
        socket.request(json!({ "type": "ping" })).await;
        waiting.push(socket);
    }
    assert_eq!(
        App::connect(relay, &session.query())
            .await
            .close_code()
            .await,
        4409
    );
    drop(waiting);
    new.send_text(format!("\"{}\"", "x".repeat(4_194_303)))
        .await;
    assert_eq!(new.close_code().await, 1009);
    let (mut gone, reply) = resumed(relay, &session, session.resume(&[])).await;
    assert_eq!(reply["error"]["code"], "resume_failed");
    assert_eq!(gone.close_code().await, 4401);
}

async fn the_hundred_and_first_call_is_refused(relay: SocketAddr) {
    let (mut app, _) = App::registered(relay, &["POST /a"]).await;
    let path = format!("{}/a", app.mint().await);
    let mut agents = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let path = path.clone();
        agents.spawn(async move { post(relay, &path, "").await.status });
    }
    let mut calls = Vec::new();
    for _ in 0..100 {
        calls.push(app.frame().await);
    }
    let over = post(relay, &path, "").await;
    assert_eq!(
        (over.status, over.code().as_str()),
        (429, "too_many_inflight")
    );
    for call in &calls {
        app.reply(call, json!({ "status": 201 })).await;
    }
    while let Some(status) = soon(agents.join_next()).await {
        assert_eq!(status.unwrap(), 201);
    }
}

async fn agents_are_judged_before_they_are_served(relay: SocketAddr) {
    let (mut app, _) = App::registered(relay, &["POST /a"]).await;
    let path = format!("{}/a", app.mint().await);
    assert!(get(relay, "/").await.text().contains("agent-socket relay"));
    let with = |name: &'static str, value: &'static str| {
        let mut asked = request("POST", &path, "");
        asked.headers_mut().insert(name, value.parse().unwrap());
        asked
    };
    let foreign = ask(relay, with("host", "evil.example")).await;
    assert_eq!(
        (foreign.status, foreign.code().as_str()),
        (421, "wrong_host")
    );
    let page = ask(relay, with("sec-fetch-site", "cross-site")).await;
    assert_eq!((page.status, page.code().as_str()), (403, "csrf_denied"));
    let large = post(relay, &path, vec![b'x'; (1 << 20) + 1]).await;
    assert_eq!(
        (large.status, large.code().as_str()),
        (413, "body_too_large")
    );
    let unknown = post(relay, &format!("{path}b"), "").await;
    assert_eq!(
        (unknown.status, unknown.code().as_str()),
        (404, "not_found")
    );
    app.request(json!({ "type": "ping" })).await;
}

async fn too_many_upgrades_are_refused(relay: SocketAddr) {
    for _ in 0..100 {
        let _ = App::try_connect(relay, "?session=bad").await;
    }
    match App::try_connect(relay, "").await {
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
            assert_eq!(response.status(), 429);
        }
        other => panic!("{:?}", other.err()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_with_short_limits_behaves_as_the_contract_says() {
    let (_program, relay) = Program::run();
    tokio::join!(
        a_call_times_out(relay),
        a_task_outlives_the_tool_timeout(relay),
        a_session_is_held_and_resumed(relay),
        a_session_is_forgotten_after_the_hold(relay),
        a_silent_app_is_closed_and_held(relay),
        a_socket_without_a_first_frame_is_closed(relay),
        end_and_1000_end_a_session(relay),
        a_revoked_link_is_dead(relay),
        each_close_has_its_code(relay),
        the_hundred_and_first_call_is_refused(relay),
        agents_are_judged_before_they_are_served(relay),
    );
    too_many_upgrades_are_refused(relay).await;
}
