//! Pages that try every way out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gpu_browser::browser::navigate::WaitUntil;
use gpu_browser::browser::page::Page;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::browser::Kept;
use crate::scene::{ALLOWED, Scene};
use crate::world::home::eventually;
use crate::world::net::{World, at_home};
use crate::world::sites;
use crate::world::sniffer::{Packet, Sniffer};
use crate::world::spellings::SPELLINGS;

const IGMP: u8 = 2;

/// Ways in which a page asks for a host over a connection, so that the proxy sees it ask; the allowed twin of each arrives.
const WAYS: [&str; 17] = [
    "beacon",
    "events",
    "fetch",
    "iframe",
    "img",
    "keepalive",
    "later",
    "modulepreload",
    "prefetch",
    "preload",
    "script",
    "service",
    "shared",
    "socket",
    "style",
    "video",
    "xhr",
];

/// Runs every attack, and gives the page that made them.
async fn attacked(scene: &Scene) -> Page {
    let page = scene.page().await;
    scene.attack(&page, "attack.js").await;
    let webrtc = scene.attack(&page, "webrtc.js").await;
    let added = webrtc["added"].as_array().unwrap();
    assert!(added.iter().all(|one| one == "fulfilled"), "{webrtc}");
    let shown = scene.show(&page, &format!("http://{ALLOWED}/page")).await;
    assert_eq!(shown, None, "the allowed host is reached");
    let spellings = include_str!("pages/spellings.js");
    scene.run(&page, spellings, &json!(SPELLINGS)).await;
    for host in SPELLINGS {
        scene.show(&page, &format!("http://{host}/")).await;
    }
    page
}

/// What was denied was seen and refused by the proxy, and what is allowed arrived.
fn went_through_the_proxy(scene: &Scene, page: &Page) {
    let refused = scene.refused(page);
    let arrived = scene.secure.paths();
    for way in WAYS {
        let denied = (format!("{way}.evil.example:443"), "host_not_allowed");
        assert!(refused.contains(&denied), "{way} is not among {refused:?}");
        assert!(arrived.contains(&format!("/{way}")), "{way}: {arrived:?}");
    }
    let printer = ("printer.local:443".to_owned(), "local_name");
    assert!(refused.contains(&printer), "{refused:?}");
    // Without our switches Chromium goes to https by itself.
    assert!(
        [scene.plain.paths(), arrived]
            .iter()
            .any(|paths| paths.contains("/page"))
    );
    scene.asked_for_nothing_else();
}

#[test]
fn in_its_namespace_and_with_no_switch_but_the_proxys_nothing_leaves() {
    at_home(|world| async move {
        let scene = Scene::new(&world, Kept::Namespaced).await;
        let page = attacked(&scene).await;
        assert_eq!(scene.outside(), []);
        went_through_the_proxy(&scene, &page);
    });
}

#[test]
fn with_our_switches_and_no_namespace_nothing_leaves_but_through_the_proxy() {
    at_home(|world| async move {
        let scene = Scene::new(&world, Kept::Switched).await;
        let traps = ["127.0.0.1:80", "[::1]:80"]
            .map(|at| sites::trap(&scene.around.home, at.parse().unwrap()));
        let page = attacked(&scene).await;
        assert_eq!(scene.outside(), []);
        assert!(traps.iter().all(|trap| trap.count() == 0));
        went_through_the_proxy(&scene, &page);
        // Even loopback is asked for at the proxy, in the spellings that Chromium leaves of it; and TURN over TCP and TLS,
        // which WebRTC takes to the proxy where it has no other way.
        let refused = scene.refused(&page);
        for (target, reason) in [
            ("127.0.0.1", "address_literal"),
            ("127.0.0.1..", "bad_authority"),
            ("[::1]", "address_literal"),
            ("[::]", "address_literal"),
            ("[::ffff:7f00:1]", "address_literal"),
            ("0.0.0.0", "address_literal"),
            ("localhost", "local_name"),
            ("localhost.", "local_name"),
            ("x.localhost", "local_name"),
            ("169.254.169.254", "address_literal"),
            ("198.41.0.4:3478", "address_literal"),
            ("turn.evil.example:443", "host_not_allowed"),
        ] {
            let known = (target.to_owned(), reason);
            assert!(
                refused.contains(&known),
                "{target} is not among {refused:?}"
            );
        }
    });
}

#[test]
fn without_the_boundary_the_same_pages_leak_and_the_sniffer_sees_it() {
    at_home(|world| async move {
        let scene = Scene::new(&world, Kept::Free).await;
        let metadata = sites::trap(
            &scene.around.internet,
            "169.254.169.254:80".parse().unwrap(),
        );
        let loopback = sites::trap(&scene.around.home, "127.0.0.1:80".parse().unwrap());
        attacked(&scene).await;
        assert!(metadata.count() > 0 && loopback.count() > 0);
        let leaked = scene.outside();
        let seen = |what: &str, is: &dyn Fn(&Packet) -> bool| {
            assert!(leaked.iter().any(is), "no {what} among {leaked:#?}");
        };
        let udp_to = |port: u16| move |packet: &Packet| packet.is_udp() && packet.to.port() == port;
        seen("STUN", &udp_to(3_478));
        seen("DNS", &udp_to(53));
        seen("mDNS", &udp_to(5_353));
        seen("SSDP", &udp_to(1_900));
        seen("WebTransport", &udp_to(4_433));
        seen("forged candidate", &|packet| {
            packet.to.to_string() == "10.77.0.2:4444"
        });
        seen("group", &|packet| packet.protocol == IGMP);
    });
}

#[test]
fn the_sniffer_sees_a_single_packet() {
    let world = World::new();
    let sniffer = Sniffer::on(&world.home);
    let proxy = "127.0.0.1:1".parse().unwrap();
    assert_eq!(sniffer.besides(proxy), []);
    world.home.on_thread(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.send_to(b"x", "198.41.0.4:9").unwrap();
    });
    let seen = sniffer.besides(proxy);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].to.to_string(), "198.41.0.4:9");
}

#[test]
fn a_storm_of_popups_on_a_page_that_never_ends_leaves_nothing_behind() {
    at_home(|world| async move {
        let scene = Scene::new(&world, Kept::Switched).await;
        let page = scene.page().await;
        let deadline = Instant::now() + Duration::from_secs(2);
        let endless = format!("http://{ALLOWED}/endless");
        let shown = page
            .navigate(&endless, WaitUntil::Load, deadline)
            .await
            .unwrap();
        assert!(shown.timed_out && shown.net_error.is_none(), "{shown:?}");
        let popups = AtomicU64::new(0);
        eventually("popups are closed and counted", || {
            let more = page.observed.take_events().popups.count;
            popups.fetch_add(more, Ordering::Relaxed) + more > 10
        })
        .await;
        let open = || scene.home.proxy.totals().tunnels;
        assert!(open() >= 4, "the document and its parts: {}", open());
        assert_eq!(
            scene
                .run(&page, "document.images.length", &Value::Null)
                .await,
            1
        );
        page.close().await;
        scene.home.proxy.retire(page.user());
        eventually("all tunnels are closed", || open() == 0).await;
        assert_eq!(scene.outside(), []);
        // The twin: another page finds the browser well.
        let page = scene.page().await;
        let shown = scene.show(&page, &format!("http://{ALLOWED}/page")).await;
        assert_eq!(shown, None);
    });
}
