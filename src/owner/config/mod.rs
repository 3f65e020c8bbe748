//! `config.toml`: what the owner wants of every session. The command line wins over it.
//!
//! The file is parsed once into [`ConfigFile`]; a wrong line is an error that names it, for a setting that is silently left out
//! could be the one that closes something.

mod file;
mod remember;
mod template;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

pub use self::file::ConfigFile;
pub use self::remember::remember;

use super::Failure;
use super::screen::Screen;
use super::shown;
use crate::place;
use crate::policy::limits::CONFIG_FILE;

/// `gpu-browser config`.
#[derive(Debug, Args)]
pub struct Config {
    /// What to do with it.
    #[command(subcommand)]
    pub command: ConfigCommand,
    /// Another file than the usual one
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// What can be done with the config file.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a new one, with every key and what it does
    Init {
        /// Replace the one that is there
        #[arg(long)]
        force: bool,
    },
    /// Say where it is
    Path,
}

/// The config file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A line of it is wrong.
    #[error("{}:{line}: {}", shown::text(&.path.to_string_lossy()), shown::text(.what))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// It could not be read or written.
    #[error("{}: {source}", shown::text(&.path.to_string_lossy()))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A new one would replace one that is there.
    #[error("{} is there already; --force replaces it", shown::text(&.0.to_string_lossy()))]
    Exists(PathBuf),
    /// Nobody says where the owner's files are.
    #[error("there is no home directory (HOME is not set); name the file with --config FILE")]
    NoHome,
}

/// The settings of a file. The usual one may be missing; one that was named may not.
///
/// # Errors
/// Where it cannot be read, or a line of it is wrong.
pub fn read(named: Option<&Path>) -> Result<ConfigFile, ConfigError> {
    let path = match (named, place::config_file()) {
        (Some(path), _) => path.to_owned(),
        (None, Some(path)) => path,
        (None, None) => return Ok(ConfigFile::default()),
    };
    match text(&path) {
        Ok(text) => ConfigFile::parse(&text, &path),
        Err(source) if source.kind() == io::ErrorKind::NotFound && named.is_none() => {
            Ok(ConfigFile::default())
        }
        Err(source) => Err(ConfigError::File { path, source }),
    }
}

/// `gpu-browser config`.
pub(super) async fn run(arguments: Config) -> Result<(), Failure> {
    let path = path(arguments.config.as_deref())?;
    if let ConfigCommand::Init { force } = arguments.command {
        template::write(&path, force)?;
    }
    let shown = shown::link(&path.to_string_lossy());
    Screen::new().line(&shown).await
}

fn path(named: Option<&Path>) -> Result<PathBuf, ConfigError> {
    let usual = || place::config_file().ok_or(ConfigError::NoHome);
    named.map_or_else(usual, |path| Ok(path.to_owned()))
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(CONFIG_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > CONFIG_FILE {
        return Err(io::Error::other(format!("it is over {CONFIG_FILE} bytes")));
    }
    Ok(text)
}
