//! Every name and path of ours on the machine, for each system; the only reader of the environment.

use std::path::PathBuf;

/// The name of the account of an install, of its group and of its sudoers file.
pub const ACCOUNT: &str = "agent-socket-gpu-browser";
/// The app id that the daemon registers under at a relay.
pub const APP_ID: &str = "gpu-browser";
/// The public relay.
pub const PUBLIC_RELAY: &str = "https://agentsocket.dev";

/// Our program in its installed place, the only one that the owner may run under the account.
pub fn installed_program() -> PathBuf {
    let base = if cfg!(target_os = "macos") {
        "/Library/AgentSocket"
    } else {
        "/opt/agent-socket"
    };
    PathBuf::from(base).join("gpu-browser/current/gpu-browser")
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
