//! Pages that misbehave: each gives a verdict within its time, and the next call works.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::daemon::Daemon;

/// Opens a document and gives its verdict, which must come within the call's own time and a little.
async fn verdict(daemon: &Daemon, html: &str, timeout_ms: u64) -> Value {
    let began = Instant::now();
    let body = json!({"html": html, "width": 320, "height": 200, "timeout_ms": timeout_ms});
    let verdict = daemon.ok("page", body).await;
    let most = Duration::from_millis(timeout_ms) + Duration::from_secs(4);
    assert!(began.elapsed() < most, "{:?}: {verdict}", began.elapsed());
    verdict
}

fn name(verdict: &Value) -> &str {
    verdict["page"].as_str().unwrap()
}

#[tokio::test]
async fn a_page_that_never_stops_loading_is_given_as_it_is() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><title>polls</title><script>
        const next = () => { const i = new Image(); i.onerror = next; i.src = 'missing?' + Math.random(); document.body.append(i) };
        addEventListener('DOMContentLoaded', () => { next(); next(); next() })</script><p>here";
    let loading = verdict(&daemon, html, 1_500).await;
    assert_eq!(
        (&loading["timed_out"], &loading["title"]),
        (&json!(true), &json!("polls")),
        "{loading}"
    );
    assert_eq!(
        daemon
            .eval(name(&loading), "document.querySelector('p').textContent")
            .await,
        "here"
    );
    daemon
        .ok("screenshot", json!({ "page": name(&loading) }))
        .await;
    daemon.close(name(&loading)).await;
}

#[tokio::test]
async fn a_selector_that_never_matches_gives_the_page_as_it_is() {
    let daemon = Daemon::shared();
    let body = json!({"html": "<!doctype html><title>here</title>", "wait_for": "#never", "timeout_ms": 500});
    let waited = daemon.ok("page", body).await;
    assert_eq!(
        (&waited["timed_out"], &waited["title"]),
        (&json!(true), &json!("here")),
        "{waited}"
    );
    let body =
        json!({"html": "<!doctype html><title>here</title><p id=there>", "wait_for": "#there"});
    let found = daemon.ok("page", body).await;
    assert!(found.get("timed_out").is_none(), "{found}");
    daemon.close(name(&waited)).await;
    daemon.close(name(&found)).await;
}

#[tokio::test]
async fn dialogs_are_closed_and_reported() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><script>
        alert('one'); window.sure = confirm('two'); window.said = prompt('three', 'x');
        for (let n = 0; n < 40; n++) alert(n)</script><title>after</title>";
    let asked = verdict(&daemon, html, 15_000).await;
    assert_eq!(asked["title"], "after", "{asked}");
    assert_eq!(asked["dialogs"]["count"], 43, "{asked}");
    assert_eq!(
        asked["dialogs"]["items"][1],
        json!({"kind": "confirm", "message": "two"})
    );
    assert_eq!(
        daemon.eval(name(&asked), "[sure, said]").await,
        json!([false, null])
    );
    daemon.close(name(&asked)).await;
}

#[tokio::test]
async fn a_page_that_alerts_without_an_end_gets_its_verdict_and_can_be_closed() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><title>loud</title><script>onload = () => setTimeout(() => { for (;;) alert('again') })</script>";
    let body = json!({"html": html, "timeout_ms": 3000});
    let (status, reply) = daemon.post("page", body).await;
    let hung = status == 504 && reply["error"]["code"] == "page_hung";
    assert!(status == 200 || hung, "{reply}");
    if status == 200 {
        daemon.ok("close", json!({"page": reply["page"]})).await;
    }
    let next = daemon
        .open("<!doctype html><title>well</title>", 320, 200)
        .await;
    assert_eq!(daemon.eval(&next, "document.title").await, "well");
    daemon.close(&next).await;
}

#[tokio::test]
async fn fifty_windows_are_closed_and_counted() {
    let daemon = Daemon::start();
    let opener = daemon
        .open("<!doctype html><title>opener</title>", 320, 200)
        .await;
    let js = "window.all = []; for (let n = 0; n < 50; n++) all.push(open('about:blank#' + n, '_blank')); return all.filter(Boolean).length";
    assert_eq!(daemon.eval(&opener, js).await, 50);
    let gone = "new Promise(done => { const look = () => all.every(w => w.closed) ? done('gone') : setTimeout(look, 20); look() })";
    assert_eq!(daemon.eval(&opener, gone).await, "gone");
    let pages = daemon.get("pages").await;
    assert_eq!(pages["pages"].as_array().unwrap().len(), 1, "{pages}");
    assert_eq!(daemon.eval(&opener, "document.title").await, "opener");
    let html = "<!doctype html><a id=a href='about:blank#x' target=_blank>x</a><script>open('about:blank#first'); a.click()</script>";
    let told = verdict(&daemon, html, 5_000).await;
    let count = told["popups"]["count"].as_u64().unwrap_or(0);
    assert!(count >= 1, "{told}");
}

