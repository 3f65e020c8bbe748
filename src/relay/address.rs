//! Where a relay is: read once from what the owner wrote, then only used.

use std::fmt;
use std::net::SocketAddr;

use url::{Host, Url};

/// Why a text is no relay's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address with a scheme and a host.
    #[error("{0:?} is no relay's address; write it as https://relay.example")]
    Malformed(String),
    /// Another scheme than http, https, ws and wss.
    #[error("a relay is reached over https, not {0}")]
    Scheme(String),
    /// A user, a query or a fragment, which would be lost.
    #[error("a relay's address has no {0}; leave it out")]
    Surplus(&'static str),
    /// Tokens would travel in the clear.
    #[error("{0} is not this machine, and http would send links in the clear; use https")]
    PlainHttp(String),
}

/// Where `http` is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// To this machine only.
    LoopbackOnly,
    /// Anywhere: somebody asked for it by name.
    Anywhere,
}

/// The address of a relay: scheme, host, port and a prefix of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayAddress {
    tls: bool,
    host: Host<String>,
    port: u16,
    /// Empty, or `/x/y` without a slash at the end.
    prefix: String,
}

impl RelayAddress {
    /// Reads `http(s)://host[:port][/prefix]`; `ws(s)` means the same.
    ///
    /// # Errors
    /// Where the text is something else, or plain http beyond what `plain` allows.
    pub fn parse(text: &str, plain: PlainHttp) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed(text.to_owned());
        let url = Url::parse(text.trim()).map_err(|_| malformed())?;
        let tls = match url.scheme() {
            "https" | "wss" => true,
            "http" | "ws" => false,
            other => return Err(AddressError::Scheme(other.to_owned())),
        };
        refuse_surplus(&url)?;
        let host = url.host().ok_or_else(malformed)?.to_owned();
        if !tls && plain == PlainHttp::LoopbackOnly && !is_loopback(&host) {
            return Err(AddressError::PlainHttp(host.to_string()));
        }
        Ok(Self {
            tls,
            port: url.port_or_known_default().ok_or_else(malformed)?,
            host,
            prefix: url.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The address of a relay that listens here, over plain http.
    #[must_use]
    pub fn local(listening: SocketAddr) -> Self {
        let host = match listening {
            SocketAddr::V4(address) => Host::Ipv4(*address.ip()),
            SocketAddr::V6(address) => Host::Ipv6(*address.ip()),
        };
        Self {
            tls: false,
            host,
            port: listening.port(),
            prefix: String::new(),
        }
    }

    /// Whether the way there is TLS.
    #[must_use]
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// The host, as a certificate names it.
    #[must_use]
    pub fn host(&self) -> &Host<String> {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The link to hand to an agent.
    #[must_use]
    pub fn link(&self, token: &str) -> String {
        format!("{self}/v1/t/{token}/agents.md")
    }

    /// The WebSocket to register on, or to resume `session` on.
    pub(super) fn socket(&self, session: Option<&str>) -> String {
        let scheme = if self.tls { "wss" } else { "ws" };
        let path = format!("{scheme}://{}{}/v1/_ws", self.authority(), self.prefix);
        match session {
            Some(session) => format!("{path}?session={session}"),
            None => path,
        }
    }

    fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for RelayAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

fn refuse_surplus(url: &Url) -> Result<(), AddressError> {
    let surplus = if !url.username().is_empty() || url.password().is_some() {
        "user or password"
    } else if url.query().is_some() {
        "query"
    } else if url.fragment().is_some() {
        "fragment"
    } else {
        return Ok(());
    };
    Err(AddressError::Surplus(surplus))
}

/// Names under `localhost` are this machine's by RFC 6761.
pub(super) fn is_loopback(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_once_and_written_as_a_base() {
        for (text, base, socket) in [
            (
                "https://agentsocket.dev",
                "https://agentsocket.dev",
                "wss://agentsocket.dev/v1/_ws",
            ),
            (
                "wss://agentsocket.dev/",
                "https://agentsocket.dev",
                "wss://agentsocket.dev/v1/_ws",
            ),
            (
                "https://r.example:8443/a/b/",
                "https://r.example:8443/a/b",
                "wss://r.example:8443/a/b/v1/_ws",
            ),
            (
                "HTTPS://R.Example:443",
                "https://r.example",
                "wss://r.example/v1/_ws",
            ),
            (
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080",
                "ws://127.0.0.1:8080/v1/_ws",
            ),
            ("ws://[::1]:9", "http://[::1]:9", "ws://[::1]:9/v1/_ws"),
            (
                "http://x.localhost",
                "http://x.localhost",
                "ws://x.localhost/v1/_ws",
            ),
        ] {
            let address = RelayAddress::parse(text, PlainHttp::LoopbackOnly).unwrap();
            assert_eq!(address.to_string(), base, "{text}");
            assert_eq!(address.socket(None), socket, "{text}");
        }
    }

    #[test]
    fn links_and_resuming_sockets_carry_the_prefix() {
        let address = RelayAddress::parse("https://r.example/x", PlainHttp::LoopbackOnly).unwrap();
        assert_eq!(
            address.link("as_T"),
            "https://r.example/x/v1/t/as_T/agents.md"
        );
        assert_eq!(
            address.socket(Some("ABC")),
            "wss://r.example/x/v1/_ws?session=ABC"
        );
    }

    #[test]
    fn what_is_no_address_is_refused_with_its_reason() {
        for (text, expected) in [
            (
                "agentsocket.dev",
                AddressError::Malformed("agentsocket.dev".into()),
            ),
            ("ftp://x", AddressError::Scheme("ftp".into())),
            ("https://u:p@x", AddressError::Surplus("user or password")),
            ("https://x/?a", AddressError::Surplus("query")),
            ("https://x/#a", AddressError::Surplus("fragment")),
            (
                "http://x.example",
                AddressError::PlainHttp("x.example".into()),
            ),
        ] {
            assert_eq!(
                RelayAddress::parse(text, PlainHttp::LoopbackOnly),
                Err(expected),
                "{text}"
            );
        }
        assert!(RelayAddress::parse("http://x.example", PlainHttp::Anywhere).is_ok());
    }
}
