//! Link and embedded relay together: cuts, restarts, floods, and the largest frames.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "agents of these tests run as tasks of their own, and fail where something does"
)]

mod relay_stage;

use std::time::Duration;

use gpu_browser::relay::embedded::{EmbeddedRelay, RelayConfig};
use gpu_browser::relay::frames::{Body, TaskAnswer};
use gpu_browser::relay::link::{Link, LinkError, LinkEvent, Reply};
use relay_stage::fake::Wire;
use relay_stage::*;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

#[tokio::test]
async fn a_relay_that_comes_back_with_its_memory_keeps_every_link() {
    let relay = relay().await;
    let wire = Wire::to(relay.address()).await;
    let (link, mut events, minted) = linked(wire.address).await;
    for round in 1..=3 {
        wire.cut();
        assert!(up(&mut events).await);
        assert_eq!(link.status().reconnects, round);
        let path = tool(&minted, "/echo");
        let (answer, ()) = tokio::join!(post(relay.address(), &path, ""), async {
            link.reply(&plain(&called(&mut events).await, "here"))
                .unwrap();
        });
        assert_eq!(answer.text(), "here");
    }
}

#[tokio::test]
async fn a_relay_that_comes_back_without_its_memory_gives_new_links_for_the_old() {
    let relay = relay().await;
    let address = relay.address();
    let (link, mut events, first) = linked(address).await;
    let second = link.mint("second").await.unwrap();
    relay.close().await;
    away(&mut events).await;
    let _relay = EmbeddedRelay::bind(RelayConfig::at(address)).await.unwrap();
    assert!(!up(&mut events).await);
    let links = loop {
        match soon(events.recv()).await.unwrap() {
            LinkEvent::Replaced { links } => break links,
            LinkEvent::Ended(ending) => panic!("{ending}"),
            _ => {}
        }
    };
    for (link, old) in links.iter().zip([&first, &second]) {
        assert_eq!((&link.old, &link.label), (&old.link, &old.label));
        assert_eq!(
            get(address, &tool(old, "/agents.md")).await.status,
            503,
            "the old one is dead"
        );
        let path = link
            .new
            .as_ref()
            .unwrap()
            .strip_prefix(&format!("http://{address}"))
            .unwrap()
            .to_owned();
        assert_eq!(get(address, &path).await.status, 200);
    }
    assert_eq!(links.len(), 2);
}

#[tokio::test]
async fn a_hundred_calls_in_flight_fail_at_a_cut_and_the_next_hundred_work() {
    let relay = relay().await;
    let wire = Wire::to(relay.address()).await;
    let (link, mut events, minted) = linked(wire.address).await;
    let mut late = Vec::new();
    for expected in [503, 200] {
        let mut agents = JoinSet::new();
        for _ in 0..100 {
            let (address, path) = (relay.address(), tool(&minted, "/echo"));
            agents.spawn(async move { post(address, &path, "").await.status });
        }
        let mut calls = Vec::new();
        for _ in 0..100 {
            calls.push(called(&mut events).await);
        }
        if expected == 503 {
            wire.cut();
            assert!(up(&mut events).await);
            late = calls;
        } else {
            for call in late.iter().chain(&calls) {
                link.reply(&plain(call, "x")).unwrap();
            }
        }
        while let Some(status) = soon(agents.join_next()).await {
            assert_eq!(status.unwrap(), expected);
        }
    }
}

#[tokio::test]
async fn a_flood_of_calls_is_refused_beyond_a_hundred_and_the_rest_is_served() {
    let relay = relay().await;
    let (link, mut events, minted) = linked(relay.address()).await;
    let mut agents = JoinSet::new();
    for _ in 0..400 {
        let (address, path) = (relay.address(), tool(&minted, "/echo"));
        agents.spawn(async move { post(address, &path, vec![b'x'; 10_000]).await.status });
    }
    let mut statuses = Vec::new();
    let mut calls = Vec::new();
    while statuses.len() < 300 {
        tokio::select! {
            call = called(&mut events) => calls.push(call),
            status = agents.join_next() => statuses.push(status.unwrap().unwrap()),
        }
    }
    assert!(statuses.iter().all(|status| *status == 429));
    while calls.len() < 100 {
        calls.push(called(&mut events).await);
    }
    for call in &calls {
        link.reply(&plain(call, "served")).unwrap();
    }
    while let Some(status) = soon(agents.join_next()).await {
        assert_eq!(status.unwrap(), 200);
    }
}

#[tokio::test]
async fn an_app_that_does_not_read_fills_a_bounded_queue() {
    let relay = relay_with(|config| config.tool_timeout = Duration::from_millis(50)).await;
    let (mut app, _) = App::registered(relay.address(), &["POST /a"]).await;
    let path = format!("{}/a", app.mint().await);
    // Each call times out; their frames stay queued, until even the first call is refused.
    let refused = async {
        loop {
            let mut agents = JoinSet::new();
            for _ in 0..50 {
                let (address, path) = (relay.address(), path.clone());
                agents.spawn(async move { post(address, &path, vec![b'x'; 1 << 20]).await });
            }
            while let Some(answer) = agents.join_next().await {
                let answer = answer.unwrap();
                match answer.status {
                    504 => {}
                    429 => return answer,
                    _ => panic!("{answer:?}"),
                }
            }
        }
    };
    assert_eq!(soon(refused).await.code(), "too_many_inflight");
}

