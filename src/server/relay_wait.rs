//! The wait for the relay when a session begins.

use std::time::SystemTime;

use tokio::sync::mpsc;
use tokio::time::timeout_at;

use super::StartError;
use super::event::{Event, RelayState};
use super::herald::Herald;
use crate::relay::link::LinkEvent;

/// Waits for the relay. What may pass is waited out, as long as the session may last, and each reason is told when it is
/// new; what cannot is an error at once.
pub(super) async fn until_up(
    calls: &mut mpsc::Receiver<LinkEvent>,
    end: SystemTime,
    herald: &Herald,
) -> Result<(), StartError> {
    let failed = |reason: String, fix: &str| StartError::Link {
        reason,
        fix: fix.to_owned(),
    };
    let left = end.duration_since(SystemTime::now()).unwrap_or_default();
    let over = tokio::time::Instant::now() + left;
    let mut told = None;
    loop {
        match timeout_at(over, calls.recv()).await {
            Ok(Some(LinkEvent::Up { .. })) => return Ok(()),
            Ok(Some(LinkEvent::Away { reason, .. })) if reason.may_pass() => {
                if told.as_ref() != Some(&reason) {
                    let why = format!("{reason}; trying again. {}", reason.fix());
                    told = Some(reason);
                    herald.tell(Event::Relay {
                        state: RelayState::Away,
                        reason: Some(why),
                    });
                }
            }
            Ok(Some(LinkEvent::Away { reason, .. })) => {
                return Err(failed(reason.to_string(), reason.fix()));
            }
            Ok(Some(LinkEvent::Ended(ending))) => {
                return Err(failed(ending.to_string(), ending.fix()));
            }
            Ok(Some(LinkEvent::Call(_) | LinkEvent::Replaced { .. })) => {}
            Ok(None) => return Err(failed("the link ended".to_owned(), "Try again.")),
            Err(_) => {
                let why = told.map_or_else(|| "no answer".to_owned(), |told| told.to_string());
                return Err(failed(
                    format!("the session's time is over: {why}"),
                    "Try again.",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::limits::OWNER_EVENTS;
    use crate::relay::link::{Ending, Trouble};

    fn away(reason: Trouble) -> LinkEvent {
        LinkEvent::Away { reason, attempt: 1 }
    }

    fn unreachable(cause: &str) -> Trouble {
        let (relay, cause) = ("https://r.example".to_owned(), cause.to_owned());
        Trouble::Unreachable { relay, cause }
    }

    /// What comes of these events, and what was told meanwhile.
    async fn waited(seen: Vec<LinkEvent>) -> (Result<(), StartError>, Vec<String>) {
        let (link, mut calls) = mpsc::channel(16);
        for event in seen {
            link.try_send(event).unwrap();
        }
        let (events, mut told) = mpsc::channel(OWNER_EVENTS);
        let herald = Herald::new(events);
        let end = SystemTime::now() + Duration::from_secs(60);
        let outcome = until_up(&mut calls, end, &herald).await;
        let mut lines = Vec::new();
        while let Ok(Event::Relay { state, reason }) = told.try_recv() {
            assert_eq!(state, RelayState::Away);
            lines.push(reason.unwrap());
        }
        (outcome, lines)
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_waited_out_and_told_once_for_each_reason() {
        let (session_id, resumed) = ("ABCDEFGH".to_owned(), false);
        let (outcome, told) = waited(vec![
            away(unreachable("refused")),
            away(unreachable("refused")),
            away(unreachable("no such name")),
            away(Trouble::RateLimited),
            LinkEvent::Up {
                session_id,
                resumed,
            },
        ])
        .await;
        assert!(outcome.is_ok());
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told.iter().all(|line| line.contains("; trying again. ")));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_pass_is_an_error_with_a_way_out_at_once() {
        let relay = "https://r.example".to_owned();
        let cause = "x".to_owned();
        for last in [
            away(Trouble::WrongPath {
                relay: relay.clone(),
            }),
            away(Trouble::NotARelay {
                relay: relay.clone(),
                cause: cause.clone(),
            }),
            away(Trouble::BadCertificate { relay, cause }),
            LinkEvent::Ended(Ending::Refused {
                code: "invalid_app_id".to_owned(),
                message: String::new(),
            }),
        ] {
            let (outcome, told) = waited(vec![last]).await;
            assert!(told.is_empty());
            match outcome {
                Err(StartError::Link { reason, fix }) => {
                    assert!(!reason.is_empty() && !fix.is_empty());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_ends_with_the_session() {
        let (_link, mut calls) = mpsc::channel(1);
        let (events, _told) = mpsc::channel(1);
        let herald = Herald::new(events);
        let end = SystemTime::now() + Duration::from_secs(60);
        let outcome = until_up(&mut calls, end, &herald).await;
        assert!(outcome.unwrap_err().to_string().contains("time is over"));
    }
}
