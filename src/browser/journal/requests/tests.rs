//! A request from its first event to its last, and floods of them.

use serde_json::json;

use super::*;

fn sent(id: &str, url: &str) -> Value {
    json!({"requestId": id, "timestamp": 10.0, "wallTime": 1_000.0, "type": "Fetch",
        "request": {"method": "GET", "url": url, "headers": {"a": "b", "Proxy-Authorization": "secret"}}})
}

fn picked(requests: &Requests, wanted: &Wanted) -> Vec<String> {
    let picked = requests.pick(None, wanted, 100);
    let seen = picked.entries.iter();
    seen.map(|seen| {
        format!(
            "{} {:?} {:?}",
            seen.entry.url, seen.entry.status, seen.entry.state
        )
    })
    .collect()
}

#[test]
fn a_request_is_one_entry_from_its_beginning_to_its_end() {
    let mut requests = Requests::default();
    requests.fold("Network.requestWillBeSent", None, &sent("1", "u"));
    let answer = json!({"requestId": "1", "type": "XHR", "response": {"status": 404, "mimeType": "text/plain",
        "encodedDataLength": 50.0, "headers": {"x": "y"}, "timing": {"dnsEnd": -1, "sendEnd": 2.5}}});
    requests.fold("Network.responseReceived", None, &answer);
    let end = json!({"requestId": "1", "timestamp": 10.25, "encodedDataLength": 1_234.0});
    requests.fold("Network.loadingFinished", None, &end);
    let request = requests.get(1).unwrap();
    assert_eq!(
        (request.status, request.bytes, request.took),
        (Some(404), 1_234, Some(250.0))
    );
    assert_eq!(
        (request.kind.as_str(), &request.state),
        ("xhr", &State::Done)
    );
    assert_eq!((request.timing.dns, request.timing.sent), (None, Some(2.5)));
    assert_eq!(request.request_headers, [("a".to_owned(), "b".to_owned())]);
    assert!(request.is_failed());
}

#[test]
fn a_redirect_is_an_entry_of_its_own() {
    let mut requests = Requests::default();
    requests.fold("Network.requestWillBeSent", None, &sent("1", "from"));
    let mut to = sent("1", "to");
    to["redirectResponse"] = json!({"status": 302});
    requests.fold("Network.requestWillBeSent", None, &to);
    let failed = json!({"requestId": "1", "errorText": "net::ERR_FAILED", "timestamp": 11.0});
    requests.fold("Network.loadingFailed", None, &failed);
    assert_eq!(
        picked(&requests, &Wanted::default()),
        [
            "from Some(302) Done",
            "to None Failed { error: \"net::ERR_FAILED\", canceled: false }"
        ]
    );
    let wanted = Wanted {
        failed: true,
        ..Wanted::default()
    };
    assert_eq!(picked(&requests, &wanted).len(), 1);
    let wanted = Wanted {
        find: Some("fr".to_owned()),
        kind: Some("fetch".to_owned()),
        ..Wanted::default()
    };
    assert_eq!(picked(&requests, &wanted).len(), 1);
}

#[test]
fn the_document_begins_with_its_own_request() {
    let mut requests = Requests::default();
    for id in ["1", "2", "L", "4"] {
        requests.fold("Network.requestWillBeSent", None, &sent(id, id));
    }
    assert_eq!(requests.navigated("L"), Some(1_000_000.0));
    assert_eq!(picked(&requests, &Wanted::default()).len(), 2);
    assert_eq!(requests.navigated("unknown"), None);
    assert!(picked(&requests, &Wanted::default()).is_empty());
}

#[test]
fn frames_of_a_websocket_are_counted() {
    let mut requests = Requests::default();
    requests.fold(
        "Network.webSocketCreated",
        None,
        &json!({"requestId": "w", "url": "wss://a"}),
    );
    for method in ["Sent", "Received", "Received"] {
        let method = format!("Network.webSocketFrame{method}");
        requests.fold(&method, None, &json!({"requestId": "w"}));
    }
    assert_eq!(requests.get(1).unwrap().frames, (1, 2));
}

#[test]
fn a_flood_of_requests_with_long_headers_stays_bounded() {
    let mut requests = Requests::default();
    for n in 0..REQUESTS * 2 {
        let mut request = sent(&n.to_string(), &"u".repeat(10_000));
        let long: serde_json::Map<_, _> = (0..200)
            .map(|n| (n.to_string(), json!("v".repeat(5_000))))
            .collect();
        request["request"]["headers"] = long.into();
        requests.fold("Network.requestWillBeSent", None, &request);
    }
    let kept = requests.ring.iter().count();
    assert!(
        kept <= REQUESTS && requests.known.len() == kept,
        "{kept} {}",
        requests.known.len()
    );
    let bytes: usize = requests.ring.iter().map(|seen| seen.entry.weight()).sum();
    assert!(bytes <= REQUESTS_BYTES, "{bytes}");
}

#[test]
fn answers_with_long_headers_stay_bounded_though_no_request_follows() {
    let mut requests = Requests::default();
    let long: serde_json::Map<_, _> = (0..200)
        .map(|n| (n.to_string(), json!("v".repeat(5_000))))
        .collect();
    for n in 0..REQUESTS {
        requests.fold(
            "Network.requestWillBeSent",
            None,
            &sent(&n.to_string(), "u"),
        );
    }
    for n in 0..REQUESTS {
        let answer =
            json!({"requestId": n.to_string(), "response": {"status": 200, "headers": long}});
        requests.fold("Network.responseReceived", None, &answer);
    }
    let bytes: usize = requests.ring.iter().map(|seen| seen.entry.weight()).sum();
    assert!(bytes <= REQUESTS_BYTES, "{bytes}");
}
