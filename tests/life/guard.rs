//! What a page or a fault may cost the owner: memory, processor time and a lost browser have bounds, and each end is told.

use std::time::{Duration, Instant};

use gpu_browser::browser::evaluate::Outcome;
use gpu_browser::browser::wire::Codec;
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use crate::agent::{Agent, pixel};
use crate::bare::Bare;
use crate::processes::Process;
use crate::stage::{Stage, pid, turn};

/// Enough for a browser that has to be started and proven again, while others work too.
const PATIENCE: Duration = Duration::from_secs(60);
/// Fills this many MiB with bytes that cannot be shared or left out.
const FILL: &str = "mib => {
    globalThis.kept ??= [];
    for (let n = 0; n < mib; n++) {
        const block = new Uint8Array(1 << 20);
        for (let at = 0; at < block.length; at += 512) block[at] = n + at;
        kept.push(block);
    }
    return kept.length;
}";

fn fill(agent: &Agent, page: &str, mib: u32) -> crate::agent::Reply {
    agent.post(
        "/eval",
        &json!({"page": page, "js": format!("({FILL})({mib})")}),
    )
}

/// Waits for the next event of a page that says this.
fn page_event(stage: &Stage, state: &str) -> Value {
    loop {
        let event = stage.event("page", PATIENCE);
        if event["state"] == state {
            return event;
        }
    }
}

/// Waits until the browser is in a state, and returns what is told of it.
fn browser_event(stage: &Stage, state: &str) -> Value {
    loop {
        let event = stage.event("browser", PATIENCE);
        if event["state"] == state {
            return event;
        }
    }
}

fn process_of(stage: &Stage, part: &str) -> Option<Process> {
    let all = stage.children().into_iter();
    let mut found = all.filter(|one| one.command.contains(part) && one.is_alive());
    found.next()
}

fn draws(agent: &Agent) {
    let page = agent.open("<body style='background:#204060'>");
    let receipt = agent.post("/screenshot", &json!({"page": page})).ok();
    assert_eq!(pixel(&agent.fetch(&receipt), 640, 360), [0x20, 0x40, 0x60]);
    agent.post("/close", &json!({"page": page})).ok();
}

#[test]
fn a_page_over_its_share_of_memory_is_killed_and_named_and_another_lives_on() {
    let (stage, agent) = Stage::ready_with(&["--max-memory", "1GiB"]);
    let (other, glutton) = (agent.open("<p>modest"), agent.open("<p>glutton"));
    // The harmless twin: much, and below the share.
    assert_eq!(fill(&agent, &other, 100).ok()["value"], 100);
    let filled = fill(&agent, &glutton, 700);
    assert!(filled.status == 200 || filled.status == 502, "{filled:?}");
    let event = page_event(&stage, "killed");
    assert_eq!(event["page"], glutton.as_str(), "{event}");
    for (tool, body) in [
        ("/eval", json!({"page": glutton, "js": "1"})),
        ("/screenshot", json!({"page": glutton})),
    ] {
        let reply = agent.post(tool, &body);
        assert_eq!(reply.code().as_deref(), Some("page_crashed"), "{reply:?}");
        let error = &reply.json()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with(&glutton) && message.contains("killed"),
            "{error}"
        );
        assert_eq!(message.matches(" MiB").count(), 2, "{error}");
        assert!(
            error["fix"].as_str().unwrap().contains("less memory"),
            "{error}"
        );
    }
    let kept = agent.post("/eval", &json!({"page": other, "js": "kept.length"}));
    assert_eq!(kept.ok()["value"], 100);
    // Navigated, it is a page like any other.
    agent
        .post("/page", &json!({"page": glutton, "html": "<p>mended"}))
        .ok();
    let title = agent.post(
        "/eval",
        &json!({"page": glutton, "js": "document.body.textContent"}),
    );
    assert_eq!(title.ok()["value"], "mended");
}

