//! What `gpu-browser relay` takes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::relay::embedded::{RelayConfig, TlsFiles, parse_duration};

/// `gpu-browser relay`.
#[derive(Debug, Args)]
pub struct Relay {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8787", value_parser = listen_at)]
    pub listen: SocketAddr,
    /// A call without a reply is answered after this
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub tool_timeout: Option<Duration>,
    /// An app that is silent for this long is closed and its session held
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub liveness: Option<Duration>,
    /// A session whose app is away is kept this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub hold: Option<Duration>,
    /// A certificate (PEM), for a relay that others reach
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Plain http beyond this machine, where something in front of it ends TLS
    #[arg(long)]
    pub insecure: bool,
    /// A host name that it is reached under; repeatable
    #[arg(long, value_name = "HOST", value_parser = own_name)]
    pub name: Vec<String>,
}

impl Relay {
    /// How the relay runs; the protocol's own limits where nothing else is said.
    pub fn config(self) -> RelayConfig {
        let usual = RelayConfig::at(self.listen);
        let files = self.tls_cert.zip(self.tls_key);
        RelayConfig {
            tool_timeout: self.tool_timeout.unwrap_or(usual.tool_timeout),
            liveness: self.liveness.unwrap_or(usual.liveness),
            hold: self.hold.unwrap_or(usual.hold),
            tls: files.map(|(certificate, key)| TlsFiles { certificate, key }),
            insecure: self.insecure,
            names: self.name,
            ..usual
        }
    }
}

fn listen_at(text: &str) -> Result<SocketAddr, &'static str> {
    let wrong = "write an address and a port, as in 127.0.0.1:8787 or [::1]:8787";
    text.parse().map_err(|_| wrong)
}

/// A `Host` header is compared with it, which carries neither scheme nor path.
fn own_name(text: &str) -> Result<String, &'static str> {
    match url::Host::parse(text) {
        Ok(url::Host::Domain(name)) => Ok(name),
        _ => Err("write a host name alone, as in relay.example"),
    }
}