#[tokio::test]
async fn a_reply_fits_to_the_last_character_and_is_refused_one_beyond() {
    let relay = relay().await;
    let (link, mut events, minted) = linked(relay.address()).await;
    const FRAME: usize = 4_194_304;
    for _ in 0..2 {
        let path = tool(&minted, "/echo");
        let (answer, length) = tokio::join!(post(relay.address(), &path, ""), async {
            let call = called(&mut events).await;
            let Err(LinkError::TooLarge(error)) = link.reply(&plain(&call, "x".repeat(FRAME)))
            else {
                panic!("too large")
            };
            let length = 2 * FRAME - error.units;
            let over = link.reply(&plain(&call, "x".repeat(length + 1)));
            assert!(matches!(over, Err(LinkError::TooLarge(_))));
            link.reply(&plain(&call, "x".repeat(length))).unwrap();
            length
        });
        assert_eq!((answer.status, answer.body.len()), (200, length));
    }
}

#[tokio::test]
async fn a_call_of_six_million_characters_arrives_whole() {
    let relay = relay().await;
    let (link, mut events, minted) = linked(relay.address()).await;
    let path = tool(&minted, "/echo");
    let (answer, ()) = tokio::join!(post(relay.address(), &path, vec![1; 1 << 20]), async {
        let call = called(&mut events).await;
        assert!(call.body.len() == 1 << 20 && call.body.bytes().all(|byte| byte == 1));
        link.reply(&plain(&call, "whole")).unwrap();
    });
    assert_eq!(answer.text(), "whole");
}

/// Answers `/echo` with its body, and `/slow` with a task whose answer is its body.
async fn serve(link: Link, mut events: mpsc::Receiver<LinkEvent>) {
    while let Some(event) = events.recv().await {
        let call = match event {
            LinkEvent::Call(call) => call,
            LinkEvent::Up { resumed, .. } => {
                assert!(resumed, "the session stays the same");
                continue;
            }
            LinkEvent::Away { .. } => continue,
            LinkEvent::Replaced { .. } | LinkEvent::Ended(_) => panic!("the links stay the same"),
        };
        if call.path == "/echo" {
            link.reply(&plain(&call, call.body.clone())).unwrap();
        } else {
            let task_id = Some(call.body.clone());
            link.reply(&Reply {
                id: call.id,
                status: 202,
                body: Body::None,
                task_id,
            })
            .unwrap();
            let answer = TaskAnswer {
                task_id: call.body.clone(),
                status: 200,
                body: Body::Json(json!(call.body)),
            };
            link.complete_task(&answer).unwrap();
        }
    }
}

/// Calls and begins tasks until `rounds` of each have succeeded; every task that began must be answered.
async fn agent(
    name: usize,
    address: std::net::SocketAddr,
    base: String,
    stop: tokio_util::sync::CancellationToken,
) -> usize {
    let (echo, slow) = (format!("{base}/echo"), format!("{base}/slow"));
    let mut answered = 0;
    for number in 0.. {
        if stop.is_cancelled() {
            break;
        }
        let word = format!("{name}-{number}");
        let echoed = post(address, &echo, word.clone()).await;
        assert!(
            echoed.status == 503 || echoed.status == 200 && echoed.text() == word,
            "{echoed:?}"
        );
        let begun = post(address, &slow, word.clone()).await;
        match begun.status {
            503 => continue,
            202 => {}
            _ => panic!("{begun:?}"),
        }
        let poll = format!("{base}/_as_tasks/{word}");
        let done = soon(async {
            loop {
                let polled = get(address, &poll).await;
                if polled.status != 202 {
                    return polled;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert_eq!(done.await.json(), word);
        answered += 1;
    }
    answered
}

/// Cuts that are waited for.
const CUTS: usize = 50;

/// Waits until the link has come back once more.
async fn back(link: &Link, before: u64) {
    let again = async {
        while link.status().reconnects == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon(again).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_survives_fifty_random_cuts_under_load() {
    let relay = relay().await;
    let wire = Wire::to(relay.address()).await;
    let (link, events, minted) = linked(wire.address).await;
    let served = tokio::spawn(serve(link.clone(), events));
    let stop = tokio_util::sync::CancellationToken::new();
    let mut agents = JoinSet::new();
    for name in 0..8 {
        agents.spawn(agent(
            name,
            relay.address(),
            tool(&minted, ""),
            stop.clone(),
        ));
    }
    let mut chance = [0; 100];
    getrandom::fill(&mut chance).unwrap();
    let (counted, blind) = chance.split_at(CUTS);
    for byte in counted {
        let before = link.status().reconnects;
        tokio::time::sleep(Duration::from_millis(u64::from(*byte) / 2)).await;
        wire.cut();
        back(&link, before).await;
    }
    assert_eq!(
        link.status().reconnects,
        50,
        "each cut was one of a live connection"
    );
    // As many again, wherever they come: into a connection, a handshake, a resume.
    for byte in blind {
        tokio::time::sleep(Duration::from_millis(u64::from(*byte) / 3)).await;
        wire.cut();
    }
    stop.cancel();
    let mut answered = 0;
    while let Some(agent) = soon(agents.join_next()).await {
        answered += agent.unwrap();
    }
    assert!(answered >= 50, "{answered}");
    assert!(link.status().reconnects >= 60, "{:?}", link.status());
    assert!(!served.is_finished(), "no link changed");
    assert_eq!(
        get(relay.address(), &tool(&minted, "/agents.md"))
            .await
            .status,
        200
    );
}