#[tokio::test]
async fn a_download_is_refused_and_reported() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><a id=a download=x.bin href='data:application/octet-stream,x'>x</a>
        <script>a.click(); const i = document.createElement('iframe'); i.src = 'file.zip'; document.body.append(i)</script>";
    let zip = json!({"files": [{"path": "_pages/file.zip", "text": "x", "content_type": "application/zip"}]});
    daemon.ok("files", zip).await;
    let body = json!({"html": html, "wait_until": "networkidle", "timeout_ms": 5000});
    let told = daemon.ok("page", body).await;
    assert!(
        told["downloads"]["count"]
            .as_u64()
            .is_some_and(|count| count >= 1),
        "{told}"
    );
    daemon.close(name(&told)).await;
}

#[tokio::test]
async fn a_ninth_page_is_refused_however_fast_it_comes() {
    let daemon = Daemon::start();
    let body =
        json!({"html": "<!doctype html><title>one of many</title>", "width": 64, "height": 64});
    let opened = join_all((0..12).map(|_| daemon.post("page", body.clone()))).await;
    let refused = opened.iter().filter(|(status, _)| *status == 429).count();
    let good: Vec<&Value> = opened
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, reply)| reply)
        .collect();
    assert_eq!((good.len(), refused), (8, 4), "{opened:?}");
    daemon
        .refused("page", body.clone(), 429, "too_many_pages")
        .await;
    daemon.close(name(good[0])).await;
    daemon.ok("page", body.clone()).await;
    daemon
        .refused("page", body.clone(), 429, "too_many_pages")
        .await;
    let closed = daemon.ok("close", json!({"all": true})).await;
    assert_eq!(
        (closed["closed"].as_array().unwrap().len(), &closed["open"]),
        (8, &json!(0))
    );
    daemon.ok("page", body).await;
}

/// The renderers of a daemon's Chromium.
fn renderers(daemon: &Daemon) -> Vec<Pid> {
    let all: Vec<(i32, i32, bool)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let parent = stat
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some((
                pid,
                parent,
                String::from_utf8_lossy(&command).contains("--type=renderer"),
            ))
        })
        .collect();
    let mut family = vec![daemon.pid()];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(
            all.iter()
                .filter(|(_, of, _)| *of == parent)
                .map(|(pid, ..)| *pid),
        );
        next += 1;
    }
    all.into_iter()
        .filter(|(pid, _, renders)| *renders && family.contains(pid))
        .map(|(pid, ..)| Pid::from_raw(pid))
        .collect()
}

#[tokio::test]
async fn a_page_whose_renderer_dies_says_so_and_can_be_navigated_again() {
    let daemon = Daemon::start();
    let page = daemon
        .open("<!doctype html><title>well</title>", 320, 200)
        .await;
    for _ in 0..3 {
        let waits = json!({"page": page, "js": "new Promise(() => {})", "timeout_ms": 10_000});
        let killing = async {
            // The call is under way once the page has run its script.
            while daemon.eval(&page, "document.title").await != "well" {}
            let found = renderers(&daemon);
            assert!(!found.is_empty());
            found
                .iter()
                .for_each(|pid| kill(*pid, Signal::SIGKILL).unwrap());
        };
        let (error, ()) = tokio::join!(daemon.refused("eval", waits, 502, "page_crashed"), killing);
        assert!(
            error["message"].as_str().unwrap().contains(&page),
            "{error}"
        );
        for (tool, body) in [
            ("screenshot", json!({ "page": page })),
            ("eval", json!({"page": page, "js": "1"})),
        ] {
            daemon.refused(tool, body, 502, "page_crashed").await;
        }
        let again = json!({"page": page, "html": "<!doctype html><title>well</title>"});
        assert_eq!(daemon.ok("page", again).await["title"], "well");
        assert_eq!(daemon.eval(&page, "document.title").await, "well");
        let next = daemon
            .open("<!doctype html><title>next</title>", 320, 200)
            .await;
        assert_eq!(daemon.eval(&next, "document.title").await, "next");
        daemon.close(&next).await;
    }
}
