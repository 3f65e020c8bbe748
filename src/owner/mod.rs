//! The owner's side: commands, what the terminal shows and takes, and the demo.

pub mod arguments;
mod clipboard;
pub mod config;
mod console;
mod demo;
mod doctor;
mod input;
mod installing;
pub mod logs;
mod questions;
mod relay;
pub mod screen;
mod self_test;
mod session;
mod shown;
mod socket;
mod start;
mod status;
mod stop;
mod teller;
mod terminal;
pub mod wish;
mod words;

use std::path::PathBuf;

use self::arguments::Command;
use self::config::ConfigError;
use self::logs::LogsError;
use self::wish::Usage;
use crate::relay::embedded::BindError;
use crate::server::StartError;

/// Why a command failed; its message is printed as it is.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments do not fit together.
    #[error(transparent)]
    Usage(#[from] Usage),
    /// The config file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogsError),
    /// A session without `--dev`.
    #[error("not installed: there is no {}; use --dev to run as the present user", crate::place::installed_program().display())]
    NotInstalled,
    /// The first line of a `server` is no opening.
    #[error("the first line is no session: {0}; `gpu-browser start` starts one")]
    Opening(String),
    /// The server under the account could not do what was asked.
    #[error("{}", shown::lines(.message))]
    Server {
        /// Its words.
        message: String,
        /// Its exit code.
        exit_code: u8,
    },
    /// The session is gone without a word.
    #[error("the session was lost: {}", shown::text(.0))]
    Lost(String),
    /// A Chromium that others than root could change.
    #[error(
        "--chromium is not used: {0}; under the account of the install only a Chromium runs that root alone can change"
    )]
    ForeignChromium(String),
    /// No session came about.
    #[error("{}", shown::lines(&.0.to_string()))]
    Start(#[from] StartError),
    /// The session ended before its time.
    #[error("the session ended before its time: {}", shown::lines(.0))]
    Ended(String),
    /// The relay cannot listen.
    #[error(transparent)]
    Relay(#[from] BindError),
    /// Nobody reads standard output any more.
    #[error("standard output is closed: {0}")]
    Output(std::io::Error),
    /// The system refuses what every command needs.
    #[error("{what}: {source}")]
    System {
        /// What was wanted.
        what: &'static str,
        /// Its words.
        source: std::io::Error,
    },
    /// The demo did not prove everything.
    #[error("the demo did not prove everything: {0}")]
    Demo(String),
    /// A change of the install failed, or was not made.
    #[error("{}", shown::lines(&.0.to_string()))]
    Install(#[from] crate::install::Failure),
    /// Only root may do this.
    #[error("this needs root; run: {0}")]
    NeedsRoot(String),
    /// The rule of the install is another person's.
    #[error("sudo does not let you start the server: {}; who may is said with `sudo gpu-browser update --owner NAME`", shown::text(.0))]
    NoRight(String),
    /// The self-test failed.
    #[error("{}", shown::lines(.0))]
    Unproven(String),
    /// No session runs, or several do.
    #[error("{0}")]
    Which(String),
    /// The owner stopped it before it was done.
    #[error("stopped before it was done")]
    Stopped,
}

impl Failure {
    /// The process's exit code: the one place where it is decided.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Opening(_)
            | Self::ForeignChromium(_)
            | Self::Config(ConfigError::Wrong { .. }) => 2,
            Self::Server { exit_code, .. } => *exit_code,
            Self::Start(error) => error.exit_code(),
            Self::Install(failure) => failure.exit_code(),
            Self::Unproven(_) => 5,
            Self::Config(_)
            | Self::Log(_)
            | Self::NotInstalled
            | Self::NeedsRoot(_)
            | Self::NoRight(_)
            | Self::Lost(_)
            | Self::Ended(_)
            | Self::Relay(_)
            | Self::Output(_)
            | Self::System { .. }
            | Self::Demo(_)
            | Self::Which(_)
            | Self::Stopped => 1,
        }
    }
}

/// Does what must be done before there are threads; none where the command goes on with [`run`].
pub fn alone(command: &Command) -> Option<Result<(), Failure>> {
    match command {
        Command::Reach(arguments) => Some(self_test::reach::run(arguments)),
        Command::Server => session::account::enter().err().map(Err),
        _ => None,
    }
}

/// Where the daemon's own log goes: standard error, but never into a line that is being typed.
#[must_use]
pub fn log_writer() -> screen::LogWriter {
    screen::LogWriter
}

/// Runs one command to its end.
///
/// # Errors
/// With the one message to print, and the exit code.
pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Start(arguments) => start::run(*arguments).await,
        Command::Status(arguments) => status::status(&arguments).await,
        Command::Stop(arguments) => status::stop(&arguments).await,
        Command::Server => session::serve::run().await,
        Command::Demo(arguments) => demo::run(arguments).await,
        Command::Relay(arguments) => relay::run(arguments).await,
        Command::Logs(arguments) => logs::run(&arguments).await,
        Command::Config(arguments) => config::run(arguments).await,
        Command::Install(arguments) => installing::install(arguments).await,
        Command::Update(arguments) => installing::update(arguments).await,
        Command::Uninstall(arguments) => installing::uninstall(arguments).await,
        Command::SelfTest(arguments) => self_test::run(arguments).await,
        Command::Doctor(arguments) => doctor::run(arguments).await,
        Command::SelfTestBody(arguments) => self_test::body::run(arguments).await,
        Command::Reach(arguments) => self_test::reach::run(&arguments),
    }
}

/// Our own program, which becomes Chromium.
fn helper() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|source| Failure::System {
        what: "cannot find our own program",
        source,
    })
}
