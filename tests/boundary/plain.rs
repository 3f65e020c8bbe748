//! Plain http: each request judged alone, no header of one hop on the next, nothing smuggled.

use crate::world::client::{authorization, get};
use crate::world::home::{Home, SITE, eventually};
use crate::world::names::addresses;
use crate::world::net::at_home;
use crate::world::sites;

#[test]
fn a_site_sees_the_request_and_nothing_of_the_proxy() {
    at_home(|world| async move {
        let (home, _) = Home::in_world(&world, &["www.example.com"], |_, _| addresses(&[SITE]));
        sites::mirror(&world, &format!("{SITE}:80"));
        let context = home.proxy.issue();
        let request = format!(
            "POST http://WWW.example.com./path?q=1 HTTP/1.1\r\nHost: www.example.com.\r\nConnection: keep-alive, X-Private\r\n\
             X-Private: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nExpect: 100-continue\r\nCookie: a=b\r\nContent-Length: 0\r\n{}\r\n",
            authorization(&context)
        );
        let seen = home
            .client()
            .await
            .ask(&request)
            .await
            .text()
            .to_lowercase();
        assert!(seen.starts_with("post /path?q=1 http/1.1\r\n"), "{seen}");
        assert!(
            seen.contains("host: www.example.com\r\n") && seen.contains("cookie: a=b\r\n"),
            "{seen}"
        );
        for foreign in [
            "proxy-",
            "x-private",
            "keep-alive",
            "te:",
            "upgrade",
            "expect",
            "basic ",
        ] {
            assert!(!seen.contains(foreign), "{foreign}: {seen}");
        }
    });
}

#[test]
fn requests_on_one_connection_are_judged_one_by_one() {
    at_home(|world| async move {
        let (home, _) = Home::in_world(&world, &["www.example.com"], |_, _| addresses(&[SITE]));
        let visits = sites::mirror(&world, &format!("{SITE}:80"));
        let context = home.proxy.issue();
        let mut client = home.client().await;
        let (good, bad) = ("http://www.example.com/", "http://evil.example.com/");
        let pipelined: Vec<String> = [good, bad, good]
            .iter()
            .map(|url| get(url, Some(&context)))
            .collect();
        client.send(pipelined.concat()).await;
        let statuses = [
            client.answer().await.status,
            client.answer().await.status,
            client.answer().await.status,
        ];
        assert_eq!(statuses, [200, 403, 200]);
        assert_eq!(visits.count(), 2);
    });
}

#[test]
fn a_site_cannot_ask_for_the_proxys_password() {
    at_home(|world| async move {
        let (home, _) = Home::in_world(&world, &["*.example.com"], |name, _| match name {
            "evil.example.com" => addresses(&["93.184.215.15"]),
            _ => addresses(&[SITE]),
        });
        let challenge = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"gpu-browser\"\r\nContent-Length: 0\r\n\r\n";
        sites::answering(&world, "93.184.215.15:80", challenge);
        let twin = "HTTP/1.1 401 Unauthorized\r\nProxy-Authenticate: Basic\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
        sites::answering(&world, &format!("{SITE}:80"), twin);
        let context = home.proxy.issue();
        let mut client = home.client().await;
        assert_eq!(
            client
                .ask(&get("http://evil.example.com/", Some(&context)))
                .await
                .status,
            502
        );
        let answer = client
            .ask(&get("http://www.example.com/", Some(&context)))
            .await;
        assert_eq!(
            (answer.status, answer.header("www-authenticate")),
            (401, Some("Basic"))
        );
        assert_eq!(answer.header("proxy-authenticate"), None);
    });
}

#[test]
fn a_body_without_a_length_comes_whole_and_a_broken_one_is_not_taken_for_whole() {
    at_home(|world| async move {
        let (home, _) = Home::in_world(&world, &["*.example.com"], |name, _| match name {
            "broken.example.com" => addresses(&["93.184.215.15"]),
            _ => addresses(&[SITE]),
        });
        sites::answering(
            &world,
            &format!("{SITE}:80"),
            "HTTP/1.1 200 OK\r\n\r\nto the end",
        );
        sites::answering(
            &world,
            "93.184.215.15:80",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbroke",
        );
        let context = home.proxy.issue();
        let whole = home
            .client()
            .await
            .ask(&get("http://www.example.com/", Some(&context)))
            .await;
        assert_eq!(whole.text(), "to the end");
        let mut client = home.client().await;
        client
            .send(get("http://broken.example.com/", Some(&context)))
            .await;
        let rest = client.rest().await;
        assert!(
            !rest.ends_with(b"0\r\n\r\n"),
            "half an answer was closed as a whole one"
        );
    });
}

#[test]
fn an_answer_that_is_still_coming_ends_when_its_rule_is_taken_back() {
    at_home(|world| async move {
        let (home, _) = Home::in_world(&world, &["www.example.com"], |_, _| addresses(&[SITE]));
        let at = format!("{SITE}:80").parse().unwrap();
        world.holds(at);
        sites::serve(&world.internet, at, |mut stream| async move {
            use tokio::io::AsyncWriteExt;
            sites::head(&mut stream).await;
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
                .await
                .unwrap();
            std::future::pending::<()>().await;
        });
        let context = home.proxy.issue();
        let mut client = home.client().await;
        client
            .send(get("http://www.example.com/", Some(&context)))
            .await;
        assert_eq!(client.head().await.status, 200);
        home.allow
            .send_replace(crate::world::home::allowlist(&["other.example.com"]));
        client.rest().await;
        eventually("its place is free again", || {
            home.proxy.totals().tunnels == 0
        })
        .await;
    });
}
