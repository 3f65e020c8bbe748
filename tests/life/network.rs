//! Chromium's network service dies and is started anew, without the proxy's password: every page has it again.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use serde_json::json;

use crate::stage::{Stage, pid, until_empty};

/// Kills the network service, and waits until another is there.
fn kill_network_service(stage: &Stage) {
    let services = || {
        let children = stage.children().into_iter();
        children.filter(|one| one.command.contains("network.mojom.NetworkService"))
    };
    let killed = services().next().unwrap();
    kill(pid(killed.id), Signal::SIGKILL).unwrap();
    let left = until_empty(Duration::from_secs(5), || {
        let is_new = services().any(|one| one != killed);
        if is_new { Vec::new() } else { vec![()] }
    });
    assert!(left.is_empty(), "no new network service came");
}

#[test]
fn pages_reach_the_uploads_again_after_the_network_service_was_started_anew() {
    let (stage, agent) = Stage::ready();
    let files = json!({"files": [{"path": "well.txt", "text": "well"}]});
    agent.post("/files", &files).ok();
    let fetch = |page: &str| {
        let js = "fetch('/well.txt').then(got => got.text(), () => 'refused')";
        let reply = agent.post("/eval", &json!({"page": page, "js": js})).ok();
        reply["value"].as_str().unwrap().to_owned()
    };
    let page = agent.open("<p>before");
    assert_eq!(fetch(&page), "well");
    kill_network_service(&stage);
    // What is open has lost the password: it is refused at once, and hangs on no question.
    for _ in 0..12 {
        assert_eq!(fetch(&page), "refused");
    }
    // A new page, which was waiting as the spare one, and the old one sent somewhere both have it.
    let fresh = agent.post("/page", &json!({"html": "<p>after"})).ok();
    let again = agent
        .post("/page", &json!({"html": "<p>after", "page": page}))
        .ok();
    for shown in [&fresh, &again] {
        assert_eq!(shown["status"], 200, "{shown}");
        assert_eq!(fetch(shown["page"].as_str().unwrap()), "well");
    }
}
