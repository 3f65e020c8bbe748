use tokio::io::{AsyncBufReadExt, DuplexStream, duplex, split};

use super::super::command::{Command, NoReply};
use super::*;

#[derive(serde::Serialize)]
struct Probe {}

impl Command for Probe {
    const METHOD: &'static str = "Test.probe";
    type Reply = NoReply;
}

fn open(tasks: &mut JoinSet<()>) -> (Connection, DuplexStream) {
    let (ours, theirs) = duplex(64 * 1024);
    let (input, output) = split(ours);
    (Connection::open(Codec::Json, input, output, tasks), theirs)
}

async fn say(end: &mut (impl AsyncWrite + Unpin), message: Value) {
    end.write_all(format!("{message}\0").as_bytes())
        .await
        .unwrap();
}

#[tokio::test]
async fn what_waits_fails_at_once_with_its_reason() {
    let mut tasks = JoinSet::new();
    let (connection, mut browser) = open(&mut tasks);
    let (one, two): (Arc<str>, Arc<str>) = ("S1".into(), "S2".into());
    let crashed = connection.start(Some(&one), &Probe {});
    let detached = connection.start(Some(&two), &Probe {});
    let closed = connection.start(None, &Probe {});
    say(
        &mut browser,
        json!({"method": "Inspector.targetCrashed", "sessionId": "S1", "params": {}}),
    )
    .await;
    assert!(matches!(crashed.await, Err(CallError::Crashed)));
    say(
        &mut browser,
        json!({"method": "Target.detachedFromTarget", "params": {"sessionId": "S2"}}),
    )
    .await;
    assert!(matches!(detached.await, Err(CallError::Detached)));
    drop(browser);
    assert!(matches!(closed.await, Err(CallError::Closed)));
    assert!(matches!(
        connection.start(None, &Probe {}).await,
        Err(CallError::Closed)
    ));
    assert_eq!(connection.waiting(), 0);
    tasks.join_all().await;
}

#[tokio::test]
async fn replies_find_their_commands_in_any_order() {
    let mut tasks = JoinSet::new();
    let (connection, browser) = open(&mut tasks);
    let first = connection.start_raw(None, &Probe {}, COMMAND);
    let second = connection.start_raw(None, &Probe {}, COMMAND);
    let (input, mut output) = split(browser);
    let mut lines = BufReader::new(input);
    let mut line = Vec::new();
    lines.read_until(0, &mut line).await.unwrap();
    assert_eq!(
        &line[..],
        b"{\"id\":1,\"method\":\"Test.probe\",\"params\":{}}\0"
    );
    say(&mut output, json!({"id": 2, "result": {"n": 2}})).await;
    say(&mut output, json!({"id": 9, "result": {}})).await;
    say(
        &mut output,
        json!({"id": 1, "error": {"code": -32000, "message": "no"}}),
    )
    .await;
    assert_eq!(second.await.unwrap().value().unwrap(), json!({"n": 2}));
    assert!(matches!(first.await, Err(CallError::Refused { message, .. }) if message == "no"));
    connection.close();
    tasks.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_answer_ends_at_its_deadline_and_leaves_nothing() {
    let mut tasks = JoinSet::new();
    let (connection, _browser) = open(&mut tasks);
    assert!(matches!(
        connection.start(None, &Probe {}).await,
        Err(CallError::Timeout { .. })
    ));
    drop(connection.start(None, &Probe {}));
    connection.close();
    assert_eq!(connection.waiting(), 0);
    tasks.join_all().await;
}
