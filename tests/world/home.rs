//! The owner's machine with a proxy on it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use gpu_browser::policy::address::OwnNetwork;
use gpu_browser::policy::allowlist::{Allowlist, Rule};
use gpu_browser::proxy::resolve::ResolverConfig;
use gpu_browser::proxy::uploads::UploadStore;
use gpu_browser::proxy::{Credential, Event, OwnAddresses, Proxy, ProxyConfig};
use tokio::sync::{mpsc, watch};

use super::client::Client;

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
