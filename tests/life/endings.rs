//! A session ends in order when it is told to, and leaves nothing when it is killed.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::processes::{Process, naming};
use crate::stage::{Stage, until_empty};

/// Everything is ended in order within this.
const IN_ORDER: Duration = Duration::from_secs(5);

fn ends_in_order(ask: impl FnOnce(&mut Stage)) {
    let (mut stage, agent) = Stage::ready();
    agent.open("<body style='background:#123456'>");
    let before = stage.children();
    assert!(!before.is_empty() && !stage.run_folders().is_empty());
    ask(&mut stage);
    let ended = stage.ended(IN_ORDER);
    println!("ended after {:?}", ended.took);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    let last = ended.events.last().unwrap();
    assert_eq!(last["event"], "ended", "{last}");
    assert!(last["reason"].is_string(), "{last}");
    assert!(!agent.is_alive(), "the link outlived its session");
    let alive: Vec<&Process> = before.iter().filter(|one| one.is_alive()).collect();
    assert!(alive.is_empty(), "outlived the daemon: {alive:#?}");
    let left = naming(stage.folder());
    assert!(left.is_empty(), "left of the run: {left:#?}");
    assert_eq!(stage.run_folders(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn sigterm_ends_everything_in_order() {
    ends_in_order(|stage| stage.signal(Signal::SIGTERM));
}

#[test]
fn sigint_ends_everything_in_order() {
    ends_in_order(|stage| stage.signal(Signal::SIGINT));
}

#[test]
fn stop_at_the_console_ends_everything_in_order() {
    ends_in_order(|stage| stage.say("stop"));
}

#[test]
fn a_stop_ends_a_session_whose_page_hangs() {
    let (mut stage, agent) = Stage::ready();
    let page = agent.open("<p>a page");
    let hung = agent;
    let call = std::thread::spawn(move || {
        let body = json!({"page": page, "js": "for (;;) {}", "timeout_ms": 20_000});
        // The link dies under this call, so that there may be no answer to read.
        let _ = hung.try_post("/eval", &body);
    });
    // A page that loops keeps a processor busy.
    stage.wait_for_work();
    stage.signal(Signal::SIGTERM);
    let ended = stage.ended(IN_ORDER);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log);
    call.join().unwrap();
}

#[test]
fn nothing_outlives_a_daemon_that_is_killed() {
    let (mut stage, agent) = Stage::ready();
    agent.open(
        "<canvas></canvas><script>document.querySelector('canvas').getContext('webgl2')</script>",
    );
    let before = stage.children();
    for part in ["--type=renderer", "--type=gpu-process", "Xvfb"] {
        assert!(
            before.iter().any(|one| one.command.contains(part)),
            "no {part} among {before:#?}"
        );
    }
    stage.signal(Signal::SIGKILL);
    stage.ended(IN_ORDER);
    let left = until_empty(Duration::from_secs(3), || {
        let mut left: Vec<Process> = before.iter().filter(|p| p.is_alive()).cloned().collect();
        left.extend(naming(stage.folder()));
        left
    });
    assert!(left.is_empty(), "outlived the daemon: {left:#?}");
    assert!(!agent.is_alive());
}
