//! The console of a page as an agent reads it: equal lines counted, bounded whatever the page prints.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daemon::Daemon;

async fn texts(daemon: &Daemon, body: Value) -> Vec<String> {
    let reply = daemon.ok("console", body).await;
    let lines = reply["lines"].as_array().unwrap().iter();
    lines
        .map(|line| {
            format!(
                "{} {}",
                line["level"].as_str().unwrap(),
                line["text"].as_str().unwrap()
            )
        })
        .collect()
}

#[tokio::test]
async fn lines_have_their_level_place_and_count_and_a_stack_when_asked() {
    let daemon = Daemon::shared();
    let html =
        "<!doctype html><script>\nfunction inner() { console.warn('careful', {a: 1}) }\ninner();
        for (let n = 0; n < 214; n++) { console.error('again'); console.log('tick') }
        setTimeout(() => { document.body.id = 'threw'; null.x })</script><body>";
    let body = json!({"html": html, "wait_for": "#threw"});
    let verdict = daemon.ok("page", body).await;
    let page = verdict["page"].as_str().unwrap();
    // The error comes with the end of its script: the answer of a later one comes after it.
    daemon.eval(page, "1").await;
    let reply = daemon.ok("console", json!({ "page": page })).await;
    let lines = reply["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 4, "{reply}");
    assert_eq!(
        (&lines[0]["level"], &lines[0]["text"]),
        (&json!("warning"), &json!("careful {a: 1}"))
    );
    let place = lines[0]["at"].as_str().unwrap();
    assert!(
        place.starts_with("_pages/") && place.contains(".html:2:"),
        "{place}"
    );
    assert_eq!(
        (&lines[1]["text"], &lines[1]["times"]),
        (&json!("again"), &json!("x214"))
    );
    assert!(
        lines[3]["text"]
            .as_str()
            .unwrap()
            .starts_with("Uncaught TypeError"),
        "{reply}"
    );
    assert!(!reply.to_string().contains("stack"), "{reply}");
    let asked = json!({"page": page, "stacks": true, "level": "warning", "find": "CARE"});
    let reply = daemon.ok("console", asked).await;
    assert_eq!(reply["lines"].as_array().unwrap().len(), 1);
    assert!(
        reply["lines"][0]["stack"][0]
            .as_str()
            .unwrap()
            .starts_with("inner "),
        "{reply}"
    );
    let cursor = &reply["cursor"];
    daemon
        .eval(page, "console.info('%s is %d', 'new', 1)")
        .await;
    let since = texts(&daemon, json!({"page": page, "since": cursor})).await;
    assert_eq!(since, ["log new is 1"]);
    daemon.close(page).await;
}

#[tokio::test]
async fn what_a_worker_says_is_told_once() {
    let daemon = Daemon::shared();
    let html = "<!doctype html><script>
        const code = `console.error('of a worker'); postMessage(1)`;
        const worker = new Worker(URL.createObjectURL(new Blob([code])));
        worker.onmessage = () => document.body.id = 'said'</script><body>";
    let verdict = daemon
        .ok("page", json!({"html": html, "wait_for": "#said"}))
        .await;
    let page = verdict["page"].as_str().unwrap();
    daemon
        .eval(page, "new Promise(done => setTimeout(done, 300))")
        .await;
    let reply = daemon
        .ok("console", json!({"page": page, "find": "of a worker"}))
        .await;
    assert_eq!(reply["lines"].as_array().unwrap().len(), 1, "{reply}");
    assert!(reply["lines"][0].get("times").is_none(), "{reply}");
    daemon.close(page).await;
}

#[tokio::test]
async fn ten_thousand_lines_a_second_leave_the_page_usable_and_the_rest_counted() {
    let daemon = Daemon::shared();
    let page = daemon
        .open("<!doctype html><title>loud</title>", 320, 200)
        .await;
    let began = Instant::now();
    let js = "for (let n = 0; n < 10000; n++) console.log('line', n); return document.title";
    assert_eq!(daemon.eval(&page, js).await, "loud");
    let reply = daemon
        .ok("console", json!({"page": page, "limit": 500}))
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    let lines = reply["lines"].as_array().unwrap();
    assert_eq!(
        (lines.len(), &lines[499]["text"]),
        (500, &json!("line 9999"))
    );
    assert_eq!(
        (&reply["dropped"], &reply["left_out"]),
        (&json!(9_000), &json!(500))
    );
    daemon.close(&page).await;
}

#[tokio::test]
async fn texts_that_are_huge_hostile_or_no_text_are_told_whole_or_cut() {
    let daemon = Daemon::shared();
    let page = daemon.open("<!doctype html>", 320, 200).await;
    let js = r"Array.prototype.map = Array.prototype.join = JSON.stringify = () => { throw 1 };
        console.log('a\ud800b', '\u202eevil'); console.log('x'.repeat(3e6)); console.log('y'.repeat(1e5)); return 1";
    daemon.eval(&page, js).await;
    let lines = texts(&daemon, json!({ "page": page })).await;
    assert_eq!(lines[0], "log a\u{fffd}b \u{202e}evil");
    assert!(
        lines[1].contains("left out") && lines[2].ends_with('…'),
        "{} {}",
        lines[1],
        lines[2].len()
    );
    assert!(lines[2].len() < 5_000);
    for (field, wrong) in [
        ("limit", json!(0)),
        ("level", json!("loud")),
        ("lvel", json!("log")),
        ("since", json!(-1)),
    ] {
        daemon
            .refused(
                "console",
                json!({"page": page, field: wrong}),
                400,
                "bad_arguments",
            )
            .await;
    }
    daemon
        .refused("console", json!({"page": "p999"}), 404, "not_found")
        .await;
    daemon.close(&page).await;
}
