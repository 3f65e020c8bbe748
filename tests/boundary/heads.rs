//! Request heads that a proxy must not take, on the wire: everything that HTTP libraries let through.

use std::time::Duration;

use gpu_browser::policy::limits::PROXY_HEAD_TIME;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::world::client::{authorization, connect, get};
use crate::world::home::Home;
use crate::world::spellings::SPELLINGS;

#[tokio::test]
async fn no_spelling_of_loopback_passes_as_tunnel_or_plain() {
    let home = Home::new(&[], &[]);
    home.allow
        .send_modify(|list| *list = std::sync::Arc::new(list.as_ref().clone().or_any_public()));
    let context = home.proxy.issue();
    for host in SPELLINGS {
        for request in [
            connect(&format!("{host}:443"), Some(&context)),
            connect(&format!("{host}:80"), Some(&context)),
            get(&format!("http://{host}/"), Some(&context)),
        ] {
            let answer = home.client().await.ask(&request).await;
            assert!(
                [400, 403].contains(&answer.status),
                "{request}: {}",
                answer.status
            );
        }
    }
    // The twin gets as far as the name servers, of which there are none.
    assert_eq!(home.connect(&context, "127.0.0.1.nip.io:443").await.0, 504);
    home.proxy.close().await;
}

#[tokio::test]
async fn every_odd_head_is_refused_and_nothing_hangs() {
    let home = Home::new(&["a.example", "evil.example"], &[]);
    let context = home.proxy.issue();
    let secret = authorization(&context);
    let rows: &[(&str, &str, &str)] = &[
        (
            "a user",
            "CONNECT good@evil.example:443 HTTP/1.1",
            "Host: good@evil.example:443\r\n",
        ),
        (
            "a zero",
            "CONNECT a.example:0443 HTTP/1.1",
            "Host: a.example:0443\r\n",
        ),
        (
            "a plus",
            "CONNECT a.example:+443 HTTP/1.1",
            "Host: a.example:+443\r\n",
        ),
        (
            "a port that wraps",
            "CONNECT a.example:65979 HTTP/1.1",
            "Host: a.example:65979\r\n",
        ),
        (
            "an empty port",
            "CONNECT a.example: HTTP/1.1",
            "Host: a.example:\r\n",
        ),
        (
            "no port",
            "CONNECT a.example HTTP/1.1",
            "Host: a.example\r\n",
        ),
        (
            "another port",
            "CONNECT a.example:22 HTTP/1.1",
            "Host: a.example:22\r\n",
        ),
        (
            "absolute CONNECT",
            "CONNECT http://a.example:443/ HTTP/1.1",
            "Host: a.example:443\r\n",
        ),
        ("a path", "CONNECT /a HTTP/1.1", "Host: a.example:443\r\n"),
        (
            "brackets",
            "CONNECT [a.example]:443 HTTP/1.1",
            "Host: [a.example]:443\r\n",
        ),
        (
            "a zone",
            "CONNECT [fe80::1%25lo]:443 HTTP/1.1",
            "Host: [fe80::1%25lo]:443\r\n",
        ),
        (
            "a bare IPv6",
            "CONNECT ::1:443 HTTP/1.1",
            "Host: ::1:443\r\n",
        ),
        (
            "an escape",
            "CONNECT a%2eexample:443 HTTP/1.1",
            "Host: a%2eexample:443\r\n",
        ),
        (
            "a NUL",
            "CONNECT a.example\0:443 HTTP/1.1",
            "Host: a.example:443\r\n",
        ),
        (
            "raw UTF-8",
            "CONNECT bücher.example:443 HTTP/1.1",
            "Host: bücher.example:443\r\n",
        ),
        (
            "two dots",
            "CONNECT a.example..:443 HTTP/1.1",
            "Host: a.example..:443\r\n",
        ),
        (
            "a length",
            "CONNECT a.example:443 HTTP/1.1",
            "Host: a.example:443\r\nContent-Length: 0\r\n",
        ),
        (
            "chunks",
            "CONNECT a.example:443 HTTP/1.1",
            "Host: a.example:443\r\nTransfer-Encoding: chunked\r\n",
        ),
        (
            "HTTP/1.0",
            "CONNECT a.example:443 HTTP/1.0",
            "Host: a.example:443\r\n",
        ),
        (
            "lower case",
            "connect a.example:443 HTTP/1.1",
            "Host: a.example:443\r\n",
        ),
        (
            "another host",
            "CONNECT a.example:443 HTTP/1.1",
            "Host: evil.example:443\r\n",
        ),
        (
            "two hosts",
            "CONNECT a.example:443 HTTP/1.1",
            "Host: a.example:443\r\nHost: a.example:443\r\n",
        ),
        ("no host", "CONNECT a.example:443 HTTP/1.1", ""),
        (
            "plain, another host",
            "GET http://a.example/ HTTP/1.1",
            "Host: evil.example\r\n",
        ),
        ("plain, no host", "GET http://a.example/ HTTP/1.1", ""),
        ("origin form", "GET /x HTTP/1.1", "Host: a.example\r\n"),
        (
            "two slashes",
            "GET //evil.example/ HTTP/1.1",
            "Host: evil.example\r\n",
        ),
        (
            "https",
            "GET https://a.example/ HTTP/1.1",
            "Host: a.example\r\n",
        ),
        (
            "ftp",
            "GET ftp://a.example/ HTTP/1.1",
            "Host: a.example\r\n",
        ),
        (
            "HTTP/1.0 plain",
            "GET http://a.example/ HTTP/1.0",
            "Host: a.example\r\n",
        ),
        (
            "trace",
            "TRACE http://a.example/ HTTP/1.1",
            "Host: a.example\r\n",
        ),
        (
            "length and chunks",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        ),
        (
            "chunks and length",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        ),
        (
            "two codings",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nTransfer-Encoding: gzip, chunked\r\n",
        ),
        (
            "chunked and a tab",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nTransfer-Encoding: chunked\t\r\n",
        ),
        (
            "identity",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nTransfer-Encoding: identity\r\n",
        ),
        (
            "two lengths",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
        ),
        (
            "a list of lengths",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nContent-Length: 4, 4\r\n",
        ),
        (
            "a signed length",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nContent-Length: +4\r\n",
        ),
        (
            "a space before the colon",
            "GET http://a.example/ HTTP/1.1",
            "Host: a.example\r\nX-A : b\r\n",
        ),
        (
            "a folded line",
            "GET http://a.example/ HTTP/1.1",
            "Host: a.example\r\nX-A: b\r\n c\r\n",
        ),
        (
            "a bare CR",
            "GET http://a.example/ HTTP/1.1",
            "Host: a.example\r\nX-A: b\rc\r\n",
        ),
    ];
    for (what, line, headers) in rows {
        let answer = home
            .client()
            .await
            .ask(&format!("{line}\r\n{headers}{secret}\r\n"))
            .await;
        assert!(
            [400, 403].contains(&answer.status),
            "{what}: {}",
            answer.status
        );
        assert_ne!(answer.status, 407, "{what}: 407 means log in");
    }
    // The twins get as far as the name servers, of which there are none.
    for (what, line, headers) in [
        (
            "CONNECT",
            "CONNECT a.example:443 HTTP/1.1",
            "Host: a.example:443\r\n",
        ),
        (
            "upper case and a dot",
            "CONNECT A.Example.:80 HTTP/1.1",
            "Host: A.Example.:80\r\n",
        ),
        (
            "plain",
            "GET http://a.example/ HTTP/1.1",
            "Host: a.example\r\n",
        ),
        (
            "the same length twice",
            "POST http://a.example/ HTTP/1.1",
            "Host: a.example\r\nContent-Length: 0\r\nContent-Length: 0\r\n",
        ),
    ] {
        let answer = home
            .client()
            .await
            .ask(&format!("{line}\r\n{headers}{secret}\r\n"))
            .await;
        assert_eq!(answer.status, 504, "{what}");
    }
    home.proxy.close().await;
}

