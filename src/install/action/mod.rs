//! What an install is made of: things that can be looked at, described, made and unmade, each by itself.

mod accounts;
mod chromium;
mod directory;
mod folders;
mod profile;
mod program;
mod rule;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(super) use self::accounts::{Group, Member, User};
pub(super) use self::chromium::Chromium;
pub(super) use self::directory::{Directory, free_number};
pub(super) use self::folders::{Folder, Home, Link, Log, Records};
pub(super) use self::profile::{Profile, is_profiled, is_restricted};
pub(super) use self::program::Program;
pub(super) use self::rule::{Rule, is_plain};

/// Why an action could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses something on a path.
    #[error("cannot {what} {}: {source}", path.display())]
    Path {
        /// What was wanted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A program of the system does not start.
    #[error("{program} cannot be run: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// A program of the system fails.
    #[error("`{line}` failed{}: {words}", code.map_or(String::new(), |code| format!(" with exit code {code}")))]
    Program {
        /// Its command line.
        line: String,
        /// Its exit code.
        code: Option<i32>,
        /// Its own words.
        words: String,
    },
    /// Something was done, and what it should have made is not there.
    #[error("{0}")]
    NotProven(String),
}

/// How a thing is now, beside how it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is not there.
    Absent,
    /// It is as it should be.
    Same,
    /// Something else is there.
    Different {
        /// What, and what to do where it is not ours.
        why: String,
        /// What would bring it back.
        content: Option<String>,
    },
}

impl Standing {
    fn different(why: impl Into<String>) -> Self {
        Self::Different {
            why: why.into(),
            content: None,
        }
    }
}

/// How a thing was before it was made, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Was {
    /// It was not there: undone, it is gone.
    Absent,
    /// It was ours, from an earlier run: undone, this is put back.
    Ours(Option<String>),
}

/// A thing that can be made and unmade.
pub(super) trait Step {
    /// What it is, whatever it should look like: two actions on one thing have one name.
    fn thing(&self) -> String;
    /// One line for the owner.
    fn describe(&self) -> String;
    /// How it is now.
    fn inspect(&self) -> Result<Standing, Error>;
    /// Makes it so, from nothing or from what a killed run has left. Done twice, it is as done once.
    fn apply(&self) -> Result<(), Error>;
    /// Takes it away; one that is gone already is well.
    fn remove(&self) -> Result<(), Error>;
    /// Puts back what was there before; only things that an update changes in place can.
    fn put_back(&self, _content: &str) -> Result<(), Error> {
        Ok(())
    }
}

/// An action as the journal keeps it. Names and fields are never changed: an old journal must parse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(super) enum Action {
    Group(Group),
    User(User),
    Member(Member),
    Records(Records),
    Home(Home),
    Log(Log),
    Folder(Folder),
    Chromium(Chromium),
    Program(Program),
    Link(Link),
    Rule(Rule),
    Profile(Profile),
    Directory(Directory),
}

impl Action {
    /// The step that it stands for.
    pub(super) fn step(&self) -> &dyn Step {
        match self {
            Self::Group(step) => step,
            Self::User(step) => step,
            Self::Member(step) => step,
            Self::Records(step) => step,
            Self::Home(step) => step,
            Self::Log(step) => step,
            Self::Folder(step) => step,
            Self::Chromium(step) => step,
            Self::Program(step) => step,
            Self::Link(step) => step,
            Self::Rule(step) => step,
            Self::Profile(step) => step,
            Self::Directory(step) => step,
        }
    }

    /// Makes undone what it did.
    pub(super) fn undo(&self, was: &Was) -> Result<(), Error> {
        match was {
            Was::Absent => self.step().remove(),
            Was::Ours(Some(content)) => self.step().put_back(content),
            Was::Ours(None) => Ok(()),
        }
    }
}
