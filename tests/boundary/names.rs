//! Attacks by a name server that the page's author controls. The sniffer must see no packet to the wrong place.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpu_browser::policy::limits::{DIALLED_ADDRESSES, RESOLVE_TIME};

use crate::world::client::{Trust, get};
use crate::world::home::{Home, NAME_SERVER, SITE};
use crate::world::names::{Says, addresses, serve};
use crate::world::net::{World, at_home};
use crate::world::sites;
use crate::world::sniffer::Sniffer;

/// A world with a scripted name server, a TLS site, and a proxy that lets `*.example.com` through.
struct Scene {
    home: Home,
    asked: crate::world::names::Asked,
    sniffer: Sniffer,
}

fn scene(world: &World, script: impl Fn(&str, usize) -> Says + Send + Sync + 'static) -> Scene {
    let (home, asked) = Home::in_world(world, &["*.example.com"], script);
    sites::tls(world, &format!("{SITE}:443"));
    Scene {
        home,
        asked,
        sniffer: Sniffer::on(&world.home),
    }
}

impl Scene {
    /// The status of a CONNECT and the reason of the newest refusal.
    async fn connect(&self, host: &str) -> (u16, Option<&'static str>) {
        let context = self.home.proxy.issue();
        let (status, _) = self.home.connect(&context, &format!("{host}:443")).await;
        (
            status,
            self.home
                .proxy
                .refusals(&context.user)
                .last()
                .map(|refused| refused.reason),
        )
    }

    /// Only the name server and the site were sent anything; loopback is the browser's own.
    fn nothing_else_was_sent_to(&self, sites: &[&str]) {
        let allowed = |to: &SocketAddr| {
            to.ip().is_loopback()
                || to.to_string() == NAME_SERVER
                || sites.contains(&to.to_string().as_str())
                || to.port() == 0
        };
        let wrong: Vec<_> = self
            .sniffer
            .targets()
            .into_iter()
            .filter(|to| !allowed(to))
            .collect();
        assert!(wrong.is_empty(), "packets went to {wrong:?}");
    }
}

