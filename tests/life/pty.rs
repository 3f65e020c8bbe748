//! The real program on a pseudo-terminal, and what its screen has shown.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use tempfile::TempDir;

use crate::stage::turn;

/// A start without a remembered verdict tries several browsers.
pub const START: Duration = Duration::from_secs(90);
pub const SOON: Duration = Duration::from_secs(8);

/// The program and its terminal.
pub struct Console {
    child: Child,
    keyboard: File,
    /// Kept, so that the terminal's settings can be read after the program has ended.
    terminal: OwnedFd,
    screen: Arc<Mutex<Screen>>,
    _folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// What came, and what a terminal makes of it: taller than any test's output, so that nothing scrolls away.
struct Screen {
    raw: String,
    terminal: vt100::Parser,
}

const ROWS: u16 = 1000;
const COLUMNS: u16 = 120;

impl Console {
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let turn = turn();
        let size = Winsize {
            ws_row: ROWS,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
        let folder = tempfile::Builder::new()
            .prefix("console-")
            .tempdir_in("/tmp")
            .unwrap();
        std::fs::set_permissions(
            folder.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o711),
        )
        .unwrap();
        let end = || slave.try_clone().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_gpu-browser"))
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env("TMPDIR", folder.path())
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_STATE_HOME", folder.path())
            .env_remove("NO_COLOR")
            .envs(environment.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let mut output = File::from(master.try_clone().unwrap());
        let screen = Arc::new(Mutex::new(Screen {
            raw: String::new(),
            terminal: vt100::Parser::new(ROWS.try_into().unwrap(), COLUMNS.try_into().unwrap(), 0),
        }));
        let drawn = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut chunk) {
                let mut screen = drawn.lock().unwrap();
                screen
                    .raw
                    .push_str(&String::from_utf8_lossy(&chunk[..length]));
                screen.terminal.process(&chunk[..length]);
            }
        });
        Self {
            child,
            keyboard: File::from(master),
            terminal: slave,
            screen,
            _folder: folder,
            _turn: turn,
        }
    }

    /// Presses keys.
    pub fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen is as it should be.
    pub fn until(&self, within: Duration, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + within;
        loop {
            let screen = self.shown();
            if is_so(&screen) {
                return screen;
            }
            assert!(
                Instant::now() < deadline,
                "{what}: this never came; the screen shows:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a text is on the screen.
    pub fn wait(&self, text: &str, within: Duration) -> String {
        self.until(within, text, |screen| screen.contains(text))
    }

    /// Waits until the line at the bottom, the one that is typed, is this.
    pub fn wait_line(&self, line: &str) {
        self.until(SOON, line, |screen| {
            screen
                .lines()
                .next_back()
                .is_some_and(|last| last.trim_end() == line)
        });
    }

    /// Waits for the link, and returns it.
    pub fn link(&self) -> String {
        let screen = self.wait("Type help", START);
        let link = screen.lines().find(|line| line.ends_with("/agents.md"));
        link.unwrap().trim().to_owned()
    }

    /// What the screen shows.
    pub fn shown(&self) -> String {
        self.screen.lock().unwrap().terminal.screen().contents()
    }

    /// All that was ever written to the terminal.
    pub fn raw(&self) -> String {
        self.screen.lock().unwrap().raw.clone()
    }

    pub fn ended(&mut self, within: Duration) -> ExitStatus {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "still there; the screen shows:\n{}",
                self.shown()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the terminal shows what is typed and waits for whole lines, as a shell wants it.
    pub fn is_as_it_was(&self) -> bool {
        let flags = tcgetattr(&self.terminal).unwrap().local_flags;
        flags.contains(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
