//! The links that the owner has handed out, so that they can be made again under their labels.

use crate::policy::limits;

use super::Replacement;

/// The live links, and those whose session is gone.
#[derive(Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// Made again since the last report.
    replaced: Vec<Replacement>,
}

struct Entry {
    token: String,
    label: String,
    /// Its session is gone; a new link must take its place.
    stale: bool,
}

impl Ledger {
    /// A new link.
    pub(super) fn add(&mut self, token: String, label: String) {
        // A relay that mints more than the protocol's fifty is on its own.
        if self.entries.len() < 2 * limits::LIVE_TOKENS {
            self.entries.push(Entry {
                token,
                label,
                stale: false,
            });
        }
    }

    /// A link that is not to be made again.
    pub(super) fn remove(&mut self, token: &str) {
        self.entries.retain(|entry| entry.token != token);
    }

    /// The session is gone, and every link with it.
    pub(super) fn all_stale(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.stale = true);
    }

    /// Token and label of the links to be made again.
    pub(super) fn stale(&self) -> Vec<(String, String)> {
        let stale = self.entries.iter().filter(|entry| entry.stale);
        stale
            .map(|entry| (entry.token.clone(), entry.label.clone()))
            .collect()
    }

    /// A link was made again, or cannot be (`None`). `false` where it was revoked meanwhile.
    pub(super) fn replace(&mut self, old: &str, new: Option<String>) -> bool {
        let Some(place) = self
            .entries
            .iter()
            .position(|entry| entry.stale && entry.token == old)
        else {
            return false;
        };
        let label = self.entries[place].label.clone();
        self.replaced.push(Replacement {
            old: old.to_owned(),
            new: new.clone(),
            label,
        });
        match new {
            Some(token) => {
                self.entries[place].token = token;
                self.entries[place].stale = false;
            }
            None => {
                self.entries.remove(place);
            }
        }
        true
    }

    /// What was made again, once nothing is left to do.
    pub(super) fn report(&mut self) -> Option<Vec<Replacement>> {
        let is_done = self.entries.iter().all(|entry| !entry.stale) && !self.replaced.is_empty();
        is_done.then(|| std::mem::take(&mut self.replaced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_reported_once_all_are_made() {
        let mut ledger = Ledger::default();
        for token in ["a", "b", "c"] {
            ledger.add(token.into(), format!("label {token}"));
        }
        ledger.remove("c");
        assert!(ledger.stale().is_empty() && ledger.report().is_none());
        ledger.all_stale();
        assert!(ledger.replace("a", Some("A".into())));
        assert!(ledger.report().is_none());
        assert!(!ledger.replace("c", Some("C".into())), "revoked meanwhile");
        assert!(ledger.replace("b", None));
        let report = ledger.report().unwrap();
        assert_eq!(
            report[0],
            Replacement {
                old: "a".into(),
                new: Some("A".into()),
                label: "label a".into()
            }
        );
        assert_eq!(report[1].new, None);
        assert!(ledger.report().is_none());
        ledger.all_stale();
        assert_eq!(ledger.stale(), [("A".to_owned(), "label a".to_owned())]);
    }
}
