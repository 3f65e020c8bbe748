//! Chromium dies in the middle of calls: each gets an answer, and the next page works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use serde_json::json;

use crate::agent::{Agent, Reply, pixel};
use crate::stage::{Stage, pid, until_empty};

const ROUNDS: u8 = 20;
/// The time that each call asks for.
const ASKED: Duration = Duration::from_secs(8);
/// A call is answered in the time it asked for, or, where it waits for the new browser, in the time that this may take.
const ANSWERED: Duration = Duration::from_secs(12);

#[test]
fn a_chromium_killed_in_the_middle_of_calls_is_replaced_twenty_times() {
    let (stage, agent) = Stage::ready();
    for round in 0..ROUNDS {
        let page = agent.open("<body style='background:#808080'><p>about to be lost");
        let browser = stage.chromium().unwrap();
        let replies = in_the_middle_of_calls(&agent, &page, round, || {
            kill(pid(browser.id), Signal::SIGKILL).unwrap();
        });
        for (name, reply) in replies {
            let code = reply.code();
            assert!(
                reply.status == 200 || code.as_deref() == Some("browser_restarted"),
                "round {round}, {name}: {reply:?}"
            );
            assert!(reply.took < ANSWERED, "round {round}, {name}: {reply:?}");
        }
        for (tool, body) in [
            ("/eval", json!({"page": page, "js": "1"})),
            ("/screenshot", json!({"page": page})),
            ("/page", json!({"page": page, "html": "again"})),
        ] {
            let reply = agent.post(tool, &body);
            assert_eq!(
                reply.code().as_deref(),
                Some("browser_restarted"),
                "round {round}, {tool}: {reply:?}"
            );
        }
        draws(&agent, round);
        assert_ne!(stage.chromium().unwrap(), browser);
    }
    // What was lost is reaped: one browser and one display are there.
    let mains = until_empty(Duration::from_secs(3), || {
        let mains: Vec<_> = stage
            .children()
            .into_iter()
            .filter(|one| one.command.contains("Xvfb") || one.status("State").starts_with('Z'))
            .collect();
        if mains.len() == 1 { Vec::new() } else { mains }
    });
    assert!(mains.is_empty(), "{mains:#?}");
}

/// Runs one call of each kind, loses the browser under them, and returns what they were answered.
fn in_the_middle_of_calls(
    agent: &Agent,
    page: &str,
    round: u8,
    lose: impl FnOnce(),
) -> Vec<(&'static str, Reply)> {
    let ms = u64::try_from(ASKED.as_millis()).unwrap();
    let lost = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let eval = scope.spawn(|| {
            let never = "new Promise(() => {})";
            agent.post(
                "/eval",
                &json!({"page": page, "js": never, "timeout_ms": ms}),
            )
        });
        // Pictures until the browser is gone, so that one is always being taken.
        let screenshot = scope.spawn(|| {
            loop {
                let reply = agent.post("/screenshot", &json!({"page": page, "timeout_ms": ms}));
                if reply.status != 200 || lost.load(Ordering::Acquire) {
                    return reply;
                }
            }
        });
        let open = scope.spawn(|| {
            let body = json!({"html": "<p>slow", "wait_for": "#never", "timeout_ms": ms});
            agent.post("/page", &body)
        });
        // At another point of the calls in each round.
        std::thread::sleep(Duration::from_millis(u64::from(round) * 17));
        lose();
        lost.store(true, Ordering::Release);
        vec![
            ("eval", eval.join().unwrap()),
            ("screenshot", screenshot.join().unwrap()),
            ("page", open.join().unwrap()),
        ]
    })
}

/// A page of a colour of this round's own is opened and has that colour in its picture.
fn draws(agent: &Agent, round: u8) {
    let colour = [10 * round, 255 - 10 * round, 60];
    let [red, green, blue] = colour;
    let page = agent.open(&format!(
        "<body style='background:rgb({red},{green},{blue})'>"
    ));
    let receipt = agent.post("/screenshot", &json!({"page": page})).ok();
    let file = agent.fetch(&receipt);
    for (x, y) in [(0, 0), (640, 360), (1279, 719)] {
        assert_eq!(pixel(&file, x, y), colour, "round {round} at {x}, {y}");
    }
    agent.post("/close", &json!({"page": page})).ok();
}
