//! What keeps a link from its relay, in words, and how a link ends.

mod relay_stage;

use std::time::{Duration, Instant};

use gpu_browser::relay::address::{PlainHttp, RelayAddress};
use gpu_browser::relay::link::{Ending, Link, LinkError, Trouble};
use relay_stage::fake::FakeRelay;
use relay_stage::*;
use serde_json::json;

#[tokio::test]
async fn a_session_that_somebody_took_over_is_left_alone() {
    let relay = FakeRelay::bind().await;
    let (link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    socket.close(4410).await;
    assert_eq!(ended(&mut events).await, Ending::TakenOver);
    assert!(events.recv().await.is_none());
    assert_eq!(link.mint("x").await, Err(LinkError::Ended));
}

#[tokio::test]
async fn a_registration_that_is_refused_ends_the_link_and_one_that_is_postponed_does_not() {
    let relay = FakeRelay::bind().await;
    let (_link, mut events) = Link::open(link_config(relay.address));
    let refuse = |code: &str| json!({ "type": "register_reply", "ok": false, "error": { "code": code, "message": "m" } });
    let mut socket = relay.accept().await;
    socket.frame().await;
    socket.send(refuse("overloaded")).await;
    assert!(matches!(away(&mut events).await, Trouble::NotReady { .. }));
    let mut socket = relay.accept().await;
    socket.frame().await;
    socket.send(refuse("invalid_app_id")).await;
    let ending = Ending::Refused {
        code: "invalid_app_id".into(),
        message: "m".into(),
    };
    assert_eq!(ended(&mut events).await, ending);
}

#[tokio::test]
async fn closing_says_1000_where_it_is_up_and_end_where_it_is_away() {
    let relay = FakeRelay::bind().await;
    let (link, mut events) = Link::open(link_config(relay.address));
    let mut socket = relay.welcome().await;
    up(&mut events).await;
    let ((), code) = tokio::join!(link.close(), socket.close_code());
    assert_eq!(code, 1000);

    let mut config = link_config(relay.address);
    config.timing.backoff_first = Duration::from_secs(60);
    config.timing.backoff_cap = Duration::from_secs(60);
    let (link, mut events) = Link::open(config);
    drop(relay.welcome().await);
    away(&mut events).await;
    let ((), end) = tokio::join!(link.close(), async {
        let mut socket = relay.accept().await;
        assert_eq!(socket.path, "/v1/_ws?session=ABCDEFGH");
        let end = socket.frame().await;
        socket
            .send(json!({ "type": "end_reply", "ok": true }))
            .await;
        end
    });
    assert_eq!(
        end,
        json!({ "type": "end", "sessionId": "ABCDEFGH", "secret": "s3cret" })
    );
    assert_eq!(ended(&mut events).await, Ending::Closed);
}

#[tokio::test]
async fn closing_takes_under_three_seconds_whatever_the_relay_does() {
    let relay = FakeRelay::bind().await;
    let (link, mut events) = Link::open(link_config(relay.address));
    let _silent = relay.welcome().await;
    up(&mut events).await;
    let begin = Instant::now();
    link.close().await;
    assert!(begin.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn what_stands_in_the_way_is_told_apart() {
    let relay = FakeRelay::bind().await;
    let (_link, mut events) = Link::open(link_config(relay.address));
    for (answer, expected) in [
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "WrongPath",
        ),
        (
            "HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n",
            "RateLimited",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "NotARelay"),
        ("HTTP/1.1 301 Moved\r\nlocation: /x\r\n\r\n", "NotARelay"),
        (
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
            "Unreachable",
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n", "NotARelay"),
        ("", "HungUp"),
    ] {
        let (trouble, ()) = tokio::join!(away(&mut events), relay.say(answer.as_bytes()));
        assert!(
            format!("{trouble:?}").starts_with(expected),
            "{answer:?} gave {trouble:?}"
        );
        assert!(!trouble.fix().is_empty());
        let passes = ["RateLimited", "Unreachable", "HungUp"].contains(&expected);
        assert_eq!(trouble.may_pass(), passes, "{trouble}");
    }
    let address = relay.address;
    drop(relay);
    let trouble = soon(async {
        loop {
            if let trouble @ Trouble::Unreachable { .. } = away(&mut events).await {
                return trouble;
            }
        }
    });
    assert!(trouble.await.to_string().contains(&address.to_string()));
}

#[tokio::test]
async fn a_websocket_of_another_kind_is_no_relay() {
    let relay = FakeRelay::bind().await;
    let (_link, mut events) = Link::open(link_config(relay.address));
    for code in [1002, 1003, 1007] {
        let mut socket = relay.accept().await;
        socket.frame().await;
        socket.close(code).await;
        assert!(matches!(away(&mut events).await, Trouble::NotARelay { .. }));
    }
    // A server that goes away in the middle comes back.
    let mut socket = relay.accept().await;
    socket.frame().await;
    socket.close(1001).await;
    assert!(away(&mut events).await.may_pass());
}

#[tokio::test]
async fn a_name_without_an_address_and_a_server_that_says_nothing_may_pass() {
    let silent = FakeRelay::bind().await;
    let mut config = link_config(silent.address);
    config.timing.connect = Duration::from_millis(200);
    let mut nameless = config.clone();
    nameless.relay = RelayAddress::parse("https://relay.invalid", PlainHttp::LoopbackOnly).unwrap();
    for config in [config, nameless] {
        let relay = config.relay.to_string();
        let (_link, mut events) = Link::open(config);
        let trouble = away(&mut events).await;
        assert!(matches!(trouble, Trouble::Unreachable { .. }), "{trouble}");
        assert!(trouble.may_pass() && trouble.to_string().contains(&relay));
    }
}
