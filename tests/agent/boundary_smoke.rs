//! What a page asks for and must not get, seen from the page: refused, reported, and not one connection made.

use std::net::TcpListener;

use serde_json::json;

use crate::daemon::Daemon;

#[tokio::test]
async fn a_page_reaches_no_host_off_the_list_and_no_address_and_the_verdict_names_them() {
    let daemon = Daemon::shared();
    let four = TcpListener::bind("127.0.0.1:0").unwrap();
    let four_port = four.local_addr().unwrap().port();
    let six = TcpListener::bind("[::1]:0").ok();
    let six_port = six
        .as_ref()
        .map_or(80, |six| six.local_addr().unwrap().port());
    let targets = [
        "https://not-on-the-list.example/x".to_owned(),
        format!("http://127.0.0.1:{four_port}/"),
        format!("http://localhost:{four_port}/"),
        format!("http://[::1]:{six_port}/"),
        "http://169.254.169.254/latest/".to_owned(),
    ];
    let html = format!(
        "<!doctype html><script>
        const targets = {};
        const outcomes = Promise.all([
            ...targets.map(url => fetch(url).then(() => 'reached', () => 'refused')),
            new Promise(done => {{
                const socket = new WebSocket('ws://127.0.0.1:{four_port}/');
                socket.onopen = () => done('reached');
                socket.onerror = () => done('refused');
            }}),
            fetch('/well.txt').then(got => got.text()),
        ]).then(all => {{ document.body.id = 'asked'; return all }})
        </script><body>",
        json!(targets)
    );
    daemon
        .ok(
            "files",
            json!({"files": [{"path": "well.txt", "text": "well"}]}),
        )
        .await;
    let verdict = daemon
        .ok("page", json!({"html": html, "wait_for": "#asked"}))
        .await;
    assert!(verdict.get("timed_out").is_none(), "{verdict}");
    let page = verdict["page"].as_str().unwrap();
    let outcomes = daemon.eval(page, "outcomes").await;
    assert_eq!(
        outcomes,
        json!([
            "refused", "refused", "refused", "refused", "refused", "refused", "well"
        ])
    );
    let refused = &verdict["refused_hosts"];
    let told = refused.to_string();
    for host in ["not-on-the-list.example", "127.0.0.1", "localhost", "[::1]"] {
        assert!(told.contains(host), "{host}: {told}");
    }
    assert!(refused["count"].as_u64().unwrap() >= 5, "{told}");
    for item in refused["items"].as_array().unwrap() {
        assert!(
            item["fix"].as_str().is_some_and(|fix| !fix.is_empty()),
            "{item}"
        );
    }
    for listener in std::iter::once(&four).chain(&six) {
        listener.set_nonblocking(true).unwrap();
        let came = listener.accept();
        assert!(came.is_err(), "a connection was made: {came:?}");
    }
    daemon.close(page).await;
}

#[tokio::test]
async fn an_address_off_the_list_gives_a_verdict_that_names_its_host() {
    let daemon = Daemon::shared();
    let verdict = daemon
        .ok("page", json!({"url": "https://not-on-the-list.example/"}))
        .await;
    assert!(
        verdict["error"].is_string() && verdict["status"].is_null(),
        "{verdict}"
    );
    let refused = &verdict["refused_hosts"]["items"][0];
    assert_eq!(refused["reason"], "host_not_allowed", "{verdict}");
    assert!(
        refused["fix"].as_str().unwrap().contains("POST /request"),
        "{verdict}"
    );
    daemon.close(verdict["page"].as_str().unwrap()).await;
}
