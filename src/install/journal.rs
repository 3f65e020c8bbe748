//! What was done to this machine, written ahead: one synced line before each effect, which says what was there, and one
//! after it. Whatever kills a run, the next one knows what may be there and whose it is.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::action::{Action, Error, Was};
use super::files::at;
use super::tripwire::passed;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// An install.
    Install,
    /// An update.
    Update,
    /// An uninstall.
    Uninstall,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Install => "install",
            Self::Update => "update",
            Self::Uninstall => "uninstall",
        })
    }
}

/// One line. Names and fields are never changed: an old journal must parse; fields that are new have a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum Record {
    /// The first line of all.
    Opened {
        /// Whether the folder above the records was made with them, and goes with them.
        made_parent: bool,
    },
    Began {
        run: Run,
        /// Seconds since 1970.
        at: u64,
        /// What is to be done; empty for an uninstall, which follows the journal itself.
        plan: Vec<Action>,
    },
    Before {
        id: u32,
        did: Action,
        was: Was,
    },
    Done {
        id: u32,
    },
    /// It is taken back; what was there before is there again.
    Undone {
        id: u32,
    },
    /// From here on an update only goes forward: the old version is being removed.
    Committed,
    /// The run is over, by its end or by being taken back.
    Ended,
}

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u32,
    pub(super) did: Action,
    pub(super) was: Was,
    pub(super) done: bool,
    pub(super) undone: bool,
    /// Which run did it, counted from 1.
    pub(super) run: u32,
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub(super) run: Run,
    pub(super) at: u64,
    pub(super) plan: Vec<Action>,
    pub(super) committed: bool,
}

/// What the journal comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) made_parent: bool,
    pub(super) entries: Vec<Entry>,
    pub(super) unfinished: Option<Unfinished>,
    runs: u32,
}

impl Ledger {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut ledger = Self::default();
        for line in text.lines() {
            ledger.take(serde_json::from_str(line)?);
        }
        Ok(ledger)
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Opened { made_parent } => self.made_parent = made_parent,
            Record::Began { run, at, plan } => {
                self.runs += 1;
                self.unfinished = Some(Unfinished {
                    run,
                    at,
                    plan,
                    committed: false,
                });
            }
            Record::Before { id, did, was } => self.entries.push(Entry {
                id,
                did,
                was,
                done: false,
                undone: false,
                run: self.runs,
            }),
            Record::Done { id } => self.each(id, |entry| entry.done = true),
            Record::Undone { id } => self.each(id, |entry| entry.undone = true),
            Record::Committed => {
                if let Some(unfinished) = &mut self.unfinished {
                    unfinished.committed = true;
                }
            }
            Record::Ended => self.unfinished = None,
        }
    }

    fn each(&mut self, id: u32, change: impl Fn(&mut Entry)) {
        self.entries
            .iter_mut()
            .filter(|entry| entry.id == id)
            .for_each(change);
    }

    /// What stands, oldest first.
    pub(super) fn standing(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.undone)
    }

    /// What this run has done so far and not taken back.
    pub(super) fn of_this_run(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.standing().filter(|entry| entry.run == self.runs)
    }

    /// Whether a thing is ours: we made it where there was nothing.
    pub(super) fn is_ours(&self, thing: &str) -> bool {
        self.standing()
            .any(|entry| entry.was == Was::Absent && entry.did.step().thing() == thing)
    }

    fn next_id(&self) -> u32 {
        self.entries.last().map_or(1, |entry| entry.id + 1)
    }
}

/// The journal, open under the exclusive lock.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    ledger: Ledger,
}

impl Journal {
    /// Opens it. A line that a power cut has torn is no line, and is cut off.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(at("open", path))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(at("read", path))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(at("mend", path))?;
            file.seek(SeekFrom::End(0)).map_err(at("mend", path))?;
        }
        let ledger = parse(&text[..whole], path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            ledger,
        })
    }

    /// What it comes to so far.
    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Writes a line, and waits until it is on the disk.
    pub(super) fn write(&mut self, record: Record) -> Result<(), Error> {
        let line = line(&record);
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_all())
            .map_err(at("write", &self.path))?;
        passed();
        self.ledger.take(record);
        Ok(())
    }

    /// Says that a thing will be made, and returns its number.
    pub(super) fn before(&mut self, did: Action, was: Was) -> Result<u32, Error> {
        let id = self.ledger.next_id();
        self.write(Record::Before { id, did, was })?;
        Ok(id)
    }
}

/// A record as its line.
pub(super) fn line(record: &Record) -> String {
    // Plain data: it always has a form.
    let text = serde_json::to_string(record).unwrap_or_default();
    format!("{text}\n")
}

/// Reads a journal without being able to write it: for the account, and for looking.
pub(super) fn look(path: &Path) -> Result<Ledger, Error> {
    let text = std::fs::read_to_string(path).map_err(at("read", path))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    parse(&text[..whole], path)
}

fn parse(text: &str, path: &Path) -> Result<Ledger, Error> {
    Ledger::read(text).map_err(|error| {
        Error::NotProven(format!(
            "{} cannot be read ({error}): a newer gpu-browser may have written it; use that one",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the first version wrote it; never to be changed.
    const FIRST: &str = include_str!("../../tests/data/journal-1.jsonl");

    #[test]
    fn an_old_journal_still_says_what_was_made() {
        let ledger = Ledger::read(FIRST).unwrap();
        assert!(ledger.made_parent && ledger.unfinished.is_none());
        let things: Vec<String> = ledger
            .standing()
            .map(|entry| entry.did.step().thing())
            .collect();
        assert_eq!(things.len(), 13, "{things:#?}");
        for kind in [
            "group",
            "user",
            "records",
            "home",
            "log folder",
            "folder",
            "Chromium",
            "version",
            "link",
            "sudo rule",
            "AppArmor",
        ] {
            assert!(things.iter().any(|thing| thing.starts_with(kind)), "{kind}");
        }
        assert!(ledger.is_ours("user agent-socket-gpu-browser"));
    }

    #[test]
    fn fields_of_a_later_version_are_passed_over() {
        let line = r#"{"record":"began","run":"update","at":5,"plan":[],"mood":"good"}"#;
        let ledger = Ledger::read(line).unwrap();
        assert_eq!(ledger.unfinished.unwrap().run, Run::Update);
    }

    #[test]
    fn every_cut_of_a_journal_opens_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for cut in 0..=FIRST.len() {
            if !FIRST.is_char_boundary(cut) {
                continue;
            }
            std::fs::write(&path, &FIRST[..cut]).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            let lines = FIRST[..cut].matches('\n').count();
            journal.write(Record::Ended).unwrap();
            drop(journal);
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), lines + 1, "cut at {cut}");
            look(&path).unwrap();
        }
    }

    #[test]
    fn what_was_there_before_is_not_ours() {
        let link = r#"{"action":"link","path":"/p","target":"/b"}"#;
        let text = format!(
            "{{\"record\":\"before\",\"id\":1,\"did\":{link},\"was\":{{\"ours\":\"/a\"}}}}\n"
        );
        assert!(!Ledger::read(&text).unwrap().is_ours("link /p"));
        let text = text.replace("{\"ours\":\"/a\"}", "\"absent\"");
        assert!(Ledger::read(&text).unwrap().is_ours("link /p"));
    }
}
