//! Limits: a full house is told so with 503, at once, and a place is free again when its tunnel ends.

use gpu_browser::policy::limits::{TUNNELS, TUNNELS_PER_CONTEXT};
use gpu_browser::proxy::Credential;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::world::client::Client;
use crate::world::home::{Home, SITE, eventually};
use crate::world::names::addresses;
use crate::world::net::at_home;
use crate::world::sites;

async fn fill(home: &Home, context: &Credential, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let (status, client) = home.connect(context, "a.example.com:80").await;
        assert_eq!(status, 200);
        clients.push(client);
    }
    clients
}

#[test]
fn tunnels_are_limited_for_a_context_and_for_all() {
    // Four sockets a tunnel are in this process: the test's, two of the proxy, the site's.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most.min(65_536), most).unwrap();
    at_home(|world| async move {
        let (home, _) = Home::in_world(&world, &["a.example.com"], |_, _| addresses(&[SITE]));
        sites::echo(&world, &format!("{SITE}:80"));
        let full = home.proxy.issue();
        let mut clients = fill(&home, &full, TUNNELS_PER_CONTEXT).await;
        assert_eq!(home.connect(&full, "a.example.com:80").await.0, 503);
        assert_eq!(
            home.proxy.refusals(&full.user)[0].reason,
            "too_many_tunnels"
        );
        drop(clients.pop());
        eventually("a place is free", || {
            home.proxy.totals().tunnels == TUNNELS_PER_CONTEXT - 1
        })
        .await;
        clients.extend(fill(&home, &full, 1).await);
        for _ in 1..TUNNELS / TUNNELS_PER_CONTEXT {
            clients.extend(fill(&home, &home.proxy.issue(), TUNNELS_PER_CONTEXT).await);
        }
        assert_eq!(home.proxy.totals().tunnels, TUNNELS);
        let late = home.proxy.issue();
        assert_eq!(home.connect(&late, "a.example.com:80").await.0, 503);
        drop(clients);
        eventually("all places are free", || home.proxy.totals().tunnels == 0).await;
        assert_eq!(home.connect(&late, "a.example.com:80").await.0, 200);
    });
}
