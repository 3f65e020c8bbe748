//! Host names as the gate takes them: a name, never an address in any spelling.
//!
//! ```text
//! authority  = name ":" ( "443" / "80" )        the raw text, exactly; no user, brackets, percent signs
//! name       = label *( "." label ) [ "." ]     1..=253 bytes without the one trailing dot, two labels at least
//! label      = 1..=63 of a-z 0-9 "_" "-"        (upper case is lowered), no "-" at either end
//! last label : not all digits and not "0x…"     such a name is an IPv4 address to a browser
//! ```
//!
//! Names of the local machine and network are refused whoever asks: a resolver may answer them from anywhere.

use std::borrow::Borrow;

use super::limits::{HOST, HOST_LABEL};
use super::refusal::Refusal;

/// Endings that never name a public host.
const LOCAL_ENDINGS: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "home.arpa",
    "lan",
    "home",
    "corp",
    "test",
    "invalid",
    "onion",
    "arpa",
];

/// A host name in its one wire spelling: lower case, no trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(String);

impl Host {
    /// Parses a name; an address in any spelling and a local name are refused.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.contains(['[', ']']) {
            return Err(Refusal::AddressLiteral);
        }
        let name = spell(text)?;
        let mut labels = name.rsplit('.');
        let last = labels.next().unwrap_or_default();
        if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") {
            return Err(Refusal::AddressLiteral);
        }
        if labels.next().is_none() || LOCAL_ENDINGS.iter().any(|ending| ends_with(&name, ending)) {
            return Err(Refusal::LocalName);
        }
        Ok(Self(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name and each shorter one that it is a subdomain of, the nearest first.
    pub(super) fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').map(|(dot, _)| &self.0[dot + 1..])
    }
}

impl Borrow<str> for Host {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower case and no trailing dot, where all labels are well formed; names of our own go through here as well.
pub fn spell(text: &str) -> Result<String, Refusal> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.is_empty() || name.len() > HOST || !name.split('.').all(is_label) {
        return Err(Refusal::BadAuthority);
    }
    Ok(name)
}

fn is_label(label: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=HOST_LABEL).contains(&label.len())
        && label.bytes().all(plain)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn ends_with(name: &str, ending: &str) -> bool {
    name.strip_suffix(ending)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The two ports that are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Port {
    /// 80: plain http, and `ws://` through a tunnel.
    Http,
    /// 443: TLS and nothing else.
    Https,
}

impl Port {
    /// The number.
    pub fn number(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// Splits the raw text of an authority into the text of its host and its port, which must be there and be spelled
    /// exactly `:443` or `:80`: `:0443`, `:+443` and `:65979` are other ports, whatever a parser makes of them.
    pub fn split(authority: &str) -> Result<(&str, Self), Refusal> {
        if authority.contains(['@', '%', '/', '\\', '?', '#']) || !authority.is_ascii() {
            return Err(Refusal::BadAuthority);
        }
        if let Some(host) = authority.strip_suffix(":443") {
            Ok((host, Self::Https))
        } else if let Some(host) = authority.strip_suffix(":80") {
            Ok((host, Self::Http))
        } else if authority.contains(['[', ']']) {
            Err(Refusal::AddressLiteral)
        } else {
            Err(wrong_port(authority))
        }
    }
}

/// An address with a wrong port is told as an address, which no other port would help.
fn wrong_port(authority: &str) -> Refusal {
    match authority.split_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => match Host::parse(host) {
            Ok(_) => Refusal::Port,
            Err(refusal) => refusal,
        },
        _ => Refusal::BadAuthority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_is_no_name_in_any_spelling() {
        for text in [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0x7f000001",
            "0x7f.0x0.0x0.0x1",
            "2130706433",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.0x1",
            "0",
            "0.0.0.0",
            "1.2.3.",
            "foo.1",
            "foo.0x",
            "foo.0x1.",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[a.com]",
            "[fe80::1%25lo]",
        ] {
            assert_eq!(Host::parse(text), Err(Refusal::AddressLiteral), "{text}");
        }
        for twin in ["127.0.0.1.nip.io", "0x7f.1.example", "1.2.3.x1", "a0x.a0x"] {
            assert!(Host::parse(twin).is_ok(), "{twin}");
        }
    }

    #[test]
    fn a_name_of_the_local_network_is_refused_whoever_asks() {
        for text in [
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "nas",
            "printer.local",
            "metadata.google.internal",
            "router.lan",
            "router.home.arpa",
            "a.test",
            "a.invalid",
            "a.onion",
            "1.0.0.127.in-addr.arpa",
            "internal",
            "wpad",
        ] {
            assert_eq!(Host::parse(text), Err(Refusal::LocalName), "{text}");
        }
        for twin in [
            "localhost.example",
            "notlocal.com",
            "local.example",
            "mytest.dev",
            "xlocalhost.io",
        ] {
            assert!(Host::parse(twin).is_ok(), "{twin}");
        }
    }

    #[test]
    fn a_malformed_name_is_refused() {
        let long_label = format!("{}.example", "a".repeat(64));
        let long_name = format!("{}example", "abc.".repeat(62));
        for text in [
            "",
            ".",
            "..",
            "a..example",
            "a.example..",
            ".a.example",
            "-a.example",
            "a-.example",
            "a b.example",
            "a.example\0",
            "bücher.example",
            "a%2eexample",
            "１２７.0.0.1",
            "127。0。0。1",
            "::1",
            &long_label,
            &long_name,
        ] {
            assert_eq!(Host::parse(text), Err(Refusal::BadAuthority), "{text:?}");
        }
        let label = format!("{}.example", "a".repeat(63));
        for twin in [
            "a.example",
            "A.Example.",
            "a_b.example",
            "xn--bcher-kva.example",
            "a--b.example",
            &label,
        ] {
            assert!(Host::parse(twin).is_ok(), "{twin:?}");
        }
        assert_eq!(Host::parse("A.Example.").unwrap().as_str(), "a.example");
    }

    #[test]
    fn only_the_exact_text_of_the_two_ports_is_a_port() {
        assert_eq!(Port::split("a.example:443"), Ok(("a.example", Port::Https)));
        assert_eq!(Port::split("a.example:80"), Ok(("a.example", Port::Http)));
        for (text, refusal) in [
            ("a.example:0443", Refusal::Port),
            ("a.example:+443", Refusal::Port),
            ("a.example:65979", Refusal::BadAuthority),
            ("a.example:22", Refusal::Port),
            ("a.example:", Refusal::BadAuthority),
            ("a.example", Refusal::BadAuthority),
            ("good@evil.example:443", Refusal::BadAuthority),
            ("a%2eexample:443", Refusal::BadAuthority),
            ("127.0.0.1:9001", Refusal::AddressLiteral),
            ("localhost:9001", Refusal::LocalName),
            ("[::1]:9001", Refusal::AddressLiteral),
        ] {
            assert_eq!(Port::split(text), Err(refusal), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_what_it_takes_is_in_its_wire_spelling(text in "\\PC{0,80}|[-a-z0-9_.A-Z\\[\\]:]{0,300}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(&Host::parse(host.as_str()).unwrap(), &host);
                prop_assert!(host.as_str().parse::<std::net::IpAddr>().is_err());
                let url = url::Url::parse(&format!("http://{host}/")).unwrap();
                prop_assert!(matches!(url.host(), Some(url::Host::Domain(_))));
            }
            let _ = Port::split(&text);
        }
    }
}
