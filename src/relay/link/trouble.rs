//! What can keep a link from its relay, in the owner's words, with what to try.

use std::time::Duration;

/// Why the link is away. Each is tried again; only an [`Ending`] is final.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// No address for the name, nothing listens, or no way there.
    #[error("the relay {relay} cannot be reached: {cause}")]
    Unreachable {
        /// The address that was tried.
        relay: String,
        /// What the system says.
        cause: String,
    },
    /// Somebody else's certificate, an expired one, or one from an unknown root.
    #[error("the relay {relay} has a bad certificate: {cause}")]
    BadCertificate {
        /// The address that was tried.
        relay: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Something answers, but not as a relay.
    #[error("{relay} does not speak the relay protocol: {cause}")]
    NotARelay {
        /// The address that was tried.
        relay: String,
        /// What it did in its place.
        cause: String,
    },
    /// A web server that has no relay at this path.
    #[error("there is no relay at {relay}: the server says 404")]
    WrongPath {
        /// The address that was tried.
        relay: String,
    },
    /// Connected, and hung up on before the WebSocket was there: a relay that restarts does so, and so does a server that
    /// waits for another protocol.
    #[error("{relay} hung up before it answered: {cause}")]
    HungUp {
        /// The address that was tried.
        relay: String,
        /// What the connection said.
        cause: String,
    },
    /// Too many connections from this address.
    #[error("the relay takes no more connections from here for a while")]
    RateLimited,
    /// Connected, but the registration was not answered.
    #[error("the relay did not answer the registration in {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// The relay refused for now.
    #[error("the relay is not ready: {code} {message}")]
    NotReady {
        /// The relay's code.
        code: String,
        /// Its words.
        message: String,
    },
    /// The relay closed the connection.
    #[error("the relay closed the connection ({code} {reason})")]
    Closed {
        /// The close code; 1005 where there was none.
        code: u16,
        /// The relay's words.
        reason: String,
    },
    /// The connection broke.
    #[error("the connection to the relay broke: {0}")]
    Cut(String),
    /// Nothing came for this long, not even the answer to a heartbeat.
    #[error("nothing came from the relay for {} s", .0.as_secs())]
    Silent(Duration),
    /// The relay sent a frame that is larger than any call.
    #[error("the relay sent a frame that is too large")]
    FrameTooLarge,
}

impl Trouble {
    /// Whether it may pass by itself. What cannot was proven by an answer: somebody else is there, and stays there until
    /// the address is another one. A link that was up before tries again in either case, since its relay may be back.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::HungUp { .. }
            | Self::RateLimited
            | Self::NoAnswer(_)
            | Self::NotReady { .. }
            | Self::Closed { .. }
            | Self::Cut(_)
            | Self::Silent(_) => true,
            Self::BadCertificate { .. }
            | Self::NotARelay { .. }
            | Self::WrongPath { .. }
            | Self::FrameTooLarge => false,
        }
    }

    /// What the owner can try. The link goes on trying by itself.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => {
                "check the address, the network, and any firewall or VPN between here and there"
            }
            Self::BadCertificate { .. } => {
                "check this machine's clock and the relay's name; behind a company proxy, add its root certificate to the system's"
            }
            Self::NotARelay { .. } => {
                "check the address: scheme (https or http), host and port must be those of a relay"
            }
            Self::HungUp { .. } => {
                "wait; if it goes on, check scheme (https or http), host and port of the address"
            }
            Self::WrongPath { .. } => "check the path behind the host; most relays have none",
            Self::RateLimited => {
                "wait; if it goes on, look for other programs here that connect to the same relay"
            }
            Self::NoAnswer(_) | Self::NotReady { .. } => {
                "wait; if it goes on, try another relay with --relay"
            }
            Self::Closed { .. } | Self::Cut(_) | Self::Silent(_) => {
                "wait; links keep working when the connection is back"
            }
            Self::FrameTooLarge => "this relay is broken; try another one with --relay",
        }
    }
}

/// Why a link ended for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// We closed it.
    #[error("the link was closed")]
    Closed,
    /// Somebody with the session's secret resumed it elsewhere.
    #[error("another program took this session over")]
    TakenOver,
    /// The relay does not take our registration, and never will.
    #[error("the relay refused the registration: {code} {message}")]
    Refused {
        /// The relay's code.
        code: String,
        /// Its words.
        message: String,
    },
}

impl Ending {
    /// What the owner can try.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Closed => "start again for new links",
            Self::TakenOver => {
                "stop the other program, or start this one again for links of its own"
            }
            Self::Refused { .. } => "update gpu-browser, or try another relay with --relay",
        }
    }
}
