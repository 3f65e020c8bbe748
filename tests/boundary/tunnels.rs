//! Tunnels: what they carry, what they refuse to begin with, and when they end.

use gpu_browser::policy::limits::{CLIENT_HELLO_TIME, TUNNEL_IDLE};
use gpu_browser::proxy::Event;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::world::client::{Client, Trust};
use crate::world::home::{Home, SITE, allowlist, eventually};
use crate::world::names::{addresses, serve};
use crate::world::net::{World, at_home};
use crate::world::sites;

const RULES: &[&str] = &["a.example.com", "b.example.com"];

fn scene(world: &World) -> Home {
    Home::in_world(world, RULES, |_, _| addresses(&[SITE])).0
}

async fn open(home: &Home, target: &str) -> Client {
    let (status, client) = home.connect(&home.proxy.issue(), target).await;
    assert_eq!(status, 200, "{target}");
    client
}

/// The reason in the log of the next tunnel that ends.
async fn end(home: &mut Home) -> &'static str {
    loop {
        if let Event::Ended { reason, .. } = home.events.recv().await.unwrap() {
            return reason;
        }
    }
}

async fn echoes(client: &mut Client) {
    client.send("ping").await;
    assert_eq!(client.exactly(4).await, b"ping");
}

#[test]
fn bytes_pass_both_ways_and_an_end_of_one_direction_is_passed_on() {
    at_home(|world| async move {
        let mut home = scene(&world);
        sites::echo(&world, &format!("{SITE}:80"));
        let mut client = open(&home, "a.example.com:80").await;
        let megabyte: Vec<u8> = (0..1_u32 << 20).map(|n| n.to_le_bytes()[1]).collect();
        let sent = megabyte.clone();
        let (mut reader, mut writer) = client.stream.split();
        let send = async {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let mut back = Vec::new();
        let (_, read) = tokio::join!(send, reader.read_to_end(&mut back));
        assert_eq!(
            (read.unwrap(), back),
            (1 << 20, megabyte),
            "what comes after the request's end comes whole"
        );
        assert_eq!(end(&mut home).await, "closed");
    });
}

#[test]
fn a_site_that_ends_first_still_hears_the_rest() {
    at_home(|world| async move {
        let home = scene(&world);
        let at = format!("{SITE}:80").parse().unwrap();
        world.holds(at);
        let (heard, mut told) = tokio::sync::mpsc::channel(1);
        sites::serve(&world.internet, at, move |mut stream| {
            let heard = heard.clone();
            async move {
                stream.write_all(b"bye").await.unwrap();
                stream.shutdown().await.unwrap();
                let mut rest = String::new();
                stream.read_to_string(&mut rest).await.unwrap();
                heard.send(rest).await.unwrap();
            }
        });
        let mut client = open(&home, "a.example.com:80").await;
        assert_eq!(client.exactly(3).await, b"bye");
        assert_eq!(client.stream.read(&mut [0]).await.unwrap(), 0);
        client.send("and one more thing").await;
        client.stream.shutdown().await.unwrap();
        assert_eq!(told.recv().await.unwrap(), "and one more thing");
    });
}

#[test]
fn a_first_record_that_is_not_the_hosts_hello_never_leaves() {
    at_home(|world| async move {
        let home = scene(&world);
        let at = format!("{SITE}:443").parse().unwrap();
        world.holds(at);
        let (heard, mut told) = tokio::sync::mpsc::channel(8);
        sites::serve(&world.internet, at, move |mut stream| {
            let heard = heard.clone();
            async move {
                let mut bytes = Vec::with_capacity(4_096);
                let _ = stream.read_buf(&mut bytes).await;
                heard.send(bytes.len()).await.unwrap();
            }
        });
        let context = home.proxy.issue();
        let reason = || {
            home.proxy
                .refusals(&context.user)
                .last()
                .map(|refused| refused.reason)
        };
        for (first, why) in [
            (&b"GET / HTTP/1.1\r\nHost: inside\r\n\r\n"[..], "not_tls"),
            (&b"SSH-2.0-x\r\n"[..], "not_tls"),
            (&b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00"[..], "not_tls"),
            (&b"\x16\x03\x01\xff\xff\x01"[..], "not_tls"),
        ] {
            let (_, mut client) = home.connect(&context, "a.example.com:443").await;
            client.send(first).await;
            assert!(client.rest().await.is_empty());
            assert_eq!((reason(), told.recv().await), (Some(why), Some(0)));
        }
        for other in ["b.example.com", "evil.example"] {
            let (_, client) = home.connect(&context, "a.example.com:443").await;
            assert!(client.tls(other, Trust::Any, &[]).await.is_err());
            assert_eq!(
                (reason(), told.recv().await),
                (Some("sni_mismatch"), Some(0)),
                "{other}"
            );
        }
        let (_, client) = home.connect(&context, "a.example.com:443").await;
        assert!(
            client.tls("93.184.215.14", Trust::Any, &[]).await.is_err(),
            "a hello without a name"
        );
        assert_eq!(
            (reason(), told.recv().await),
            (Some("sni_mismatch"), Some(0))
        );
        let (_, client) = home.connect(&context, "A.Example.Com.:443").await;
        let _ = client.tls("a.example.com", Trust::Any, &[]).await;
        assert!(told.recv().await.unwrap() > 200, "the twin's hello arrives");
    });
}

#[test]
fn a_rule_taken_back_ends_its_open_tunnels_at_once_and_no_others() {
    at_home(|world| async move {
        let mut home = scene(&world);
        sites::echo(&world, &format!("{SITE}:80"));
        let (mut a, mut b) = (
            open(&home, "a.example.com:80").await,
            open(&home, "b.example.com:80").await,
        );
        echoes(&mut a).await;
        echoes(&mut b).await;
        home.allow
            .send_replace(allowlist(&["b.example.com", "c.example.com"]));
        a.rest().await;
        assert_eq!(end(&mut home).await, "rule_withdrawn");
        echoes(&mut b).await;
        let context = home.proxy.issue();
        assert_eq!(home.connect(&context, "a.example.com:80").await.0, 403);
        home.allow.send_replace(allowlist(RULES));
        assert_eq!(
            home.connect(&context, "a.example.com:80").await.0,
            200,
            "a widened host needs no restart"
        );
    });
}

#[test]
fn a_retired_context_takes_its_tunnels_with_it_and_a_close_takes_all() {
    at_home(|world| async move {
        let mut home = scene(&world);
        sites::echo(&world, &format!("{SITE}:80"));
        let (gone, stays) = (home.proxy.issue(), home.proxy.issue());
        let (_, first) = home.connect(&gone, "a.example.com:80").await;
        let (_, mut second) = home.connect(&stays, "a.example.com:80").await;
        home.proxy.retire(&gone.user);
        first.rest().await;
        assert_eq!(end(&mut home).await, "page_closed");
        echoes(&mut second).await;
        home.proxy.close().await;
        assert_eq!(end(&mut home).await, "session_ended");
        second.rest().await;
        assert_eq!(home.proxy.totals().tunnels, 0);
    });
}

#[test]
fn a_client_that_leaves_stops_the_dial() {
    at_home(|world| async move {
        // Nobody holds the address, so nobody answers.
        let home = scene(&world);
        let mut client = home.client().await;
        let context = home.proxy.issue();
        client
            .send(crate::world::client::connect(
                "a.example.com:443",
                Some(&context),
            ))
            .await;
        eventually("the dial is under way", || home.proxy.totals().tunnels == 1).await;
        drop(client);
        eventually("the dial is given up", || home.proxy.totals().tunnels == 0).await;
    });
}

/// Sites at home, so that one paused clock rules them all.
fn at_home_paused<F>(test: impl FnOnce(Home) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    at_home(|world| async move {
        for address in ["9.9.9.9/32", "93.184.215.14/32"] {
            world.home.ip(&format!("addr add {address} dev lo"));
        }
        let name_server = "9.9.9.9:53".parse().unwrap();
        serve(&world.home, name_server, |_, _| addresses(&[SITE]));
        for port in [80, 443] {
            sites::serve(
                &world.home,
                format!("{SITE}:{port}").parse().unwrap(),
                |mut stream| async move {
                    let (mut reader, mut writer) = stream.split();
                    let _ = tokio::io::copy(&mut reader, &mut writer).await;
                },
            );
        }
        tokio::time::pause();
        test(Home::new(RULES, &[name_server])).await;
    });
}

#[test]
fn a_tunnel_that_carries_nothing_ends_after_the_idle_limit() {
    at_home_paused(|mut home| async move {
        let mut client = open(&home, "a.example.com:80").await;
        let opened = Instant::now();
        tokio::time::sleep(TUNNEL_IDLE - TUNNEL_IDLE / 10).await;
        echoes(&mut client).await;
        assert_eq!(end(&mut home).await, "idle");
        assert!(
            opened.elapsed() >= TUNNEL_IDLE * 19 / 10 && opened.elapsed() < TUNNEL_IDLE * 2,
            "{:?}",
            opened.elapsed()
        );
        client.rest().await;
    });
}

#[test]
fn a_tunnel_to_443_that_says_nothing_ends_soon() {
    at_home_paused(|mut home| async move {
        let mut client = open(&home, "a.example.com:443").await;
        let opened = Instant::now();
        client.send(&b"\x16\x03\x01\x02\x00\x01"[..]).await;
        assert_eq!(end(&mut home).await, "client_hello_timeout");
        assert!(opened.elapsed() >= CLIENT_HELLO_TIME && opened.elapsed() < CLIENT_HELLO_TIME * 2);
    });
}
