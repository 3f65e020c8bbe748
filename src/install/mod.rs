//! Install, update, uninstall: an account of its own for the browser, and one command that its owner may run.
//!
//! # The story of an install
//!
//! [`prepare`] takes the lock, reads the journal and makes the plan: each action looks at the machine, and one that finds
//! what is not ours stops everything before anything is changed. The owner agrees to the text that is made from the
//! actions. [`Prepared::carry_out`] writes a line into the journal, acts, writes another, action by action. Whatever kills
//! it, the next run takes up the journal and finishes, or undoes.

pub mod account;
mod action;
mod database;
mod engine;
mod files;
mod journal;
pub mod lease;
mod plan;
mod processes;
mod records;
mod run;
mod state;
mod system;
pub mod tripwire;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub use self::action::Error as ActionError;
use self::action::{Action, Standing};
pub use self::engine::Tell;
pub use self::files::is_roots_alone;
pub use self::journal::Run;
use self::journal::{Journal, Ledger, Record};
use self::lease::{Busy, Exclusive};
pub use self::state::{State, Way, installed, prove, way_in};
use crate::place;

/// What the owner wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Have it installed.
    Install,
    /// Have this version in use.
    Update,
    /// Have nothing of it.
    Uninstall,
    /// Take back a run that was left unfinished.
    Undo,
}

/// What an install is made from.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// The person who may start the server.
    pub owner: String,
    /// The program to install.
    pub source: PathBuf,
    /// Its version.
    pub version: String,
    /// The Chromium that was found, or why there is none.
    pub chromium: Result<PathBuf, String>,
    /// A Chromium to unpack instead: the archive, and its SHA-256.
    pub archive: Option<(PathBuf, String)>,
    /// The groups that alone may open the GPU's device nodes, each with such a node.
    pub gpu: Vec<(String, PathBuf)>,
}

/// Why nothing, or not everything, was done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something else has the install in use.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// An action failed; what was done so far is in the journal.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// An action failed in the middle of a run.
    #[error(
        "{0}\nwhat was done so far is kept: run the same command again to go on, or `sudo gpu-browser install --undo` to take it back"
    )]
    HalfWay(ActionError),
    /// The system is not one that an install works on.
    #[error("{0}")]
    Unsupported(String),
    /// There is no Chromium for the account.
    #[error("{0}")]
    NoChromium(String),
    /// Something is in the way, and nothing was changed.
    #[error("nothing was changed, since this is in the way:\n  {}\nwhat is there was not made by this install: look at it, and remove or rename it if nobody needs it", .0.join("\n  "))]
    Conflict(Vec<String>),
    /// The owner's name cannot be used.
    #[error("{0}")]
    Owner(String),
}

impl Failure {
    /// The exit code of a program that ends with it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Busy(busy) => busy.exit_code(),
            Self::Owner(_) => 2,
            Self::NoChromium(_) => 4,
            Self::Action(_) | Self::HalfWay(_) | Self::Unsupported(_) | Self::Conflict(_) => 1,
        }
    }
}

/// What will be done.
enum Work {
    Nothing,
    /// A plan, from its start or from where it was left.
    Forward {
        run: Run,
        plan: Vec<Action>,
        resumed: bool,
    },
    /// The unfinished update.
    Back,
    /// All that is ours.
    RemoveAll,
}

/// A change that is ready to be carried out; the lock is held from before the journal was read.
pub struct Prepared {
    lock: Option<Exclusive>,
    work: Work,
    /// What is to be said before anything else.
    pub notes: Vec<String>,
    lines: Vec<String>,
    made_parent: bool,
}

/// Makes ready what was asked for; changes nothing.
///
/// # Errors
/// Where it cannot be done as the machine is.
pub fn prepare(
    ask: Ask,
    wishes: impl FnOnce() -> Result<Wishes, Failure>,
) -> Result<Prepared, Failure> {
    let records = Path::new(place::LAYOUT.records);
    let lock = lease::exclusive(records)?;
    let ledger = match lock {
        Some(_) => journal::look(&records.join("journal"))?,
        None => Ledger::default(),
    };
    let mut prepared = Prepared {
        made_parent: ledger.made_parent,
        work: Work::Nothing,
        notes: Vec::new(),
        lines: Vec::new(),
        lock,
    };
    prepared.decide(ask, &ledger, wishes)?;
    Ok(prepared)
}

