//! Why the boundary said no: one stable word a reason, and what the agent can do about it.
//!
//! The words are part of the product: they are in the log, in a page's `refused_hosts` and in `/info`, and they stay.

use super::address::AddressKind;

/// Policy said no. Something that broke on the way is a different type, the proxy's `Failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// The target is not one host name and one port in their plain spelling.
    BadAuthority,
    /// The target is an address, in whatever spelling.
    AddressLiteral,
    /// The name belongs to the local machine or network: one label, `localhost`, `.local`, `.internal`, …
    LocalName,
    /// A port that is neither 80 nor 443.
    Port,
    /// The request is not one that a browser sends to a proxy: its form, method, version or framing.
    BadRequest,
    /// No rule of the allowlist covers the host.
    HostNotAllowed,
    /// The host resolves to an address that must not be reached.
    Address(AddressKind),
    /// What came first on port 443 is no TLS ClientHello.
    NotTls,
    /// The ClientHello names no host, or another one than the tunnel.
    SniMismatch,
    /// No whole ClientHello came in time.
    HelloTimeout,
    /// The rule that let the host in was taken back.
    Withdrawn,
    /// The limit of open tunnels is reached.
    TooManyTunnels,
}

impl Refusal {
    /// The stable word of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadAuthority => "bad_authority",
            Self::AddressLiteral => "address_literal",
            Self::LocalName => "local_name",
            Self::Port => "port_not_allowed",
            Self::BadRequest => "bad_request",
            Self::HostNotAllowed => "host_not_allowed",
            Self::Address(kind) => kind.as_str(),
            Self::NotTls => "not_tls",
            Self::SniMismatch => "sni_mismatch",
            Self::HelloTimeout => "client_hello_timeout",
            Self::Withdrawn => "rule_withdrawn",
            Self::TooManyTunnels => "too_many_tunnels",
        }
    }

    /// What the agent can do next.
    pub fn fix(self) -> &'static str {
        match self {
            Self::BadAuthority => {
                "Write the URL with a plain host name and no user, brackets or percent signs."
            }
            Self::AddressLiteral => {
                "Addresses are never reached, in any spelling. Use a public host name, or upload the file."
            }
            Self::LocalName => {
                "Names of the owner's machine and network are never reached. Upload the file with POST /files instead."
            }
            Self::Port => "Only ports 80 and 443 are reached. Serve it there, or upload the file.",
            Self::BadRequest => "Send an ordinary http or https request from the page.",
            Self::HostNotAllowed | Self::Withdrawn => {
                "Upload the file with POST /files and use its URL. Only the owner can add the host: ask with POST /request."
            }
            Self::Address(_) => {
                "The name leads to an address that is not public. Use a public host, or upload the file with POST /files."
            }
            Self::NotTls => "Port 443 carries TLS only. Use an https or wss URL.",
            Self::SniMismatch => {
                "Use the host's own name in the URL; one host cannot be reached in the name of another."
            }
            Self::HelloTimeout => "The connection said nothing. Try again.",
            Self::TooManyTunnels => {
                "Close pages or connections that are not needed, then try again."
            }
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// One of each, so that a new reason is looked at here.
    pub(crate) fn all() -> Vec<Refusal> {
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
            R::Withdrawn,
            R::TooManyTunnels,
        ];
        all.extend(AddressKind::ALL.iter().map(|kind| R::Address(*kind)));
        all
    }

    #[test]
    fn every_reason_has_its_own_stable_word_and_a_fix() {
        let words: BTreeSet<&str> = all().into_iter().map(Refusal::as_str).collect();
        assert_eq!(words.len(), all().len());
        for refusal in all() {
            let word = refusal.as_str();
            assert!(
                word.bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit()),
                "{word}"
            );
            assert!(refusal.fix().ends_with('.'), "{word}");
        }
    }
}
