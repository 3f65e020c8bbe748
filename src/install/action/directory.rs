//! macOS: a record of the directory service, made and read back with `dscl`.
//!
//! Each field is a command of its own, so a kill leaves a part of a record; the number comes last, so that a record without
//! one is known to be a part. Not one of these commands has been run on a Mac: tests play the directory.

use serde::{Deserialize, Serialize};

use super::accounts::proven;
use super::{Error, Standing, Step};
use crate::install::run::{Ran, run};
use crate::install::tripwire::passed;

/// The tool of the directory service.
const DSCL: &str = "dscl";
/// `eDSRecordNotFound` and `eDSNodeNotFound` in its words: what is to be removed is gone already.
const GONE: &[&str] = &["-14136", "-14009"];
/// A failure of the service itself, which passes.
const AGAIN: &str = "-14988";
/// Tries for a failure that passes.
const TRIES: u32 = 5;
/// The system does not let us: the terminal needs a right of the owner's.
const NOT_ALLOWED: &str = "-14120";

/// A user or a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Directory {
    /// `/Users/NAME` or `/Groups/NAME`.
    pub(in crate::install) record: String,
    /// Its fields, in the order in which they are written.
    pub(in crate::install) fields: Vec<(String, String)>,
}

/// Runs `dscl . ARGUMENTS`.
type Ask<'a> = &'a mut dyn FnMut(&[&str]) -> Result<Ran, Error>;

fn dscl(arguments: &[&str]) -> Result<Ran, Error> {
    run(DSCL, &[&["."], arguments].concat())
}

impl Directory {
    /// The account, hidden, without a password or a shell.
    pub(in crate::install) fn user(name: &str, home: &str, number: u32) -> Self {
        let number = number.to_string();
        Self::of(
            format!("/Users/{name}"),
            &[
                ("RealName", "gpu-browser"),
                ("Password", "*"),
                ("UserShell", "/usr/bin/false"),
                ("NFSHomeDirectory", home),
                ("IsHidden", "1"),
                ("PrimaryGroupID", &number),
                ("UniqueID", &number),
            ],
        )
    }

    /// Its group, of the same number.
    pub(in crate::install) fn group(name: &str, number: u32) -> Self {
        let number = number.to_string();
        let fields = [
            ("RealName", "gpu-browser"),
            ("Password", "*"),
            ("PrimaryGroupID", number.as_str()),
        ];
        Self::of(format!("/Groups/{name}"), &fields)
    }

    /// Its number.
    pub(in crate::install) fn number(&self) -> Option<u32> {
        let field = self
            .fields
            .iter()
            .find(|(name, _)| name == "PrimaryGroupID")?;
        field.1.parse().ok()
    }

    fn of(record: String, fields: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            record,
            fields: fields.iter().map(own).collect(),
        }
    }

    fn standing(&self, ask: Ask<'_>) -> Result<Standing, Error> {
        let ran = ask(&["-read", &self.record])?;
        if !ran.is_success() {
            return if is_gone(&ran) {
                Ok(Standing::Absent)
            } else {
                Err(failed("-read", &self.record, &ran))
            };
        }
        let found = |name: &str| {
            let line = ran
                .output
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim)
        };
        let other = self
            .fields
            .iter()
            .find(|(name, value)| found(name) != Some(value));
        Ok(match other {
            None => Standing::Same,
            Some((name, _)) => Standing::different(format!(
                "{} is there, with {name} {}",
                self.record,
                found(name).unwrap_or("missing")
            )),
        })
    }

    fn make(&self, ask: Ask<'_>) -> Result<(), Error> {
        create(&[&self.record], ask)?;
        for (name, value) in &self.fields {
            create(&[&self.record, name, value], ask)?;
        }
        Ok(())
    }

    fn delete(&self, ask: Ask<'_>) -> Result<(), Error> {
        let ran = patiently(&["-delete", &self.record], ask)?;
        passed();
        if ran.is_success() || is_gone(&ran) {
            return Ok(());
        }
        Err(failed("-delete", &self.record, &ran))
    }
}

fn create(words: &[&str], ask: Ask<'_>) -> Result<(), Error> {
    let ran = patiently(&[&["-create"], words].concat(), ask)?;
    passed();
    if ran.is_success() {
        return Ok(());
    }
    Err(failed("-create", words[0], &ran))
}

/// Asks again where the service failed in passing.
fn patiently(words: &[&str], ask: Ask<'_>) -> Result<Ran, Error> {
    let mut ran = ask(words)?;
    for _ in 1..TRIES {
        if ran.is_success() || !ran.words().contains(AGAIN) {
            break;
        }
        ran = ask(words)?;
    }
    Ok(ran)
}

fn is_gone(ran: &Ran) -> bool {
    GONE.iter().any(|code| ran.words().contains(code))
}

fn failed(what: &str, record: &str, ran: &Ran) -> Error {
    let mut words = ran.words();
    if words.contains(NOT_ALLOWED) {
        words.push_str(
            ": run it from Terminal and allow what it asks, or give remote users full disk access",
        );
    }
    Error::Program {
        line: format!("{DSCL} . {what} {record}"),
        code: ran.code,
        words,
    }
}

/// The highest number below 400 that neither a user nor a group has: below 500 an account is hidden, and the system takes
/// numbers from 300 upwards.
pub(in crate::install) fn free_number() -> Result<u32, Error> {
    let users = dscl(&["-list", "/Users", "UniqueID"])?;
    let groups = dscl(&["-list", "/Groups", "PrimaryGroupID"])?;
    free(&format!("{}\n{}", users.output, groups.output)).ok_or_else(|| {
        Error::NotProven("no number from 350 to 399 is free for the account".to_owned())
    })
}