impl Prepared {
    fn decide(
        &mut self,
        ask: Ask,
        ledger: &Ledger,
        wishes: impl FnOnce() -> Result<Wishes, Failure>,
    ) -> Result<(), Failure> {
        if let Some(left) = &ledger.unfinished {
            let age = now().saturating_sub(left.at) / 60;
            self.notes.push(format!(
                "an {} of {age} minutes ago was left unfinished",
                left.run
            ));
        }
        let left = ledger.unfinished.as_ref();
        let is_there = self.lock.is_some();
        match (ask, left.map(|left| left.run)) {
            (Ask::Uninstall, _) | (Ask::Undo, Some(Run::Install)) if is_there => {
                self.remove_all(ledger);
            }
            (_, Some(Run::Uninstall)) => {
                self.notes
                    .push("it is finished now; then run this command again".to_owned());
                self.remove_all(ledger);
            }
            (Ask::Undo, Some(Run::Update)) if left.is_some_and(|left| !left.committed) => {
                self.lines = ledger
                    .of_this_run()
                    .rev()
                    .map(|entry| format!("take back: {}", entry.did.step().describe()))
                    .collect();
                self.work = Work::Back;
            }
            (Ask::Undo, None) if is_there && ledger.standing().next().is_none() => {
                self.remove_all(ledger);
            }
            (Ask::Undo | Ask::Uninstall, None | Some(Run::Install)) => {
                self.notes.push("there is nothing to take back".to_owned());
            }
            (_, Some(run)) => {
                let plan = left.map(|left| left.plan.clone()).unwrap_or_default();
                self.forward(ledger, run, plan, true)?;
            }
            (Ask::Update, None) if ledger.standing().next().is_none() => {
                return Err(Busy::NotInstalled.into());
            }
            (Ask::Install | Ask::Update, None) => self.anew(ledger, &wishes()?)?,
        }
        Ok(())
    }

    fn remove_all(&mut self, ledger: &Ledger) {
        let ours = ledger
            .standing()
            .rev()
            .filter(|entry| entry.was == action::Was::Absent);
        self.lines = ours
            .map(|entry| format!("remove {}", entry.did.step().thing()))
            .collect();
        self.lines
            .push(format!("remove the records {}", place::LAYOUT.records));
        self.work = Work::RemoveAll;
    }

    fn anew(&mut self, ledger: &Ledger, wishes: &Wishes) -> Result<(), Failure> {
        let system = system::detect().map_err(Failure::Unsupported)?;
        if !action::is_plain(&wishes.owner) || wishes.owner == "root" {
            return Err(Failure::Owner(format!(
                "{:?} cannot be the owner: name an ordinary account of this machine with --owner NAME",
                wishes.owner
            )));
        }
        let run = if ledger.standing().next().is_some() {
            Run::Update
        } else {
            Run::Install
        };
        let plan = plan::wanted(wishes, ledger)?;
        if !plan
            .iter()
            .any(|action| matches!(action, Action::Chromium(_)))
        {
            let found = wishes
                .chromium
                .as_ref()
                .map_err(|why| Failure::NoChromium(why.clone()))?;
            plan::usable(found).map_err(Failure::NoChromium)?;
        }
        if !plan.iter().any(|action| matches!(action, Action::Rule(_))) {
            self.notes.push(
                "there is no sudo here, so nobody but root can start the server; install sudo, then run `gpu-browser update`"
                    .to_owned(),
            );
        }
        self.notes.push(format!("this is {}", system.name));
        self.forward(ledger, run, plan, false)
    }

    fn forward(
        &mut self,
        ledger: &Ledger,
        run: Run,
        plan: Vec<Action>,
        resumed: bool,
    ) -> Result<(), Failure> {
        let looked = plan::look(&plan)?;
        let conflicts = plan::conflicts(&looked, ledger, resumed);
        if !conflicts.is_empty() {
            return Err(Failure::Conflict(conflicts));
        }
        let to_do = looked.iter().filter(|line| line.standing != Standing::Same);
        self.lines = to_do.map(|line| line.action.step().describe()).collect();
        let old = plan::superseded(ledger, &plan);
        self.lines.extend(
            old.iter()
                .map(|(_, action)| format!("remove {}", action.step().thing())),
        );
        if self.lines.is_empty() && !resumed {
            self.notes.push("all is as it should be".to_owned());
        } else {
            self.work = Work::Forward { run, plan, resumed };
        }
        Ok(())
    }

    /// What will be done, one line each.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Whether there is something to agree to.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        matches!(self.work, Work::Nothing)
    }

    /// Does it; what is done is told as it is done.
    ///
    /// # Errors
    /// Where an action fails; the journal has what was done so far.
    pub fn carry_out(mut self, tell: Tell<'_>) -> Result<(), Failure> {
        let records = Path::new(place::LAYOUT.records);
        if self.lock.is_none() {
            records::sweep(records)?;
            if self.is_nothing() {
                return Ok(());
            }
            records::make(records)?;
            self.lock = lease::exclusive(records)?;
        }
        let mut journal = Journal::open(&records.join("journal"))?;
        self.carry(&mut journal, records, tell)
            .map_err(Failure::HalfWay)
    }

    fn carry(
        &self,
        journal: &mut Journal,
        records: &Path,
        tell: Tell<'_>,
    ) -> Result<(), ActionError> {
        match &self.work {
            Work::Nothing => Ok(()),
            Work::Forward { run, plan, resumed } => {
                if !resumed {
                    journal.write(Record::Began {
                        run: *run,
                        at: now(),
                        plan: plan.clone(),
                    })?;
                }
                engine::forward(journal, *run, plan, tell)
            }
            Work::Back => engine::back(journal, tell),
            Work::RemoveAll => {
                let is_begun = journal.ledger().unfinished.as_ref();
                if is_begun.is_none_or(|left| left.run != Run::Uninstall) {
                    journal.write(Record::Began {
                        run: Run::Uninstall,
                        at: now(),
                        plan: Vec::new(),
                    })?;
                }
                engine::remove_all(journal, tell)?;
                records::remove(records, self.made_parent)
            }
        }
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
