//! `gpu-browser logs`: the log of the sessions on this machine, as words or as it is.

mod files;
mod since;
mod words;

use std::io;
use std::path::PathBuf;

use clap::Args;
use time::OffsetDateTime;
use tokio::time::sleep;

use self::since::Since;

use self::files::{Found, Reader};
use super::Failure;
use super::screen::Screen;
use super::shown;
use crate::place::{self, Form};
use crate::policy::limits::LOG_POLL;
use crate::server::audit::Line;

/// `gpu-browser logs`.
#[derive(Debug, Args)]
pub struct Logs {
    /// Go on, and show each line as it is written
    #[arg(short, long)]
    pub follow: bool,
    /// Only lines since a time, like 2026-12-01T10:00:00Z, or since a while ago, like 10m, 2h or 3d
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    pub since: Option<Since>,
    /// The lines as they are, for programs
    #[arg(long)]
    pub json: bool,
    /// The log of sessions without an account of their own, where there is an install too
    #[arg(long)]
    pub dev: bool,
}

/// The log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The system refuses it.
    #[error("{}: {source}", shown::text(&.path.to_string_lossy()))]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Nobody says where the owner's files are.
    #[error("there is no home directory (HOME is not set), and so no log")]
    NoHome,
}

/// Shows the log, and goes on with `--follow` until somebody ends it.
pub(super) async fn run(arguments: &Logs) -> Result<(), Failure> {
    let folder = folder(arguments.dev)?;
    let mut reader = Reader::new(folder.clone());
    let mut show = Show {
        screen: Screen::new(),
        since: arguments
            .since
            .map(|since| since.at(OffsetDateTime::now_utc())),
        json: arguments.json,
        broken: 0,
    };
    let shown = show.all(&mut reader).await;
    if shown.is_ok() && !reader.has_begun() {
        let folder = shown::link(&folder.to_string_lossy());
        let empty = format!("no log yet: no session has written one in {folder}");
        show.screen.aside(&empty).await;
    }
    let mut shown = shown;
    while shown.is_ok() && arguments.follow {
        sleep(LOG_POLL).await;
        shown = show.all(&mut reader).await;
    }
    match shown {
        // Whoever read it, like `head`, has had enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(failure) => Err(failure),
        Ok(()) => show.count_broken(&reader).await,
    }
}

/// The log that is meant: of the install where there is one, else the owner's own.
fn folder(dev: bool) -> Result<PathBuf, LogsError> {
    let installed = place::log_folder(Form::Installed).filter(|folder| !dev && folder.exists());
    installed
        .or_else(|| place::log_folder(Form::Development))
        .ok_or(LogsError::NoHome)
}

struct Show {
    screen: Screen,
    since: Option<OffsetDateTime>,
    json: bool,
    /// Lines that are none.
    broken: u64,
}

impl Show {
    /// Shows what is new.
    async fn all(&mut self, reader: &mut Reader) -> Result<(), Failure> {
        while let Some(found) = reader.next()? {
            match found {
                Found::Line(text) => self.line(&text).await?,
                Found::TooLong => self.broken += 1,
            }
        }
        Ok(())
    }

    async fn line(&mut self, text: &str) -> Result<(), Failure> {
        let Ok(line) = Line::parse(text) else {
            self.broken += u64::from(!text.trim().is_empty());
            return Ok(());
        };
        if self.since.is_some_and(|since| line.t < since) {
            return Ok(());
        }
        let shown = if self.json {
            line.to_json()
        } else {
            words::line(&line)
        };
        self.screen.line(&shown).await
    }

    async fn count_broken(&mut self, reader: &Reader) -> Result<(), Failure> {
        let broken = self.broken + u64::from(reader.is_inside_a_line());
        if broken > 0 {
            let skipped =
                format!("skipped {broken} lines that are not whole or not of this version");
            self.screen.aside(&skipped).await;
        }
        Ok(())
    }
}
