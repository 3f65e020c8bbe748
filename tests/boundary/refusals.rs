//! Every reason to refuse, provoked on the wire: its word and its fix are in the answer or the end of the tunnel, in the list
//! of the page, in that of the session, and in the log.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use gpu_browser::policy::address::{AddressKind, OwnNetwork};
use gpu_browser::policy::limits::TUNNELS_PER_CONTEXT;
use gpu_browser::policy::refusal::Refusal;
use gpu_browser::proxy::{Credential, Event, RefusedHost};

use crate::world::client::{authorization, connect, get};
use crate::world::home::{Home, NAME_SERVER, SITE, allowlist};
use crate::world::names::{self, Says};
use crate::world::net::{World, at_home};
use crate::world::sites;

/// An address of each kind.
fn address_of(kind: AddressKind) -> &'static str {
    match kind {
        AddressKind::ThisNetwork => "0.0.0.1",
        AddressKind::Private => "10.0.0.1",
        AddressKind::Shared => "100.64.0.1",
        AddressKind::Loopback => "127.0.0.1",
        AddressKind::LinkLocal => "169.254.1.1",
        AddressKind::Metadata => "169.254.169.254",
        AddressKind::Protocol => "192.0.0.1",
        AddressKind::Documentation => "192.0.2.1",
        AddressKind::Transition => "2002::1",
        AddressKind::Infrastructure => "192.31.196.1",
        AddressKind::Benchmarking => "198.18.0.1",
        AddressKind::Multicast => "224.0.0.1",
        AddressKind::Reserved => "240.0.0.1",
        AddressKind::EmbeddedIpv4 => "::ffff:1.2.3.4",
        AddressKind::UniqueLocal => "fd00::1",
        AddressKind::OwnNetwork => "198.41.0.4",
    }
}

fn home(world: &World) -> Home {
    let name_server = NAME_SERVER.parse().unwrap();
    world.holds(name_server);
    names::serve(&world.internet, name_server, |name, _| {
        let kinds = AddressKind::ALL.iter();
        let kind = kinds.into_iter().find(|kind| {
            let word = kind.as_str().replace('_', "-");
            name == format!("{word}.example.com")
        });
        let address: IpAddr = kind.map_or(SITE, |kind| address_of(*kind)).parse().unwrap();
        Says::Addresses(vec![address], 60)
    });
    let own = Arc::new(|| Ok(OwnNetwork::new(["198.41.0.0/24".parse().unwrap()])));
    let home = Home::with_own_addresses(&["*.example.com"], &[name_server], own);
    sites::tls(world, &format!("{SITE}:443"));
    sites::echo(world, &format!("{SITE}:80"));
    home
}

/// Does what is refused with this reason, and waits until the page's list names it.
async fn provoke(home: &Home, refusal: Refusal) -> Credential {
    let page = home.proxy.issue();
    let secret = authorization(&page);
    let mut client = home.client().await;
    match refusal {
        Refusal::BadAuthority => {
            client
                .send(connect("a@b.example.com:443", Some(&page)))
                .await;
        }
        Refusal::AddressLiteral => client.send(connect("127.0.0.1:443", Some(&page))).await,
        Refusal::LocalName => client.send(get("http://printer.local/", Some(&page))).await,
        Refusal::Port => client.send(connect("a.example.com:22", Some(&page))).await,
        Refusal::BadRequest => {
            let head = "GET http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\nTransfer-Encoding: chunked\r\n";
            client.send(format!("{head}{secret}\r\n")).await;
        }
        Refusal::HostNotAllowed => client.send(connect("a.example.org:443", Some(&page))).await,
        Refusal::Address(kind) => {
            let name = kind.as_str().replace('_', "-");
            client
                .send(connect(&format!("{name}.example.com:443"), Some(&page)))
                .await;
        }
        Refusal::NotTls => {
            client.send(connect("a.example.com:443", Some(&page))).await;
            client.send("GET / HTTP/1.1\r\n\r\n").await;
        }
        Refusal::SniMismatch => {
            client = home.connect(&page, "a.example.com:443").await.1;
            let hello = client.tls("b.example.com", crate::world::client::Trust::Any, &[]);
            assert!(hello.await.is_err());
            return page;
        }
        Refusal::HelloTimeout => client.send(connect("a.example.com:443", Some(&page))).await,
        Refusal::Withdrawn => {
            client = home.connect(&page, "w.example.com:80").await.1;
            home.allow.send_replace(allowlist(&["a.example.com"]));
        }
        Refusal::TooManyTunnels => {
            let mut open = Vec::new();
            for _ in 0..=TUNNELS_PER_CONTEXT {
                open.push(home.connect(&page, "a.example.com:80").await);
            }
        }
    }
    let word = refusal.as_str();
    let said = async {
        // What is refused later is not in the answer; the list of the page has it then.
        while !home
            .proxy
            .refusals(&page.user)
            .iter()
            .any(|host| host.reason == word)
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let within = std::time::Duration::from_secs(8);
    let said = tokio::time::timeout(within, said).await;
    said.unwrap_or_else(|_| panic!("never: {word}"));
    drop(client);
    page
}

/// All of them, the one that takes rules away last.
fn all() -> Vec<Refusal> {
    use Refusal as R;
    let mut all = vec![
        R::BadAuthority,
        R::AddressLiteral,
        R::LocalName,
        R::Port,
        R::BadRequest,
        R::HostNotAllowed,
        R::NotTls,
        R::SniMismatch,
        R::HelloTimeout,
        R::TooManyTunnels,
    ];
    all.extend(AddressKind::ALL.iter().map(|kind| R::Address(*kind)));
    all.push(R::Withdrawn);
    all
}

#[test]
fn every_refusal_is_told_with_its_word_and_its_fix() {
    at_home(|world| async move {
        let mut home = home(&world);
        let mut logged = BTreeSet::new();
        for refusal in all() {
            let page = provoke(&home, refusal).await;
            let word = refusal.as_str();
            let told = home.proxy.refusals(&page.user);
            let is_it = |host: &RefusedHost| host.reason == word && host.fix == refusal.fix();
            assert!(told.iter().any(is_it), "{told:?}");
            while let Ok(event) = home.events.try_recv() {
                if let Event::Stopped { reason, .. } = event {
                    logged.insert(reason.as_str());
                }
            }
            assert!(logged.contains(word), "{word} is not in the log");
        }
        let session = home.proxy.totals().refused_hosts;
        for refusal in all() {
            let is_it = |word: &str, fix: &str| word == refusal.as_str() && fix == refusal.fix();
            assert!(
                session.iter().any(|host| is_it(host.reason, host.fix)),
                "{refusal}"
            );
        }
    });
}
