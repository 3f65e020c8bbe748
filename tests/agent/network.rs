//! The requests of a page as an agent reads them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::daemon::Daemon;

fn line<'a>(reply: &'a Value, with: &str) -> &'a str {
    let lines = reply["requests"].as_array().unwrap().iter();
    let mut found = lines
        .filter_map(Value::as_str)
        .filter(|line| line.contains(with));
    found.next().unwrap_or_else(|| panic!("{with}: {reply}"))
}

fn number(line: &str) -> u64 {
    line.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn each_request_is_a_line_and_its_detail_and_body_come_by_number() {
    let daemon = Daemon::shared();
    let binary = BASE64_STANDARD.encode([0_u8, 255, 254, 1]);
    daemon.ok("files", json!({"files": [
        {"path": "net/data.json", "text": "{\"ü\":1}"}, {"path": "net/blob.bin", "base64": binary}]})).await;
    let html = "<!doctype html><script>
        const gone = url => fetch(url).catch(() => 0);
        Promise.all([fetch('/net/data.json').then(r => r.text()), fetch('/net/blob.bin').then(r => r.arrayBuffer()),
            gone('/net/missing.js'), gone('https://not-on-the-list.example/x')]).then(() => document.body.id = 'done')</script><body>";
    let verdict = daemon
        .ok("page", json!({"html": html, "wait_for": "#done"}))
        .await;
    let page = verdict["page"].as_str().unwrap();
    let reply = daemon.ok("network", json!({ "page": page })).await;
    let document = line(&reply, "document");
    assert!(document.contains(" GET 200 document "), "{document}");
    assert!(
        line(&reply, "net/missing.js").contains(" GET 404 fetch "),
        "{reply}"
    );
    let refused = line(&reply, "not-on-the-list");
    assert!(refused.contains("refused:host_not_allowed"), "{refused}");
    assert_eq!(
        reply["refused_hosts"][0]["reason"], "host_not_allowed",
        "{reply}"
    );
    let failed = daemon
        .ok(
            "network",
            json!({"page": page, "failed": true, "kind": "fetch"}),
        )
        .await;
    assert_eq!(failed["requests"].as_array().unwrap().len(), 2, "{failed}");

    let body = json!({"page": page, "request": number(line(&reply, "data.json")), "body": true});
    let detail = daemon.ok("network", body).await;
    assert_eq!(
        (&detail["status"], &detail["body"]),
        (&json!(200), &json!("{\"ü\":1}"))
    );
    assert_eq!(
        detail["response_headers"]["content-type"], "application/json; charset=utf-8",
        "{detail}"
    );
    let body = json!({"page": page, "request": number(line(&reply, "blob.bin")), "body": true});
    let detail = daemon.ok("network", body).await;
    assert_eq!(
        (&detail["base64"], &detail["body_bytes"]),
        (&json!(binary), &json!(4))
    );
    let detail = daemon
        .ok("network", json!({"page": page, "request": number(refused)}))
        .await;
    assert!(
        detail["refused"]["fix"].is_string() && detail["error"].is_string(),
        "{detail}"
    );
    assert!(
        !detail
            .to_string()
            .to_lowercase()
            .contains("proxy-authorization"),
        "{detail}"
    );
    daemon
        .refused(
            "network",
            json!({"page": page, "request": 999_999}),
            404,
            "not_found",
        )
        .await;
    daemon
        .refused(
            "network",
            json!({"page": page, "body": true}),
            400,
            "bad_arguments",
        )
        .await;
    daemon.close(page).await;
}

#[tokio::test]
async fn a_body_of_fifty_megabytes_is_not_kept_and_the_page_has_it() {
    let daemon = Daemon::start();
    let chunk = BASE64_STANDARD.encode(vec![7_u8; 700_000]);
    for n in 0..72 {
        let body = json!({"files": [{"path": "big.bin", "base64": chunk, "offset": n * 700_000}]});
        daemon.ok("files", body).await;
    }
    let page = daemon.open("<!doctype html>", 320, 200).await;
    let js = "(await (await fetch('/big.bin')).arrayBuffer()).byteLength";
    assert_eq!(daemon.eval(&page, js).await, 50_400_000);
    let reply = daemon
        .ok("network", json!({"page": page, "find": "big.bin"}))
        .await;
    let big = line(&reply, "big.bin");
    let bytes: u64 = big
        .split(' ')
        .find_map(|word| word.strip_suffix('B')?.parse().ok())
        .unwrap();
    assert!(bytes >= 50_400_000, "{big}");
    let body = json!({"page": page, "request": number(big), "body": true});
    daemon.refused("network", body, 404, "gone").await;
}
