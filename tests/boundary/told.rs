//! What the log hears of connections: each that is made, and its end with the bytes it carried, whatever way it ends.

use gpu_browser::proxy::Event;

use crate::world::client::get;
use crate::world::home::{Home, SITE};
use crate::world::names::addresses;
use crate::world::net::{World, at_home};
use crate::world::sites;

fn scene(world: &World) -> Home {
    Home::in_world(world, &["a.example.com"], |_, _| addresses(&[SITE])).0
}

/// The next connection from its begin to its end: bytes out, bytes in, and the reason.
async fn connection(home: &mut Home, port: u16) -> (u64, u64, &'static str) {
    let site = SITE.parse().unwrap();
    match home.events.recv().await.unwrap() {
        Event::Reached {
            host,
            address,
            port: told,
            ..
        } => {
            assert_eq!(
                (host.as_str(), address, told),
                ("a.example.com", site, port)
            );
        }
        other => panic!("{other:?}"),
    }
    match home.events.recv().await.unwrap() {
        Event::Ended {
            host,
            address,
            port: told,
            sent,
            received,
            reason,
            ..
        } => {
            assert_eq!(
                (host.as_str(), address, told),
                ("a.example.com", site, port)
            );
            (sent, received, reason)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plain_request_is_told_with_the_bytes_of_its_bodies() {
    at_home(|world| async move {
        let mut home = scene(&world);
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        sites::answering(&world, &format!("{SITE}:80"), answer);
        let context = home.proxy.issue();
        let request = get("http://a.example.com/", Some(&context));
        let mut client = home.client().await;
        assert_eq!(client.ask(&request).await.status, 200);
        assert_eq!(connection(&mut home, 80).await, (0, 5, "closed"));
    });
}

#[test]
fn a_plain_request_without_an_answer_is_told_as_ended_too() {
    at_home(|world| async move {
        let mut home = scene(&world);
        sites::answering(
            &world,
            &format!("{SITE}:80"),
            "no answer of http at all\r\n\r\n",
        );
        let context = home.proxy.issue();
        let request = get("http://a.example.com/", Some(&context));
        assert_eq!(home.client().await.ask(&request).await.status, 502);
        assert_eq!(connection(&mut home, 80).await, (0, 0, "broken"));
    });
}

#[test]
fn a_tunnel_is_told_with_its_bytes_and_why_it_ended() {
    at_home(|world| async move {
        let mut home = scene(&world);
        sites::echo(&world, &format!("{SITE}:80"));
        let context = home.proxy.issue();
        let (status, mut client) = home.connect(&context, "a.example.com:80").await;
        assert_eq!(status, 200);
        client.send("ping").await;
        assert_eq!(client.exactly(4).await, b"ping");
        home.proxy.retire(&context.user);
        assert_eq!(connection(&mut home, 80).await, (4, 4, "page_closed"));
    });
}

#[test]
fn what_is_open_when_the_session_ends_is_told_before_the_proxy_is_closed() {
    at_home(|world| async move {
        let mut home = scene(&world);
        sites::echo(&world, &format!("{SITE}:80"));
        let (_, client) = home.connect(&home.proxy.issue(), "a.example.com:80").await;
        home.proxy.close().await;
        let ended = connection(&mut home, 80).await;
        assert_eq!(ended, (0, 0, "session_ended"));
        drop(client);
    });
}
