//! The one place that starts children: environment from nothing, account dropped, an own process group, and a thread
//! that lives as long as the daemon, since the kernel's "die with your parent" means the thread that started it.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::account::Account;
use super::namespace::{Arrived, Orders, Program, receive};
use crate::policy::limits::BROWSER_LOG;

/// What a child wrote before its end is read within this.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The hidden subcommand that runs [`super::namespace::enter`].
pub const HELPER: &str = "__enter";

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The helper or the program did not start.
    #[error("{program} could not be started: {source}")]
    Start {
        /// What was to be started.
        program: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The helper is not where it should be.
    #[error("the account or the namespace of the browser could not be set up: {0}")]
    Refused(String),
}

/// How a child is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Our own program, which becomes the child.
    pub helper: PathBuf,
    /// The account to become.
    pub account: Option<Account>,
    /// The whole environment.
    pub environment: Vec<(&'static str, PathBuf)>,
    /// Whether to try for a network namespace.
    pub network: bool,
}

/// A helper that has arrived and waits for the go-ahead.
pub struct Waiting {
    child: Child,
    control: UnixStream,
    output: OwnedFd,
    /// Where it is.
    pub arrived: Arrived,
    /// The socket that was made inside the namespace.
    pub listener: Option<TcpListener>,
}

/// A running child and the end of what it wrote to standard error.
pub struct Process {
    child: Child,
    group: Pid,
    log: Log,
    reader: JoinSet<()>,
}

/// The last [`BROWSER_LOG`] bytes of a child's standard error.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<VecDeque<u8>>>);

/// Starts the helper and waits until it is where it should be.
pub async fn prepare(launch: &Launch) -> Result<Waiting, SpawnError> {
    let start = |source| SpawnError::Start {
        program: launch.helper.clone(),
        source,
    };
    let (control, theirs) = UnixStream::pair().map_err(start)?;
    let (output, their_output) = UnixStream::pair().map_err(start)?;
    let orders = Orders {
        account: launch.account.clone(),
        network: launch.network,
        parent: std::process::id(),
    };
    let orders = serde_json::to_string(&orders).map_err(|error| start(error.into()))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that starts children"
    )]
    let mut command = Command::new(&launch.helper);
    command
        .args([HELPER, &orders])
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(their_output)))
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let child = spawn(command).await.map_err(start)?;
    let received =
        tokio::task::spawn_blocking(move || receive(&control).map(|arrival| (control, arrival)));
    let (control, (arrived, listener)) = received
        .await
        .map_err(|error| start(error.into()))?
        .map_err(start)?;
    Ok(Waiting {
        child,
        control,
        output: output.into(),
        arrived,
        listener,
    })
}

impl Waiting {
    /// Lets the helper become the program; returns our end of its descriptors 3 and 4 (or of its standard output).
    pub fn run(mut self, program: &Program) -> Result<(Process, UnixStream), SpawnError> {
        let start = |source| SpawnError::Start {
            program: program.path.clone(),
            source,
        };
        if let Arrived::Refused(reason) | Arrived::NoNamespace(reason) = self.arrived {
            return Err(SpawnError::Refused(reason));
        }
        let bytes = serde_json::to_vec(program).map_err(|error| start(error.into()))?;
        self.control.write_all(&bytes).map_err(start)?;
        drop(self.control);
        let log = Log::default();
        let mut reader = JoinSet::new();
        if let Some(errors) = self.child.stderr.take() {
            reader.spawn(log.clone().fill(errors));
        }
        let group = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .unwrap_or(0);
        Ok((
            Process {
                child: self.child,
                group: Pid::from_raw(group),
                log,
                reader,
            },
            UnixStream::from(self.output),
        ))
    }
}

impl Process {
    /// The main process.
    pub fn id(&self) -> u32 {
        self.group.as_raw().unsigned_abs()
    }

    /// The end of its standard error.
    pub fn log(&self) -> Log {
        self.log.clone()
    }

    /// Waits for its end, then kills what is left of its tree.
    pub async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        self.kill_group();
        // Its last words are the ones that say why; whoever else holds the pipe may keep it open.
        let _ = tokio::time::timeout(LAST_WORDS, self.reader.join_next()).await;
        self.reader.abort_all();
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Gives it a time to end by itself, then kills the whole tree, and reaps it.
    pub async fn end(mut self, grace: Duration) {
        let ended = tokio::time::timeout(grace, self.child.wait()).await;
        if ended.is_err() && !grace.is_zero() {
            tracing::debug!(id = self.id(), ?grace, "killed: it did not end by itself");
        }
        self.kill_group();
        let _ = self.child.wait().await;
        self.reader.abort_all();
    }

    fn kill_group(&self) {
        // 0 would be our own group.
        if self.group.as_raw() > 1 {
            let _ = killpg(self.group, Signal::SIGKILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

impl Log {
    /// The end of the log, at most so many lines.
    pub fn tail(&self, lines: usize) -> String {
        let bytes: Vec<u8> = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    async fn fill(self, mut from: impl AsyncReadExt + Unpin) {
        let mut buffer = vec![0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            log.extend(&buffer[..read]);
            let excess = log.len().saturating_sub(BROWSER_LOG);
            log.drain(..excess);
        }
    }
}

type Request = (
    Command,
    tokio::runtime::Handle,
    oneshot::Sender<std::io::Result<Child>>,
);

/// Hands a command to the thread that starts children.
async fn spawn(command: Command) -> std::io::Result<Child> {
    static THREAD: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    let thread = THREAD.get_or_init(|| {
        let (sender, requests) = mpsc::channel::<Request>();
        std::thread::spawn(move || {
            for (mut command, runtime, reply) in requests {
                let _entered = runtime.enter();
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, child) = oneshot::channel();
    let gone = || std::io::Error::other("the thread that starts children is gone");
    thread
        .send((command, tokio::runtime::Handle::current(), reply))
        .map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}
