//! The password of the proxy, and the priming of contexts.

use gpu_browser::proxy::PRIME_URL;

use crate::world::client::{Client, connect, get};
use crate::world::home::Home;

#[tokio::test]
async fn nobody_passes_without_the_password() {
    let home = Home::new(&["a.example"], &[]);
    let mut wrong = home.proxy.issue();
    wrong.password.push('x');
    for credential in [None, Some(&wrong)] {
        let mut client = home.client().await;
        // Where nobody answers it, a 407 is a dialog that a page waits for without an end.
        for (request, status) in [
            (connect("a.example:443", credential), 403),
            (connect("uploads.gpu-browser.internal:443", credential), 403),
            (get("http://a.example/", credential), 403),
            (get(PRIME_URL, credential), 407),
        ] {
            let answer = client.ask(&request).await;
            assert_eq!(answer.status, status, "{request}");
            let challenge = (status == 407).then_some("Basic realm=\"gpu-browser\"");
            assert_eq!(answer.header("proxy-authenticate"), challenge);
        }
    }
    assert_eq!(home.proxy.challenges(), 8);
    assert!(!home.proxy.primed(&wrong.user));
    home.proxy.close().await;
}

#[tokio::test]
async fn a_context_is_primed_by_its_own_first_page_and_by_no_other() {
    let home = Home::new(&[], &[]);
    let (one, other) = (home.proxy.issue(), home.proxy.issue());
    let mut client = home.client().await;
    assert_eq!(client.ask(&get(PRIME_URL, None)).await.status, 407);
    let answer = client.ask(&get(PRIME_URL, Some(&one))).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(answer.text().contains("<link rel=icon href=data:,>"));
    assert!(home.proxy.wait_primed(&one.user).await);
    assert!(!home.proxy.primed(&other.user));
    home.proxy.unprime(&one.user);
    assert!(
        !home.proxy.primed(&one.user),
        "primed once more after the browser lost the password"
    );
    home.proxy.retire(&one.user);
    assert_eq!(client.ask(&get(PRIME_URL, Some(&one))).await.status, 407);
    home.proxy.close().await;
}

#[tokio::test]
async fn the_canary_is_seen_and_refused_by_the_proxy() {
    let home = Home::new(&[], &[]);
    let context = home.proxy.issue();
    let mut client = home.client().await;
    let canary = home.proxy.expect_loopback(9);
    // A page's own request for another port is none, and is told like any other; the canary itself needs no password.
    for (port, credential) in [(10, Some(&context)), (9, None)] {
        let request = get(&format!("http://127.0.0.1:{port}/"), credential);
        assert_eq!(client.ask(&request).await.status, 403);
    }
    canary.refused().await;
    drop(canary);
    let again = client.ask(&get("http://127.0.0.1:9/", None)).await;
    assert!(again.text().contains("no_password"), "{}", again.text());
    let refused = home.proxy.refusals(&context.user);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(
        (
            refused[0].host.as_str(),
            refused[0].reason,
            refused[0].count
        ),
        ("127.0.0.1:10", "address_literal", 1)
    );
    home.proxy.close().await;
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "the test plays a stranger")]
async fn a_new_socket_replaces_the_old_one_and_open_connections_stay() {
    let home = Home::new(&[], &[]);
    let context = home.proxy.issue();
    let mut client = home.client().await;
    assert_eq!(
        client.ask(&get(PRIME_URL, Some(&context))).await.status,
        200
    );
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap();
    home.proxy.adopt(socket).unwrap();
    let mut moved = Client::to(at).await;
    assert_eq!(moved.ask(&get(PRIME_URL, Some(&context))).await.status, 200);
    assert_eq!(
        client.ask(&get(PRIME_URL, Some(&context))).await.status,
        200
    );
    let refused = std::net::TcpStream::connect(home.at);
    assert!(refused.is_err(), "nobody listens at the old socket");
    home.proxy.close().await;
    assert!(
        std::net::TcpStream::connect(at).is_err(),
        "nor at the new one after the close"
    );
}