#[tokio::test]
async fn a_refusal_is_inert_text_with_a_reason_and_what_to_do() {
    let mut home = Home::new(&[], &[]);
    let context = home.proxy.issue();
    let answer = home
        .client()
        .await
        .ask(&get("http://<script>.evil.example/", Some(&context)))
        .await;
    assert_eq!(answer.status, 400);
    for _ in 0..3 {
        let answer = home
            .client()
            .await
            .ask(&get("http://evil.example/", Some(&context)))
            .await;
        assert_eq!(answer.status, 403);
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(
            answer.text().contains("host_not_allowed") && answer.text().contains("POST /files")
        );
    }
    let refused = home.proxy.refusals(&context.user);
    assert_eq!(
        (
            refused[0].host.as_str(),
            refused[0].reason,
            refused[0].count
        ),
        ("evil.example", "host_not_allowed", 3)
    );
    assert_eq!(home.proxy.totals().refusals, 3);
    assert!(home.events.recv().await.is_some(), "the log has it too");
    home.proxy.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_slowly_or_never_ends_its_connection() {
    let home = Home::new(&[], &[]);
    let started = Instant::now();
    let silent = home.client().await;
    let mut dripping = home.client().await;
    let drip = async {
        while dripping.stream.write_all(b"C").await.is_ok()
            && started.elapsed() < PROXY_HEAD_TIME * 2
        {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        started.elapsed()
    };
    let (_, dripped) = tokio::join!(silent.rest(), drip);
    assert!(
        dripped <= PROXY_HEAD_TIME + Duration::from_secs(2),
        "{dripped:?}"
    );
    home.proxy.close().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let home = Home::new(&["a.example"], &[]);
    let context = home.proxy.issue();
    let padding = |bytes: usize| format!("X-Pad: {}\r\n\r\n", "x".repeat(bytes));
    let head = get("http://a.example/", Some(&context));
    let with = |bytes| head.replacen("\r\n\r\n", &format!("\r\n{}", padding(bytes)), 1);
    assert_eq!(home.client().await.ask(&with(64 << 10)).await.status, 431);
    assert_eq!(
        home.client().await.ask(&with(8 << 10)).await.status,
        504,
        "the twin gets as far as the name servers"
    );
    home.proxy.close().await;
}
