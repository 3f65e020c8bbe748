//! What an embedded relay is told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::policy::limits;

/// How an embedded relay listens, and the time limits that may be other than the protocol's.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// A call without a reply is answered with 504 after this.
    pub tool_timeout: Duration,
    /// An app that is silent for this long is closed and its session held.
    pub liveness: Duration,
    /// A session whose app is away is kept this long.
    pub hold: Duration,
    /// The first frame on a socket must come within this.
    pub first_frame: Duration,
    /// A certificate and its key, for a relay that others reach.
    pub tls: Option<TlsFiles>,
    /// Plain http beyond loopback, because somebody else ends TLS in front of it.
    pub insecure: bool,
    /// Host names that this relay is reached under, beside its own address and this machine's loopback names.
    pub names: Vec<String>,
}

/// PEM files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, and those between it and its root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl RelayConfig {
    /// The protocol's own limits, at `listen`.
    #[must_use]
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            tool_timeout: limits::TOOL_TIMEOUT,
            liveness: limits::LIVENESS,
            hold: limits::HOLD,
            first_frame: limits::FIRST_FRAME,
            tls: None,
            insecure: false,
            names: Vec::new(),
        }
    }

    /// On this machine only, at a free port.
    #[must_use]
    pub fn local() -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }
}

/// A text that is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no length of time; write 500ms, 30s, 5m or 24h")]
pub struct DurationError(String);

/// Reads `500ms`, `30s`, `5m`, `24h`: a whole number above zero and a unit.
///
/// # Errors
/// Where the text is something else.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let milliseconds = match &text[digits.len()..] {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    };
    // A longer hold than this would leave the range of the clock.
    const MOST: u64 = 10 * 365 * 24 * 3_600_000;
    let in_range = milliseconds.filter(|milliseconds| (1..=MOST).contains(milliseconds));
    in_range.map(Duration::from_millis).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_a_number_and_a_unit() {
        for (text, seconds) in [
            ("500ms", 0.5),
            ("30s", 30.0),
            ("5m", 300.0),
            ("24h", 86_400.0),
        ] {
            assert_eq!(
                parse_duration(text).unwrap().as_secs_f64(),
                seconds,
                "{text}"
            );
        }
        for wrong in [
            "",
            "30",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "1d",
            "30 s",
            "1sm",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
