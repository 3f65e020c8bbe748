//! An owner's home, and the program run in it.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::agent::Agent;

/// A home without any file.
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new()
            .prefix("owner-")
            .tempdir_in("/tmp")
            .unwrap();
        // The browser's account passes through.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).unwrap();
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn log(&self) -> PathBuf {
        self.path().join("state/gpu-browser/log.jsonl")
    }

    pub fn config(&self) -> PathBuf {
        self.path().join("config/gpu-browser/config.toml")
    }

    pub fn write_config(&self, text: &str) {
        std::fs::create_dir_all(self.config().parent().unwrap()).unwrap();
        std::fs::write(self.config(), text).unwrap();
    }

    /// Appends lines to the log, as a session does.
    pub fn write_log(&self, text: &str) {
        std::fs::create_dir_all(self.log().parent().unwrap()).unwrap();
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log());
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-browser"));
        command
            .args(arguments)
            .env("HOME", self.path())
            .env("TMPDIR", self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            // The verdict of the probe is shared by all tests, and is none of the tester's own.
            .env(
                "XDG_CACHE_HOME",
                Path::new(env!("CARGO_TARGET_TMPDIR")).join("life-cache"),
            );
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::from(self.command(arguments).output().unwrap())
    }

    /// A session whose link works, and what it said of itself.
    pub fn start(&self, arguments: &[&str]) -> (Running, Value) {
        let start = ["start", "--dev", "--json"];
        let mut session = Running::new(&mut self.command(&[&start, arguments].concat()));
        let ready = session.event("ready");
        (session, ready)
    }

    /// Runs a session, and leaves it to an agent for a while.
    pub fn session(&self, arguments: &[&str], visit: impl FnOnce(&Value, &Agent)) {
        let (session, ready) = self.start(arguments);
        visit(&ready, &agent(&ready));
        session.stop();
    }
}

/// An agent that holds a session's link.
pub fn agent(ready: &Value) -> Agent {
    Agent::new(ready["link"].as_str().unwrap())
}

/// A program that runs; killed when it is dropped.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub fn new(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    pub fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// The next event of a name.
    pub fn event(&mut self, name: &str) -> Value {
        loop {
            let event: Value = serde_json::from_str(&self.line()).unwrap();
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Types a line.
    pub fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Stops a session, which ends in order.
    pub fn stop(mut self) {
        self.say("stop");
        self.lines.by_ref().for_each(drop);
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a command came to.
pub struct Done {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
