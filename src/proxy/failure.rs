//! What broke on the way to a host that policy let through, and the two ways a request can stop.

use crate::policy::refusal::Refusal;

/// Something broke; asking again may help. Policy saying no is a [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Failure {
    /// The name does not exist, or has no address.
    #[error("the host name has no address")]
    NameNotFound,
    /// No name server gave an answer in time.
    #[error("the name servers did not answer")]
    NameServer,
    /// The name has only NAT64 addresses, which are left out.
    #[error("the host has only translated addresses")]
    OnlyTranslated,
    /// The machine's own addresses are not known, so none can be judged.
    #[error("the machine's own addresses could not be read")]
    OwnAddresses,
    /// No address took the connection.
    #[error("the host took no connection")]
    Connect,
    /// The host broke off, or did not speak HTTP.
    #[error("the host gave no valid answer")]
    Upstream,
}

impl Failure {
    /// The stable word of the failure.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NameNotFound => "name_not_found",
            Self::NameServer => "name_server_failed",
            Self::OnlyTranslated => "only_translated_addresses",
            Self::OwnAddresses => "own_addresses_unknown",
            Self::Connect => "connect_failed",
            Self::Upstream => "upstream_failed",
        }
    }

    /// What the agent can do next.
    pub fn fix(self) -> &'static str {
        match self {
            Self::NameNotFound => "Check the spelling of the host name.",
            Self::OnlyTranslated => {
                "The owner's network reaches this host only by translation. Use another host, or upload the file."
            }
            Self::NameServer | Self::OwnAddresses | Self::Connect | Self::Upstream => {
                "Try again later, or upload the file with POST /files."
            }
        }
    }
}

/// Why a request did not get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stop {
    /// Policy said no.
    Refused(Refusal),
    /// Something broke.
    Failed(Failure),
}

impl Stop {
    /// The stable word of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.as_str(),
            Self::Failed(failure) => failure.as_str(),
        }
    }

    /// What the agent can do next.
    pub fn fix(self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.fix(),
            Self::Failed(failure) => failure.fix(),
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
