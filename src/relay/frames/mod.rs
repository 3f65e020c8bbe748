//! The frames of the protocol, as types.
//!
//! A WebSocket between app and relay carries JSON objects with a `type`; a request carries an `id` that its reply repeats.
//! `app` has what an app sends, `relay` what a relay sends, each with its writer and its reader side by side, so that
//! the two ends cannot drift apart.

pub(super) mod app;
pub(super) mod body;
pub(super) mod relay;

use tokio_tungstenite::tungstenite::Utf8Bytes;

pub use body::{Body, TaskAnswer};

use super::units::units;
use crate::policy::limits;

/// The heartbeat, byte for byte.
pub(super) const HEARTBEAT: &str = r#"{"type":"ping","id":"as_hb"}"#;
/// The answer to it.
pub(super) const HEARTBEAT_ANSWER: &str = r#"{"type":"pong","id":"as_hb"}"#;

/// A frame from the app that has been measured and fits. Nothing else can be sent to a relay: one character more would
/// end the whole session with all its links.
#[derive(Debug, Clone)]
pub struct Frame(Utf8Bytes);

/// A frame over the limit, which is never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {units} characters is over the relay's {most}", most = limits::FRAME_UNITS)]
pub struct TooLarge {
    /// What it measured, in UTF-16 units.
    pub units: usize,
}

impl Frame {
    pub(super) fn measured(text: String) -> Result<Self, TooLarge> {
        match units(&text) {
            units if units > limits::FRAME_UNITS => Err(TooLarge { units }),
            _ => Ok(Self(text.into())),
        }
    }

    pub(super) fn heartbeat() -> Self {
        Self(Utf8Bytes::from_static(HEARTBEAT))
    }

    pub(super) fn into_text(self) -> Utf8Bytes {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_passes_to_the_last_unit_and_not_beyond() {
        for (character, width) in [("a", 1), ("ä", 1), ("😀", 2)] {
            let most = character.repeat(limits::FRAME_UNITS / width);
            assert!(Frame::measured(most.clone()).is_ok());
            let over = Frame::measured(most + "a").unwrap_err();
            assert_eq!(over.units, limits::FRAME_UNITS + 1);
        }
    }

    proptest! {
        #[test]
        fn what_is_measured_is_what_is_sent(label in any::<String>(), token in any::<String>()) {
            for frame in [app::mint("1", &label).unwrap(), app::revoke("2", &token).unwrap()] {
                let sent = frame.into_text();
                prop_assert_eq!(units(&sent), sent.encode_utf16().count());
                prop_assert!(serde_json::from_str::<serde_json::Value>(&sent).is_ok());
            }
        }
    }
}
