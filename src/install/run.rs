//! The one file of an install that starts programs: of the system alone, with an environment from nothing and an end in
//! sight.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::action::Error;
use crate::place;

/// `useradd` waits 15 s for a lock, and a user database on the network may be slow; nothing of ours takes a minute.
const LONGEST: Duration = Duration::from_secs(60);
/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    /// Its exit code; none where a signal ended it.
    pub(super) code: Option<i32>,
    /// Standard output.
    pub(super) output: String,
    /// Standard error.
    pub(super) errors: String,
}

impl Ran {
    /// Whether it says that it succeeded. Never enough: what it should have done is read back.
    pub(super) fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// The program's own words, in one line.
    pub(super) fn words(&self) -> String {
        let said = if self.errors.trim().is_empty() {
            &self.output
        } else {
            &self.errors
        };
        let said: Vec<&str> = said.lines().map(str::trim).collect();
        said.join("; ")
    }
}

/// Whether the system has a program.
pub(super) fn has(program: &str) -> bool {
    std::env::split_paths(place::SYSTEM_PATH).any(|folder| folder.join(program).is_file())
}

/// Runs a program to its end.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<Ran, Error> {
    let failed = |source| Error::Start {
        program: program.to_owned(),
        source,
    };
    let path = std::env::split_paths(place::SYSTEM_PATH)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of an install that starts programs"
    )]
    let mut command = Command::new(path);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", place::SYSTEM_PATH)
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let output = reader(child.stdout.take());
    let errors = reader(child.stderr.take());
    let began = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if began.elapsed() > LONGEST => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(std::io::ErrorKind::TimedOut.into()));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let read = |reader: std::thread::JoinHandle<String>| reader.join().unwrap_or_default();
    Ok(Ran {
        code: status.code(),
        output: read(output),
        errors: read(errors),
    })
}

/// Becomes our own program with another argument and environment; returns only where that failed.
#[expect(
    clippy::disallowed_methods,
    reason = "this process becomes the program; nothing is started"
)]
pub(super) fn replace(argument: &str, environment: Vec<(&'static str, PathBuf)>) -> std::io::Error {
    match std::env::current_exe() {
        Ok(program) => Command::new(program)
            .arg(argument)
            .env_clear()
            .envs(environment)
            .exec(),
        Err(error) => error,
    }
}

/// As [`run`], where anything but success is an error.
pub(super) fn expect(program: &str, arguments: &[&str]) -> Result<Ran, Error> {
    let ran = run(program, arguments)?;
    if ran.is_success() {
        return Ok(ran);
    }
    Err(Error::Program {
        line: [&[program], arguments].concat().join(" "),
        code: ran.code,
        words: ran.words(),
    })
}

/// A full pipe would stop the program: both are read while it runs.
fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
