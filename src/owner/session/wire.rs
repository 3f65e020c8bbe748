//! The lines between the owner's command and a session that runs under another account.
//!
//! The first line in is an [`Opening`]: the wish, and a key of the run. Every line in after it is a [`Question`]. Every line out is
//! a [`Sealed`] one: it carries the key. A line without it was written by something else (sudo, a library, a page's text that
//! found its way to standard output) and is shown as text, never believed.

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::owner::wish::Wish;
use crate::server::Event;
use crate::server::desk::{Ask, Ending, Reply};

/// The first line in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    /// New every run.
    pub(super) key: String,
    /// The session.
    pub(super) wish: Wish,
}

/// A line in after the first.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// What the reply names.
    pub(super) id: u64,
    /// What is wanted.
    pub(super) ask: Ask,
}

/// A line out.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sealed {
    /// The key of the run.
    key: String,
    /// What it says.
    says: Says,
}

/// What a line out says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Says {
    /// Something happened.
    Event(Event),
    /// A question is answered.
    Reply {
        /// The question's.
        id: u64,
        /// The answer.
        reply: Reply,
    },
    /// The session has ended. The last line.
    Ended(Ending),
    /// No session came about. The last line.
    Failed {
        /// For the owner.
        message: String,
        /// For the shell.
        exit_code: u8,
    },
}

impl Sealed {
    /// A line with its key, and its end.
    pub(super) fn write(key: &str, says: Says) -> String {
        let sealed = Self {
            key: key.to_owned(),
            says,
        };
        let mut line = serde_json::to_string(&sealed).unwrap_or_default();
        line.push('\n');
        line
    }

    /// What a line says, where it carries the key.
    pub(super) fn read(key: &str, line: &str) -> Option<Says> {
        let sealed: Self = serde_json::from_str(line).ok()?;
        let is_ours: bool = sealed.key.as_bytes().ct_eq(key.as_bytes()).into();
        is_ours.then_some(sealed.says)
    }
}

/// A key that no page, agent or program beside us knows.
pub(super) fn new_key() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_the_key_says_nothing() {
        let key = new_key().unwrap();
        let says = || {
            Says::Event(Event::Request {
                number: 1,
                hosts: vec!["a.example".into()],
                reason: "x\ny".into(),
                page: None,
            })
        };
        let line = Sealed::write(&key, says());
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(Sealed::read(&key, &line), Some(says()));
        for forged in [
            line.replace(&key, ""),
            line.replace(&key, &new_key().unwrap()),
            line.replace("\"key\"", "\"kez\""),
            format!("x{line}"),
            r#"{"event":"ready","link":"https://evil.example/agents.md"}"#.to_owned(),
            String::new(),
        ] {
            assert_eq!(Sealed::read(&key, &forged), None, "{forged}");
        }
    }

    #[test]
    fn a_length_that_is_no_number_of_minutes_is_no_wish() {
        let opening = Opening {
            key: "k".into(),
            wish: Wish {
                minutes: 43_200,
                ..Wish::default()
            },
        };
        let line = serde_json::to_string(&opening).unwrap();
        assert_eq!(
            serde_json::from_str::<Opening>(&line).unwrap().wish,
            opening.wish
        );
        for minutes in [
            "\"240\"",
            "1.5",
            "-1",
            "null",
            "1e3",
            "99999999999999999999",
        ] {
            let bad = line.replace("43200", minutes);
            assert!(serde_json::from_str::<Opening>(&bad).is_err(), "{minutes}");
        }
        assert!(serde_json::from_str::<Opening>(&line.replace("\"label\"", "\"lable\"")).is_err());
    }
}
