//! One running Chromium: started in its namespace, spoken to over its pipe, ended with its whole tree.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::account::{Account, unprivileged};
use super::command::{EnableFetch, GetVersion, RequestPattern, SetAutoAttach};
use super::display::{Display, DisplayError};
use super::find::ChromiumPath;
use super::flags::{self, Start};
use super::folder::RunFolder;
use super::namespace::{Arrived, Program};
use super::pipe::{CallError, Connection};
use super::policies::{self, PolicyHole};
use super::rung::Rung;
use super::spawn::{Launch, Log, Process, SpawnError, Waiting, prepare};
use super::targets::Targets;
use super::wire::Codec;
use crate::policy::limits::{BROWSER_START, SHUTDOWN};
use crate::policy::switches::OwnerSwitches;

/// The page that a context is primed with: plain http, so that the proxy's question reaches us.
pub const PRIME_URL: &str = "http://prime.gpu-browser.internal/";
/// A browser that has not answered in binary by then gets a second start with JSON.
const CBOR_ANSWER: Duration = Duration::from_secs(10);

/// A browser that ends has closed its pipe before its status is there.
const AFTER_PIPE: Duration = Duration::from_millis(300);

/// Why there is no browser.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The display it needs is not there.
    #[error(transparent)]
    Display(#[from] DisplayError),
    /// Its folder could not be made.
    #[error("the browser's folder could not be made: {0}")]
    Folder(#[from] std::io::Error),
    /// A policy of the machine beats the boundary.
    #[error(transparent)]
    Policy(#[from] PolicyHole),
    /// It started and did not answer; with the end of its log.
    #[error("Chromium started but did not answer: {reason}\n{log}")]
    Silent {
        /// What went wrong on the wire.
        reason: CallError,
        /// The end of its standard error.
        log: String,
    },
}

/// What every start of a session has in common.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Chromium.
    pub program: ChromiumPath,
    /// Our own program, which starts it.
    pub helper: PathBuf,
    /// The key of the uploads host.
    pub uploads_key: String,
    /// Chromium's own sandbox; off only in development.
    pub sandbox: bool,
    /// GPU switches of the owner's.
    pub switches: OwnerSwitches,
    /// The account to drop to.
    pub account: Option<Account>,
}

impl Setup {
    /// A setup for this process: the account is `nobody` or better where we are root.
    pub fn new(program: ChromiumPath, helper: PathBuf, uploads_key: String) -> Self {
        Self {
            program,
            helper,
            uploads_key,
            sandbox: true,
            switches: OwnerSwitches::default(),
            account: unprivileged(),
        }
    }
}

/// Where the browser lives: in a network namespace, or why not.
pub type Isolation = Result<(), String>;

/// A running browser, as those see it who use it.
#[derive(Clone)]
pub struct Chromium {
    /// The wire.
    pub connection: Connection,
    /// What comes to be in it.
    pub targets: Arc<Targets>,
    /// `Chrome/156.0.8078.114`.
    pub version: String,
    /// Its main process.
    pub process: u32,
    /// Its GPU flags.
    pub rung: Rung,
    /// Whether it has a network of its own.
    pub isolation: Isolation,
}

/// Its processes, as the one sees them who ends them.
pub struct Body {
    connection: Connection,
    process: Process,
    display: Option<Display>,
    tasks: JoinSet<()>,
}

/// What a launch gives: the browser, its processes, and the socket that is its only way out; the proxy must accept on it.
pub type Launched = (Chromium, Body, TcpListener);

impl Chromium {
    /// Starts one on a rung.
    pub async fn launch(
        setup: &Setup,
        rung: Rung,
        folder: &RunFolder,
    ) -> Result<Launched, LaunchError> {
        match Self::launch_speaking(Codec::Cbor, setup, rung, folder).await {
            Err(LaunchError::Silent {
                reason: CallError::Timeout { .. },
                ..
            }) => {
                tracing::info!("the browser does not speak CBOR; starting it again with JSON");
                Self::launch_speaking(Codec::Json, setup, rung, folder).await
            }
            outcome => outcome,
        }
    }

    /// As [`launch`](Self::launch), with one codec.
    pub async fn launch_speaking(
        codec: Codec,
        setup: &Setup,
        rung: Rung,
        folder: &RunFolder,
    ) -> Result<Launched, LaunchError> {
        policies::check()?;
        let profile = folder.new_profile()?;
        let mut launch = Launch {
            helper: setup.helper.clone(),
            account: setup.account.clone(),
            environment: folder.environment(),
            network: true,
        };
        let display = if rung.needs_display() {
            Some(Display::start(&launch, folder).await?)
        } else {
            None
        };
        launch
            .environment
            .extend(display.iter().flat_map(Display::environment));
        let (waiting, listener, isolation) = settle(launch).await?;
        let start = Start {
            rung,
            proxy_port: listener.local_addr()?.port(),
            uploads_key: &setup.uploads_key,
            profile: &profile,
            cbor: codec == Codec::Cbor,
            sandbox: setup.sandbox,
            owner: &setup.switches,
        };
        let path = setup.program.as_path().to_owned();
        let program = Program {
            path,
            arguments: flags::command_line(&start),
            pipe: true,
        };
        let (process, pipe) = waiting.run(&program)?;
        let mut tasks = JoinSet::new();
        let connection = connect(codec, pipe, &mut tasks)?;
        let mut chromium = Self {
            targets: Targets::listen(&connection),
            connection: connection.clone(),
            version: String::new(),
            process: process.id(),
            rung,
            isolation,
        };
        let body = Body {
            connection,
            process,
            display,
            tasks,
        };
        let answer = if codec == Codec::Cbor {
            CBOR_ANSWER
        } else {
            BROWSER_START
        };
        match chromium.greet(answer).await {
            Ok(version) => chromium.version = version,
            Err(reason) => {
                let log = body.log().tail(10);
                body.end(Duration::ZERO).await;
                return Err(LaunchError::Silent { reason, log });
            }
        }
        Ok((chromium, body, listener))
    }

    /// Asks for the version, attaches to whatever comes to be, and sets the narrow trap for the proxy's question.
    async fn greet(&self, within: Duration) -> Result<String, CallError> {
        let version = self
            .connection
            .start_raw(None, &GetVersion {}, within)
            .await?;
        let version: super::command::Version =
            version.parse().map_err(|_| CallError::Malformed {
                method: "Browser.getVersion",
            })?;
        let attach = SetAutoAttach {
            auto_attach: true,
            wait_for_debugger_on_start: true,
            flatten: true,
        };
        let attach = self.connection.start(None, &attach);
        let pattern = RequestPattern {
            url_pattern: "http://prime.gpu-browser.internal/*",
        };
        let trap = self.connection.start(
            None,
            &EnableFetch {
                patterns: vec![pattern],
                handle_auth_requests: true,
            },
        );
        attach.await?;
        trap.await?;
        Ok(version.product)
    }
}

impl Body {
    /// The end of what Chromium wrote to standard error.
    pub fn log(&self) -> Log {
        self.process.log()
    }

    /// Waits until it, its pipe or its display is gone, and says which.
    pub async fn ended(&mut self) -> String {
        let connection = self.connection.clone();
        let display = async {
            match &mut self.display {
                Some(display) => display.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = self.process.ended() => format!("Chromium ended ({status})"),
            status = display => format!("Xvfb ended ({status})"),
            () = connection.gone() => match timeout(AFTER_PIPE, self.process.ended()).await {
                Ok(status) => format!("Chromium ended ({status})"),
                Err(_) => "Chromium closed its pipe".to_owned(),
            },
        }
    }

    /// Ends it in order, then what is left of its tree, then its display.
    pub async fn end(mut self, grace: Duration) {
        // Chromium ends in order when its pipe is closed.
        self.connection.close();
        self.process.end(grace.min(SHUTDOWN)).await;
        while self.tasks.join_next().await.is_some() {}
        if let Some(display) = self.display {
            display.end().await;
        }
    }
}

/// Brings the helper to where the browser shall live; where the kernel refuses a namespace, on the host, with the reason.
async fn settle(mut launch: Launch) -> Result<(Waiting, TcpListener, Isolation), LaunchError> {
    let mut waiting = prepare(&launch).await?;
    if let Some(listener) = waiting.listener.take() {
        return Ok((waiting, listener, Ok(())));
    }
    let reason = match &waiting.arrived {
        Arrived::NoNamespace(reason) => reason.clone(),
        Arrived::Refused(reason) => return Err(SpawnError::Refused(reason.clone()).into()),
        Arrived::Namespace | Arrived::Host => "the helper brought no socket".to_owned(),
    };
    tracing::warn!(%reason, "no network namespace; the proxy and Chromium's flags alone hold the boundary");
    launch.network = false;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok((prepare(&launch).await?, listener, Err(reason)))
}

fn connect(
    codec: Codec,
    pipe: StdStream,
    tasks: &mut JoinSet<()>,
) -> Result<Connection, LaunchError> {
    pipe.set_nonblocking(true)?;
    let (input, output) = UnixStream::from_std(pipe)?.into_split();
    Ok(Connection::open(codec, input, output, tasks))
}
