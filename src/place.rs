//! Every name and path of ours on the machine, for each system; the only reader of the environment.

use std::path::{Path, PathBuf};

/// The name of the account of an install, of its group and of its sudoers file.
pub const ACCOUNT: &str = "agent-socket-gpu-browser";
/// The app id that the daemon registers under at a relay.
pub const APP_ID: &str = "gpu-browser";
/// The public relay.
pub const PUBLIC_RELAY: &str = "https://agentsocket.dev";

/// Where an install lies. No path has a space, which sudo's rules cannot quote, and no name in `/etc` a dot, which sudo
/// and cron pass over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The account's home, its own alone.
    pub home: &'static str,
    /// The program's folder, root's alone: `versions/<version>/` and the link `current`.
    pub program: &'static str,
    /// Journal and locks: root writes them, the account reads them.
    pub records: &'static str,
    /// The folder of sudo's rules.
    pub sudoers: &'static str,
    /// The folder of AppArmor's profiles.
    pub apparmor: &'static str,
}

/// The layout on Linux.
pub const LINUX: Layout = Layout {
    home: "/var/lib/agent-socket-gpu-browser",
    program: "/opt/agent-socket/gpu-browser",
    records: "/var/lib/agent-socket/gpu-browser",
    sudoers: "/etc/sudoers.d",
    apparmor: "/etc/apparmor.d",
};

/// The layout on macOS: never below `/usr/local` or `/opt/homebrew`, which belong to a person there.
pub const MACOS: Layout = Layout {
    home: "/private/var/agent-socket-gpu-browser",
    program: "/Library/AgentSocket/gpu-browser",
    records: "/private/var/agent-socket/gpu-browser",
    sudoers: "/private/etc/sudoers.d",
    apparmor: "",
};

/// The layout of this system.
pub const LAYOUT: Layout = if cfg!(target_os = "macos") {
    MACOS
} else {
    LINUX
};

/// The files of the records: what happened, the lease that an update waits for, and the lock of the one server.
pub const RECORD_FILES: [&str; 3] = ["journal", "install.lock", "server.lock"];

/// Where system programs lie: the whole search path of what an install starts and of the account.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Layout {
    /// The folders of the versions.
    pub fn versions(&self) -> PathBuf {
        Path::new(self.program).join("versions")
    }

    /// Chromiums that were unpacked from an archive.
    pub fn chromiums(&self) -> PathBuf {
        Path::new(self.program).join("chromium")
    }

    /// The link to the version in use.
    pub fn current(&self) -> PathBuf {
        Path::new(self.program).join("current")
    }

    /// The installed program, as the owner's rule names it.
    pub fn installed(&self) -> PathBuf {
        self.current().join("gpu-browser")
    }

    /// The Chromium of an archive, where the version in use has one.
    pub fn chromium(&self) -> PathBuf {
        self.current().join("chromium/chrome")
    }

    /// The owner's rule.
    pub fn sudoers_file(&self) -> PathBuf {
        Path::new(self.sudoers).join(ACCOUNT)
    }

    /// The profile.
    pub fn apparmor_file(&self) -> PathBuf {
        Path::new(self.apparmor).join(ACCOUNT)
    }
}

/// Who called sudo (`SUDO_USER`): the person an install is for.
pub fn sudo_caller() -> Option<String> {
    variable("SUDO_USER")?.into_string().ok()
}

/// Our program in its installed place, the only one that the owner may run under the account.
pub fn installed_program() -> PathBuf {
    LAYOUT.installed()
}

/// The two forms that a session runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Under the account of an install.
    Installed,
    /// As the present user (`--dev`).
    Development,
}

/// The folder that the verdicts of the probe are cached in.
pub fn cache_folder() -> Option<PathBuf> {
    let base = if cfg!(target_os = "macos") {
        home()?.join("Library/Caches")
    } else {
        variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(home()?.join(".cache")))?
    };
    Some(base.join("gpu-browser"))
}

/// The folder of the log. Of a session under the account: made by the install, the account's, and readable to the owner's
/// group (2750), for the account's home is closed to everybody. In development: the owner's own.
pub fn log_folder(form: Form) -> Option<PathBuf> {
    match form {
        Form::Installed if cfg!(target_os = "macos") => Some("/Library/Logs".into()),
        Form::Installed => Some("/var/log".into()),
        Form::Development if cfg!(target_os = "macos") => Some(home()?.join("Library/Logs")),
        Form::Development => variable("XDG_STATE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(home()?.join(".local/state"))),
    }
    .map(|base| match form {
        Form::Installed => base.join(ACCOUNT),
        Form::Development => base.join(APP_ID),
    })
}

/// The owner's config file.
pub fn config_file() -> Option<PathBuf> {
    let base = if cfg!(target_os = "macos") {
        home()?.join("Library/Application Support")
    } else {
        variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(home()?.join(".config")))?
    };
    Some(base.join(APP_ID).join("config.toml"))
}

/// Folders that a run's own folder may lie in, in order: each on a disk, since pictures are kept there.
pub fn run_folder_base() -> PathBuf {
    variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// The folder of the sockets through which the owner reaches a running session from another terminal; it is made for the owner
/// alone.
pub fn socket_folder() -> PathBuf {
    match variable("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("gpu-browser"),
        None => run_folder_base().join(format!("gpu-browser-{}", nix::unistd::getuid())),
    }
}

/// The search path of the caller, where a Chromium or an Xvfb may lie.
pub fn search_path() -> Vec<PathBuf> {
    variable("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default()
}

/// Whether the owner asked programs to leave colours out (`NO_COLOR`).
pub fn no_color() -> bool {
    variable("NO_COLOR").is_some()
}

/// What the daemon's own log shows, where the owner says it (`RUST_LOG`).
pub fn log_filter() -> Option<String> {
    variable("RUST_LOG")?.into_string().ok()
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

/// A variable that is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of the environment"
)]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
