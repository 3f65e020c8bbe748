//! The real program with a folder of its own for everything that it leaves.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::agent::Agent;
use crate::processes::{Process, descendants, naming, process};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_gpu-browser");
/// In the environment of the program, and to stay there.
pub const SECRET: &str = "the-owner-s-own-secret";
/// A start without a remembered verdict tries several browsers.
const START: Duration = Duration::from_secs(90);

/// Two browsers beside each other on two cores miss their deadlines.
static TURN: Mutex<()> = Mutex::new(());

/// A run of the program; dropped, nothing of it is left.
pub struct Stage {
    child: Child,
    events: Receiver<Value>,
    log: Option<JoinHandle<String>>,
    folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// How a run ended.
pub struct Ended {
    pub status: ExitStatus,
    pub log: String,
    pub took: Duration,
    /// What it said on standard output and nobody had taken yet.
    pub events: Vec<Value>,
}

impl Stage {
    /// Starts the program with these arguments and waits for nothing.
    pub fn run(arguments: &[&str]) -> Self {
        let turn = turn();
        let folder = tempfile::Builder::new()
            .prefix("life-")
            .tempdir_in("/tmp")
            .unwrap();
        // The browser's account passes through.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .env("TMPDIR", folder.path())
            // The verdict of the probe is shared by all tests here, and is none of the tester's own.
            .env(
                "XDG_CACHE_HOME",
                Path::new(env!("CARGO_TARGET_TMPDIR")).join("life-cache"),
            )
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_STATE_HOME", folder.path())
            .env("SECRET_OF_THE_OWNER", SECRET)
            .env("HTTPS_PROXY", format!("http://{SECRET}.example"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, events) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line);
                let event = event.unwrap_or_else(|_| panic!("no JSON on standard output: {line}"));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let mut errors = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            events,
            log: Some(log),
            folder,
            _turn: turn,
        }
    }

    /// A session that is ready, and an agent that holds its link.
    pub fn ready() -> (Self, Agent) {
        Self::ready_with(&[])
    }

    /// As [`ready`](Self::ready), with more said on the command line.
    pub fn ready_with(arguments: &[&str]) -> (Self, Agent) {
        let usual = ["start", "--dev", "--json", "--relay", "local"];
        let stage = Self::run(&[&usual, arguments].concat());
        let ready = stage.event("ready", START);
        let agent = Agent::new(ready["link"].as_str().unwrap());
        (stage, agent)
    }

    /// Waits for an event of a name; others before it are passed over.
    pub fn event(&self, name: &str, within: Duration) -> Value {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(event) = self.events.recv_timeout(left) else {
                panic!("no event `{name}` came");
            };
            if event["event"] == name {
                return event;
            }
        }
    }

    pub fn daemon(&self) -> Process {
        process(self.child.id()).unwrap()
    }

    /// Everything that the daemon has started.
    pub fn children(&self) -> Vec<Process> {
        descendants(self.child.id())
    }

    /// The main process of the browser, where there is one.
    pub fn chromium(&self) -> Option<Process> {
        self.children().into_iter().find(|one| {
            one.command.contains("--user-data-dir=") && !one.command.contains("--type=")
        })
    }

    /// Where the run keeps its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folders of runs that are still there.
    pub fn run_folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.to_string_lossy().contains("gpu-browser-"))
            .collect()
    }

    pub fn signal(&self, signal: Signal) {
        kill(pid(self.child.id()), signal).unwrap();
    }

    /// Waits until a renderer has worked for a while without a pause.
    pub fn wait_for_work(&self) {
        let renderers = || {
            let children = self.children().into_iter();
            children.filter(|one| one.command.contains("--type=renderer"))
        };
        let busy =
            |before: &[(Process, u64)]| before.iter().any(|(one, ticks)| one.ticks() > ticks + 8);
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            let before: Vec<(Process, u64)> =
                renderers().map(|one| (one.clone(), one.ticks())).collect();
            std::thread::sleep(Duration::from_millis(100));
            if busy(&before) {
                return;
            }
        }
        panic!("no renderer is busy");
    }

    /// Types a line at the owner's console.
    pub fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for the end of the program.
    pub fn ended(&mut self, within: Duration) -> Ended {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < within, "still there after {within:?}");
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = began.elapsed();
        Ended {
            status,
            log: self.log.take().unwrap().join().unwrap(),
            took,
            events: self.events.iter().collect(),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for left in naming(self.folder.path()) {
            let _ = kill(pid(left.id), Signal::SIGKILL);
        }
        if std::thread::panicking()
            && let Some(log) = self.log.take()
        {
            println!("{}", log.join().unwrap_or_default());
        }
    }
}

/// Waits until no other test has a browser.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process number as signals want it.
pub fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap())
}

/// Waits until a list is empty, and returns what is left of it at the deadline.
pub fn until_empty<T>(within: Duration, list: impl Fn() -> Vec<T>) -> Vec<T> {
    let deadline = Instant::now() + within;
    loop {
        let left = list();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
