//! What the relay replied to our requests.

use std::time::{Duration, UNIX_EPOCH};

use super::attached::Attached;
use super::events::Replacement;
use super::requests::Asked;
use super::{Answered, LinkError, ListedLink, Minted};
use crate::relay::frames::relay::{ListedToken, ReplyValue, WireError};

impl Attached<'_> {
    /// Settles a request.
    pub(super) fn replied(&mut self, asked: Asked, outcome: Result<ReplyValue, WireError>) {
        match (asked, outcome) {
            (Asked::Mint { answered }, Ok(ReplyValue::Minted { token, label })) => {
                self.minted(answered, token, label);
            }
            (Asked::MintAgain { old }, Ok(ReplyValue::Minted { token, .. })) => {
                if !self.runner.ledger.replace(&old, Some(token.clone())) {
                    self.revoke(&token, None);
                }
                self.report();
            }
            (Asked::MintAgain { old }, outcome) => {
                tracing::warn!(?outcome, "the relay would not make a link again");
                self.runner.ledger.replace(&old, None);
                self.report();
            }
            (
                Asked::Revoke {
                    answered: Some(answered),
                    ..
                },
                Ok(ReplyValue::Revoked { was_live }),
            ) => {
                let _ = answered.send(Ok(was_live));
            }
            (Asked::Revoke { answered: None, .. }, _) => {}
            (Asked::List { answered }, Ok(ReplyValue::Listed(tokens))) => {
                let links = tokens.into_iter().map(|token| self.listed(token)).collect();
                let _ = answered.send(Ok(links));
            }
            (
                Asked::Update {
                    registration,
                    answered,
                },
                Ok(ReplyValue::Updated),
            ) => {
                self.runner.config.registration = *registration;
                let _ = answered.send(Ok(()));
            }
            (asked, Err(error)) => fail(
                asked,
                &LinkError::Refused {
                    code: error.code,
                    message: error.message,
                },
            ),
            (asked, Ok(_)) => {
                let (code, message) = ("protocol_error".into(), "the reply fits no request".into());
                fail(asked, &LinkError::Refused { code, message });
            }
        }
    }

    /// A link that nobody waits for any more must not live on unknown.
    fn minted(&mut self, answered: Answered<Minted>, token: String, label: String) {
        let link = self.runner.config.relay.link(&token);
        let minted = Minted {
            token: token.clone(),
            link,
            label: label.clone(),
        };
        match answered.send(Ok(minted)) {
            Ok(()) => self.runner.ledger.add(token, label),
            Err(_) => self.revoke(&token, None),
        }
    }

    /// Tells the owner once all links are made again.
    fn report(&mut self) {
        if let Some(replaced) = self.runner.ledger.report() {
            let relay = &self.runner.config.relay;
            let with_links = |Replacement { old, new, label }| Replacement {
                old: relay.link(&old),
                new: new.map(|new| relay.link(&new)),
                label,
            };
            self.runner
                .events
                .replaced(replaced.into_iter().map(with_links).collect());
        }
    }

    fn listed(&self, token: ListedToken) -> ListedLink {
        let ListedToken {
            token,
            label,
            minted_at,
        } = token;
        let link = self.runner.config.relay.link(&token);
        // Whatever a relay says, a date stays in the range of the clock.
        let at = UNIX_EPOCH
            .checked_add(Duration::from_millis(minted_at))
            .unwrap_or(UNIX_EPOCH);
        ListedLink {
            minted: Minted { token, link, label },
            at,
        }
    }
}

/// Tells whoever waits for a request that it was not done.
pub(super) fn fail(asked: Asked, error: &LinkError) {
    match asked {
        Asked::Mint { answered } => drop(answered.send(Err(error.clone()))),
        Asked::List { answered } => drop(answered.send(Err(error.clone()))),
        Asked::Update { answered, .. } => drop(answered.send(Err(error.clone()))),
        Asked::Revoke { answered, .. } => {
            drop(answered.map(|answered| answered.send(Err(error.clone()))));
        }
        Asked::MintAgain { .. } => {}
    }
}