#[test]
fn a_site_with_a_public_address_is_reached_through_tls() {
    at_home(|world| async move {
        let scene = scene(&world, |_, _| addresses(&[SITE]));
        let (status, client) = scene
            .home
            .connect(&scene.home.proxy.issue(), "www.example.com:443")
            .await;
        assert_eq!(status, 200);
        let mut tls = client
            .tls("www.example.com", Trust::Any, &[])
            .await
            .unwrap();
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        tls.write_all(b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
            .await
            .unwrap();
        let mut page = String::new();
        tls.read_to_string(&mut page).await.unwrap();
        assert!(page.ends_with("hello"));
        scene.nothing_else_was_sent_to(&["93.184.215.14:443"]);
        let asked = scene.asked.lock().unwrap().clone();
        assert!(
            asked.iter().all(|(name, _)| name == "www.example.com"),
            "no search list: {asked:?}"
        );
    });
}

#[test]
fn an_answer_that_leads_inside_refuses_the_name_and_no_packet_goes_there() {
    for (answer, reason) in [
        (addresses(&["127.0.0.1"]), "address_loopback"),
        (addresses(&["10.0.0.9"]), "address_private"),
        (addresses(&["169.254.169.254"]), "address_metadata"),
        (addresses(&["10.77.0.2"]), "address_private"),
        (addresses(&["::1"]), "address_loopback"),
        (addresses(&["::ffff:127.0.0.1"]), "address_embedded_ipv4"),
        (addresses(&["fd77::2"]), "address_unique_local"),
        (addresses(&[SITE, "10.0.0.9"]), "address_private"),
        (addresses(&["10.0.0.9", SITE]), "address_private"),
        (addresses(&[SITE, "fd77::2"]), "address_unique_local"),
        (
            Says::Alias(
                "inside.example.net".into(),
                vec!["10.0.0.9".parse().unwrap()],
            ),
            "address_private",
        ),
    ] {
        at_home(|world| async move {
            let trapped: Vec<_> = [
                "10.0.0.9:443",
                "10.77.0.2:443",
                "[fd77::2]:443",
                "169.254.169.254:443",
            ]
            .map(|at| at.parse::<SocketAddr>().unwrap())
            .into_iter()
            .map(|at| {
                world.holds(at);
                sites::trap(&world.internet, at)
            })
            .collect();
            let at_home = sites::trap(&world.home, "127.0.0.1:443".parse().unwrap());
            let told = format!("{answer:?}");
            let scene = scene(&world, move |_, _| answer.clone());
            assert_eq!(
                scene.connect("www.example.com").await,
                (403, Some(reason)),
                "{told}"
            );
            assert!(
                trapped
                    .iter()
                    .chain([&at_home])
                    .all(|trap| trap.count() == 0),
                "{told}"
            );
            scene.nothing_else_was_sent_to(&[]);
        });
    }
}

#[test]
fn an_alias_to_a_public_address_is_followed() {
    at_home(|world| async move {
        let scene = scene(&world, |_, _| {
            Says::Alias("cdn.example.net".into(), vec![SITE.parse().unwrap()])
        });
        assert_eq!(scene.connect("www.example.com").await, (200, None));
        scene.nothing_else_was_sent_to(&["93.184.215.14:443"]);
    });
}

#[test]
fn a_name_that_is_bound_anew_after_the_check_gains_nothing() {
    at_home(|world| async move {
        let inside = sites::trap(&world.home, "127.0.0.1:443".parse().unwrap());
        // Public the first time, loopback ever after, never to be kept.
        let scene = scene(&world, |_, before| {
            let address = if before == 0 { SITE } else { "127.0.0.1" };
            Says::Addresses(vec![address.parse().unwrap()], 0)
        });
        assert_eq!(
            scene.connect("www.example.com").await,
            (200, None),
            "one answer, judged and dialled"
        );
        assert_eq!(
            scene.connect("www.example.com").await,
            (403, Some("address_loopback")),
            "the next one is judged too"
        );
        assert_eq!(inside.count(), 0);
        scene.nothing_else_was_sent_to(&["93.184.215.14:443"]);
    });
}

#[test]
fn answers_of_nat64_are_left_out_and_the_site_is_still_reached() {
    at_home(|world| async move {
        let scene = scene(&world, |name, _| match name {
            "only.example.com" => addresses(&["64:ff9b::5db8:d70e"]),
            _ => addresses(&["64:ff9b::5db8:d70e", SITE]),
        });
        assert_eq!(scene.connect("www.example.com").await, (200, None));
        assert_eq!(
            scene.connect("only.example.com").await,
            (502, Some("only_translated_addresses"))
        );
        scene.nothing_else_was_sent_to(&["93.184.215.14:443"]);
    });
}

#[test]
fn two_thousand_answers_are_four_dials_at_most() {
    at_home(|world| async move {
        let scene = scene(&world, |_, _| {
            let many = (0..2_000_u32).map(|n| std::net::Ipv4Addr::from(0x5db8_0000 + n).into());
            Says::Addresses(many.collect(), 60)
        });
        // Nobody listens at any of them: each dial is refused at once.
        world.internet.ip("route add local 93.184.0.0/20 dev lo");
        let (status, reason) = scene.connect("www.example.com").await;
        assert_eq!((status, reason), (504, Some("connect_failed")));
        let dialled = scene
            .sniffer
            .targets()
            .into_iter()
            .filter(|to| to.port() == 443)
            .count();
        assert_eq!(dialled, DIALLED_ADDRESSES);
    });
}

#[test]
fn a_silent_name_server_costs_its_time_and_no_more() {
    at_home(|world| async move {
        let scene = scene(&world, |name, _| match name {
            "silent.example.com" => Says::Silence,
            "nowhere.example.com" => Says::Nothing,
            _ => addresses(&[SITE]),
        });
        let started = Instant::now();
        assert_eq!(
            scene.connect("silent.example.com").await,
            (504, Some("name_server_failed"))
        );
        assert!(
            started.elapsed() < RESOLVE_TIME + Duration::from_secs(1),
            "{:?}",
            started.elapsed()
        );
        assert_eq!(
            scene.connect("nowhere.example.com").await,
            (502, Some("name_not_found"))
        );
        assert_eq!(scene.connect("www.example.com").await, (200, None));
    });
}

#[test]
fn a_denied_name_is_never_asked_for() {
    at_home(|world| async move {
        let scene = scene(&world, |_, _| addresses(&[SITE]));
        for denied in [
            "secret-data.evil.example",
            "example.com",
            "localhost",
            "10.0.0.9",
            "nas",
        ] {
            let (status, _) = scene.connect(denied).await;
            assert_eq!(status, 403, "{denied}");
        }
        assert!(
            scene.asked.lock().unwrap().is_empty(),
            "a name server is a way out for data"
        );
        assert_eq!(scene.connect("www.example.com").await.0, 200);
    });
}

#[test]
fn the_owners_own_network_is_refused_though_it_is_global() {
    at_home(|world| async move {
        world
            .home
            .ip("-6 addr add 2a00:1450:1:2::1/64 dev lo nodad");
        world.home.ip("addr add 198.41.0.4/32 dev lo");
        let name_server: SocketAddr = NAME_SERVER.parse().unwrap();
        world.holds(name_server);
        serve(&world.internet, name_server, |name, _| match name {
            "desk.example.com" => addresses(&["198.41.0.4"]),
            "printer.example.com" => addresses(&["2a00:1450:1:2::9"]),
            _ => addresses(&[SITE]),
        });
        sites::mirror(&world, &format!("{SITE}:80"));
        let own = gpu_browser::proxy::of_this_machine();
        let home = Home::with_own_addresses(&["*.example.com"], &[name_server], Arc::clone(&own));
        let context = home.proxy.issue();
        let mut client = home.client().await;
        for (host, status) in [("desk", 403), ("printer", 403), ("www", 200)] {
            let answer = client
                .ask(&get(&format!("http://{host}.example.com/"), Some(&context)))
                .await;
            assert_eq!(answer.status, status, "{host}: {}", answer.text());
        }
        assert!(
            home.proxy
                .refusals(&context.user)
                .iter()
                .all(|refused| refused.reason == "address_own_network")
        );
    });
}
