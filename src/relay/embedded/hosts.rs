//! Which `Host` a request may name.
//!
//! A web page can make its own name point at this machine (DNS rebinding), and its requests are then same-origin to a
//! browser; but they still carry the page's name. An address in the `Host` header cannot be rebound, and a certificate
//! binds a name already, so that only plain http under a name needs the check.

use std::net::IpAddr;

use url::Host;

use crate::relay::address::is_loopback;

/// The names and addresses that a relay answers to.
pub(super) struct Hosts {
    /// The address that it listens at.
    own: IpAddr,
    /// Lower-case names that it was given.
    names: Vec<String>,
    /// Whether a certificate already proves the name.
    tls: bool,
}

impl Hosts {
    pub(super) fn new(own: IpAddr, names: &[String], tls: bool) -> Self {
        Self {
            own,
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            tls,
        }
    }

    /// Judges a request's host, port or not. The port is not looked at: a forwarded one differs, and proves nothing.
    pub(super) fn allows(&self, host: Option<&str>) -> bool {
        if self.tls {
            return true;
        }
        let parsed = host
            .map(without_port)
            .and_then(|host| Host::parse(host).ok());
        match parsed {
            None => false,
            Some(Host::Ipv4(address)) => self.is_own(address.into()),
            Some(Host::Ipv6(address)) => self.is_own(address.into()),
            Some(Host::Domain(name)) => {
                is_loopback(&Host::Domain(name.clone())) || self.names.contains(&name)
            }
        }
    }

    /// Where it listens at every address of the machine, any address is its own.
    fn is_own(&self, address: IpAddr) -> bool {
        address == self.own || address.is_loopback() || self.own.is_unspecified()
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(own: &str, names: &[&str], tls: bool) -> Hosts {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Hosts::new(own.parse().unwrap(), &names, tls)
    }

    #[test]
    fn only_its_own_names_and_addresses_are_answered() {
        let local = hosts("127.0.0.1", &["Relay.example"], false);
        for own in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:5",
            "LOCALHOST",
            "a.localhost",
            "[::1]:9",
            "[::1]",
            "relay.example:443",
        ] {
            assert!(local.allows(Some(own)), "{own}");
        }
        for foreign in [
            "evil.example",
            "127.0.0.1.evil.example:80",
            "localhost.evil.example",
            "192.0.2.1",
            "",
            "::1",
            "a b",
        ] {
            assert!(!local.allows(Some(foreign)), "{foreign}");
        }
        assert!(!local.allows(None));
    }

    #[test]
    fn an_open_relay_answers_to_addresses_and_one_with_a_certificate_to_all() {
        let open = hosts("0.0.0.0", &[], false);
        assert!(open.allows(Some("192.0.2.1:8080")) && !open.allows(Some("evil.example")));
        assert!(hosts("192.0.2.1", &[], true).allows(Some("relay.example")));
    }
}