fn free(listed: &str) -> Option<u32> {
    let taken: Vec<u32> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().last()?.parse().ok())
        .collect();
    (350..400).rev().find(|number| !taken.contains(number))
}

impl Step for Directory {
    fn thing(&self) -> String {
        format!("directory record {}", self.record)
    }

    fn describe(&self) -> String {
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        format!(
            "make the directory record {}: {}",
            self.record,
            fields.join(", ")
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        self.standing(&mut dscl)
    }

    fn apply(&self) -> Result<(), Error> {
        self.make(&mut dscl)?;
        proven(self)
    }

    fn remove(&self) -> Result<(), Error> {
        if let Some((_, number)) = self.fields.iter().find(|(name, _)| name == "UniqueID") {
            // It says 1 where nothing ran.
            run("pkill", &["-KILL", "-U", number])?;
        }
        self.delete(&mut dscl)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A directory that is played: it writes down what it is asked, and fails when it is told to.
    #[derive(Default)]
    struct Played {
        asked: Vec<String>,
        records: BTreeMap<String, Vec<(String, String)>>,
        fail_once_with: Option<&'static str>,
    }

    impl Played {
        fn ask(&mut self, words: &[&str]) -> Ran {
            self.asked.push(words.join(" "));
            let said = |code, errors: &str, output: String| Ran {
                code: Some(code),
                output,
                errors: errors.to_owned(),
            };
            if let Some(code) = self.fail_once_with.take() {
                return said(1, code, String::new());
            }
            match words {
                ["-create", record] => {
                    self.records.entry((*record).to_owned()).or_default();
                }
                ["-create", record, name, value] => {
                    let fields = self.records.entry((*record).to_owned()).or_default();
                    fields.retain(|(known, _)| known != name);
                    fields.push(((*name).to_owned(), (*value).to_owned()));
                }
                ["-read", record] => match self.records.get(*record) {
                    Some(fields) => {
                        let lines = fields
                            .iter()
                            .map(|(name, value)| format!("{name}: {value}\n"));
                        return said(0, "", lines.collect());
                    }
                    None => return said(56, "DS Error: -14136 (eDSRecordNotFound)", String::new()),
                },
                ["-delete", record] if self.records.remove(*record).is_none() => {
                    return said(56, "DS Error: -14136 (eDSRecordNotFound)", String::new());
                }
                _ => {}
            }
            said(0, "", String::new())
        }
    }

    fn user() -> Directory {
        Directory::user(
            "agent-socket-gpu-browser",
            "/private/var/agent-socket-gpu-browser",
            399,
        )
    }

    #[test]
    fn an_account_is_made_field_by_field_with_its_number_last() {
        let mut played = Played::default();
        user().make(&mut |words| Ok(played.ask(words))).unwrap();
        let record = "-create /Users/agent-socket-gpu-browser";
        assert_eq!(
            played.asked,
            [
                record.to_owned(),
                format!("{record} RealName gpu-browser"),
                format!("{record} Password *"),
                format!("{record} UserShell /usr/bin/false"),
                format!("{record} NFSHomeDirectory /private/var/agent-socket-gpu-browser"),
                format!("{record} IsHidden 1"),
                format!("{record} PrimaryGroupID 399"),
                format!("{record} UniqueID 399"),
            ]
        );
        assert_eq!(
            user().standing(&mut |words| Ok(played.ask(words))).unwrap(),
            Standing::Same
        );
    }

    #[test]
    fn a_record_that_a_kill_cut_short_is_seen_and_made_whole() {
        for cut in 1..=user().fields.len() {
            let mut played = Played::default();
            let mut left = cut;
            let _ = user().make(&mut |words| {
                left = left
                    .checked_sub(1)
                    .ok_or_else(|| Error::NotProven("killed".to_owned()))?;
                Ok(played.ask(words))
            });
            let standing = user().standing(&mut |words| Ok(played.ask(words))).unwrap();
            assert!(matches!(standing, Standing::Different { .. }), "{cut}");
            user().make(&mut |words| Ok(played.ask(words))).unwrap();
            assert_eq!(
                user().standing(&mut |words| Ok(played.ask(words))).unwrap(),
                Standing::Same
            );
            user().delete(&mut |words| Ok(played.ask(words))).unwrap();
            assert!(played.records.is_empty());
        }
    }

    #[test]
    fn what_is_gone_is_well_and_what_passes_is_tried_again() {
        let mut played = Played::default();
        user().delete(&mut |words| Ok(played.ask(words))).unwrap();
        played.fail_once_with = Some("DS Error: -14988 (eUndefinedError)");
        user().make(&mut |words| Ok(played.ask(words))).unwrap();
        assert_eq!(played.asked[1], played.asked[2]);
        played.fail_once_with = Some("DS Error: -14120 (eDSPermissionError)");
        let error = user().make(&mut |words| Ok(played.ask(words))).unwrap_err();
        assert!(error.to_string().contains("full disk access"), "{error}");
    }

    #[test]
    fn a_number_that_a_user_or_a_group_has_is_not_taken() {
        assert_eq!(free("root 0\n_x 399\nstaff 398\n"), Some(397));
        let all: String = (350..400)
            .map(|number| format!("u{number} {number}\n"))
            .collect();
        assert_eq!(free(&all), None);
    }
}
