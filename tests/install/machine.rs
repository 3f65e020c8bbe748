//! A machine to throw away: an overlay on the real tree, with a process table of its own, gone with the test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::tree::Tree;

/// The program under test, as the owner has downloaded it.
pub const PROGRAM: &str = "/tmp/gpu-browser";
/// A person with an ordinary account, for whom it is installed.
pub const OWNER: &str = "ann";
/// Another one.
pub const STRANGER: &str = "bob";
/// The account of the install.
pub const ACCOUNT: &str = "agent-socket-gpu-browser";
/// The installed program.
pub const INSTALLED: &str = "/opt/agent-socket/gpu-browser/current/gpu-browser";

/// Makes the machine in a folder: `$1`, with the program `$2`; then waits for the end of standard input.
const MAKE: &str = r#"
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/machine"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/machine"
mount --rbind /dev "$1/machine/dev"
mount --rbind /sys "$1/machine/sys"
mount -t proc proc "$1/machine/proc"
mount -t tmpfs -o mode=1777 tmpfs "$1/machine/tmp"
# Without its symbols it is copied and hashed twice as fast.
strip --strip-all -o "$1/machine/tmp/gpu-browser" "$2" 2>/dev/null || cp "$2" "$1/machine/tmp/gpu-browser"
chmod 755 "$1/machine/tmp/gpu-browser"
printf x | cat "$1/machine/tmp/gpu-browser" - > "$1/machine/tmp/gpu-browser-next"
chmod 755 "$1/machine/tmp/gpu-browser-next"
mkdir -m 700 "$1/machine/tmp/.real" "$1/machine/tmp/.upper"
mount --bind "$1/upper" "$1/machine/tmp/.upper"
cd "$1/machine"
# No chroot: the kernel gives no user namespaces to a process in one.
pivot_root . tmp/.real
cd /
umount -l /tmp/.real
# Only now: whoever enters it before would be in the real tree.
echo ready
exec cat
"#;

/// The machine.
pub struct Machine {
    holder: Child,
    _alive: ChildStdin,
    inside: u32,
    _folder: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl Ran {
    /// Fails the test unless the exit code is this one.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Fails the test unless a signal ended it.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.output.contains(text) || self.errors.contains(text),
            "no {text:?}: {self:#?}"
        );
        self
    }
}

impl Machine {
    /// A machine with two people on it.
    pub fn new() -> Self {
        assert!(nix::unistd::geteuid().is_root(), "these tests need root");
        let folder = tempfile::tempdir().unwrap();
        let mut holder = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--propagation",
                "private",
            ])
            .args(["sh", "-c", MAKE, "sh"])
            .arg(folder.path())
            .arg(env!("CARGO_BIN_EXE_gpu-browser"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(
            line, "ready\n",
            "no machine could be made: it needs overlayfs"
        );
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let inside = std::fs::read_to_string(children)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let machine = Self {
            _alive: holder.stdin.take().unwrap(),
            holder,
            inside,
            _folder: folder,
        };
        // The real tree must never be taken for it.
        machine.root("test -x /tmp/gpu-browser-next").expect(0);
        for person in [OWNER, STRANGER] {
            machine
                .root(&format!(
                    "useradd --create-home {person} && chmod 700 /home/{person}"
                ))
                .expect(0);
        }
        machine
    }

    /// Runs a line of shell as root.
    pub fn root(&self, line: &str) -> Ran {
        let output = self.command(line).output().unwrap();
        Ran {
            code: output.status.code(),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A line of shell as root, not started yet.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args([
                "--target",
                &self.inside.to_string(),
                "--mount",
                "--pid",
                "--root",
                "--wd",
            ])
            .args(["sh", "-c", line])
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", "/root")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a line of shell as a person.
    pub fn person(&self, name: &str, line: &str) -> Ran {
        self.root(&format!("cd / && exec runuser -u {name} -- sh -c '{line}'"))
    }

    /// Runs the program as root, as sudo of the owner's would.
    pub fn program(&self, arguments: &str) -> Ran {
        self.root(&format!("SUDO_USER={OWNER} {PROGRAM} {arguments}"))
    }

    /// Installs, without the proof that takes a browser.
    pub fn install(&self) {
        self.program("install --yes --skip-self-test")
            .expect(5)
            .says("installed, not proven");
    }

    /// A path of the machine, from outside.
    pub fn path(&self, path: &str) -> PathBuf {
        self.merged().join(path.trim_start_matches('/'))
    }

    /// The tree as it differs from the real one.
    pub fn tree(&self) -> Tree {
        Tree::of(&self.path("/tmp/.upper"), &self.merged())
    }

    fn merged(&self) -> PathBuf {
        Path::new("/proc")
            .join(self.inside.to_string())
            .join("root")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