#[test]
fn a_gpu_process_that_dies_three_times_restarts_the_browser_and_the_lost_page_is_named() {
    let (stage, agent) = Stage::ready();
    let page = agent.open("<canvas></canvas>");
    let browser = stage.chromium().unwrap();
    let began = Instant::now();
    let mut killed: Vec<Process> = Vec::new();
    // Each death is seen before the next one: they would count as one.
    let seen = Duration::from_secs(5);
    while killed.len() < 3 {
        assert!(
            began.elapsed() < PATIENCE,
            "no GPU process comes: {killed:?}"
        );
        if let Some(gpu) = process_of(&stage, "--type=gpu-process") {
            if killed.len() == 2 {
                assert_eq!(stage.chromium().unwrap(), browser, "restarted too early");
            }
            kill(pid(gpu.id), Signal::SIGKILL).unwrap();
            killed.push(gpu);
            std::thread::sleep(seen);
        }
    }
    let lost = browser_event(&stage, "lost");
    let reason = lost["reason"].as_str().unwrap();
    assert!(
        reason.contains("GPU process") && reason.contains("3 times"),
        "{lost}"
    );
    browser_event(&stage, "restarted");
    let reply = agent.post("/eval", &json!({"page": page, "js": "1"}));
    assert_eq!(
        reply.code().as_deref(),
        Some("browser_restarted"),
        "{reply:?}"
    );
    assert!(reply.text.contains(&page), "{reply:?}");
    draws(&agent);
    assert_ne!(stage.chromium().unwrap(), browser);
}

#[test]
fn a_display_that_dies_comes_back_with_its_browser() {
    let (stage, agent) = Stage::ready();
    draws(&agent);
    let display = process_of(&stage, "Xvfb").unwrap();
    kill(pid(display.id), Signal::SIGKILL).unwrap();
    let lost = browser_event(&stage, "lost");
    assert!(lost["reason"].is_string(), "{lost}");
    browser_event(&stage, "restarted");
    draws(&agent);
    assert_ne!(process_of(&stage, "Xvfb").unwrap(), display);
}

#[test]
fn a_browser_that_never_stays_ends_the_session_with_the_end_of_its_log() {
    let (mut stage, _agent) = Stage::ready();
    for restart in 0..=5 {
        let browser = stage.chromium().unwrap();
        kill(pid(browser.id), Signal::SIGKILL).unwrap();
        if restart < 5 {
            browser_event(&stage, "restarted");
        }
    }
    let ended = stage.ended(PATIENCE);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    let last = ended.events.last().unwrap();
    assert_eq!(last["event"], "ended");
    let reason = last["reason"].as_str().unwrap();
    assert!(reason.contains("cannot be started any more"), "{reason}");
    assert!(reason.contains("signal: 9"), "{reason}");
    let (_, log) = reason.split_once("the end of Chromium's log:").unwrap();
    assert!((2..=11).contains(&log.lines().count()), "{reason}");
}

/// Timers and frames of a page since it began, after a while.
async fn counts(browser: &Bare) -> (i64, i64) {
    const LATER: &str = "[timers, frames]";
    tokio::time::sleep(Duration::from_millis(700)).await;
    let value = browser
        .page
        .evaluate(LATER, &Value::Null, browser.deadline)
        .await;
    let Outcome::Value { value, .. } = value.unwrap() else {
        panic!("no value");
    };
    (value[0].as_i64().unwrap(), value[1].as_i64().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_page_runs_neither_timers_nor_frames_and_a_thawed_one_both() {
    let _turn = turn();
    let browser = Bare::open(Codec::Cbor).await;
    let start = "timers = 0; frames = 0; setInterval(() => timers++, 10);
        (function frame() { frames++; requestAnimationFrame(frame) })(); 1";
    let page = &browser.page;
    page.evaluate(start, &Value::Null, browser.deadline)
        .await
        .unwrap();
    let (timers, frames) = counts(&browser).await;
    assert!(timers > 5 && frames > 5, "{timers} timers, {frames} frames");
    let worked = page.worked(Duration::from_secs(5)).await.unwrap();
    assert!(worked > Duration::ZERO);
    page.freeze();
    counts(&browser).await;
    let frozen = counts(&browser).await;
    assert_eq!(counts(&browser).await, frozen);
    page.thaw();
    let (timers, frames) = counts(&browser).await;
    assert!(
        timers > frozen.0 + 5 && frames > frozen.1 + 5,
        "{timers} timers, {frames} frames"
    );
    assert!(page.worked(Duration::from_secs(5)).await.unwrap() > worked);
    browser.close().await;
}
