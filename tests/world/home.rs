//! The owner's machine with a proxy on it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use gpu_browser::policy::address::OwnNetwork;
use gpu_browser::policy::allowlist::{Allowlist, Rule};
use gpu_browser::proxy::resolve::ResolverConfig;
use gpu_browser::proxy::uploads::UploadStore;
use gpu_browser::proxy::{Credential, Event, OwnAddresses, Proxy, ProxyConfig};
use tokio::sync::{mpsc, watch};

use super::client::Client;
use super::names::{self, Asked, Says};
use super::net::World;

/// The name server of the world's internet.
pub const NAME_SERVER: &str = "9.9.9.9:53";
/// An address of the world's internet for sites.
pub const SITE: &str = "93.184.215.14";

/// A proxy that serves a loopback socket, with all its ends in the hands of the test.
pub struct Home {
    pub proxy: Proxy,
    pub at: SocketAddr,
    pub allow: watch::Sender<Arc<Allowlist>>,
    pub uploads: Arc<UploadStore>,
    pub events: mpsc::Receiver<Event>,
}

pub fn allowlist(rules: &[&str]) -> Arc<Allowlist> {
    Arc::new(Allowlist::new(
        rules.iter().map(|rule| Rule::parse(rule).unwrap()),
    ))
}

impl Home {
    /// A proxy that asks these name servers and takes only what is on no own network.
    pub fn new(rules: &[&str], name_servers: &[SocketAddr]) -> Self {
        Self::with_own_addresses(rules, name_servers, Arc::new(|| Ok(OwnNetwork::default())))
    }

    /// The same, with a scripted name server in the world's internet, and the list of what that is asked.
    pub fn in_world(
        world: &World,
        rules: &[&str],
        script: impl Fn(&str, usize) -> Says + Send + Sync + 'static,
    ) -> (Self, Asked) {
        let name_server: SocketAddr = NAME_SERVER.parse().unwrap();
        world.holds(name_server);
        let asked = names::serve(&world.internet, name_server, script);
        (Self::new(rules, &[name_server]), asked)
    }

    pub fn with_own_addresses(
        rules: &[&str],
        name_servers: &[SocketAddr],
        own_addresses: OwnAddresses,
    ) -> Self {
        let (allow, allowed) = watch::channel(allowlist(rules));
        let (sender, events) = mpsc::channel(4_096);
        let uploads = Arc::new(UploadStore::new());
        let proxy = Proxy::new(ProxyConfig {
            allow: allowed,
            uploads: uploads.clone(),
            own_addresses,
            resolver: ResolverConfig::NameServers(name_servers.to_vec()),
            events: sender,
        })
        .unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        proxy.adopt(socket).unwrap();
        Self {
            proxy,
            at,
            allow,
            uploads,
            events,
        }
    }

    /// A connection to the proxy.
    pub async fn client(&self) -> Client {
        Client::to(self.at).await
    }

    /// The answer to a CONNECT of a fresh connection, with the connection.
    pub async fn connect(&self, credential: &Credential, target: &str) -> (u16, Client) {
        let mut client = self.client().await;
        client
            .send(&super::client::connect(target, Some(credential)))
            .await;
        let status = client.head().await.status;
        (status, client)
    }
}

/// Waits until something is so; there is no event for what another side does.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let looking = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), looking)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}
