//! What a doctor sees of this machine; no judgement yet.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::unistd::{Gid, Group, User};

use crate::browser::account::{groups_of_nodes, has_gpu, unprivileged};
use crate::browser::find::{NotFound, find};
use crate::browser::namespace::Arrived;
use crate::browser::spawn::{Launch, prepare};
use crate::install::{self, State};
use crate::place;
use crate::policy::limits::DIAL_TIME;

use super::super::helper;

/// Files of Vulkan drivers lie here.
const DRIVERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
/// A clock that is further off fails at certificates.
pub(super) const CLOCK_OFF: Duration = Duration::from_secs(300);

/// All of it.
pub(super) struct Facts {
    pub(super) state: State,
    /// This program's version.
    pub(super) version: &'static str,
    pub(super) chromium: Result<PathBuf, NotFound>,
    pub(super) has_display: bool,
    /// Whether the browser gets a namespace, or the kernel's words.
    pub(super) namespace: Result<(), String>,
    pub(super) switches: Switches,
    pub(super) has_gpu: bool,
    /// Groups of the GPU's nodes, each with a node, that the account (or we) are not in.
    pub(super) missing_groups: Vec<(String, PathBuf)>,
    pub(super) has_vulkan: bool,
    /// What the last start was proven to draw in, where one is remembered.
    pub(super) drew_in_hardware: Option<bool>,
    pub(super) has_sudo: bool,
    /// The relay that was tried, and why it cannot be reached.
    pub(super) relay: (String, Result<(), String>),
    /// How far the clock is off, where somebody could be asked.
    pub(super) clock_off: Option<Duration>,
}

/// What turns user namespaces off, each where the kernel has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Switches {
    /// `user.max_user_namespaces`.
    pub(super) most: Option<u64>,
    /// `kernel.unprivileged_userns_clone`, of Debian and Arch.
    pub(super) unprivileged: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`, of Ubuntu.
    pub(super) apparmor: Option<u64>,
    /// Whether system calls of this process are filtered, as in a container.
    pub(super) filtered: bool,
    /// Whether SELinux enforces its policy.
    pub(super) selinux: bool,
    /// Whether our AppArmor profile is there.
    pub(super) has_profile: bool,
}

impl Facts {
    pub(super) async fn gather(relay: Option<&str>) -> Self {
        let relay = relay.unwrap_or(place::PUBLIC_RELAY).to_owned();
        let asked = relay.clone();
        let reached = tokio::task::spawn_blocking(move || reach(&asked)).await;
        let (reached, clock_off) = reached.unwrap_or_else(|error| (Err(error.to_string()), None));
        let on_path = |name: &str| {
            let system = std::env::split_paths(place::SYSTEM_PATH);
            system
                .chain(place::search_path())
                .any(|folder| folder.join(name).is_file())
        };
        Self {
            state: install::installed(),
            version: env!("CARGO_PKG_VERSION"),
            chromium: chromium(),
            has_display: cfg!(target_os = "macos") || on_path("Xvfb"),
            namespace: namespace().await,
            switches: switches(),
            has_gpu: has_gpu(),
            missing_groups: missing_groups(),
            has_vulkan: DRIVERS.iter().any(|folder| has_files(Path::new(folder))),
            drew_in_hardware: remembered(),
            has_sudo: on_path("sudo"),
            relay: (relay, reached),
            clock_off,
        }
    }
}

/// The unpacked one of an install, or the one that is found.
fn chromium() -> Result<PathBuf, NotFound> {
    let unpacked = place::LAYOUT.chromium();
    let named = unpacked.exists().then_some(unpacked);
    find(named.as_deref()).map(|found| found.as_path().to_owned())
}

fn switches() -> Switches {
    let read = |name: &str| {
        let text = std::fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
        text.trim().parse().ok()
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let enforce = std::fs::read_to_string("/sys/fs/selinux/enforce").unwrap_or_default();
    Switches {
        most: read("user/max_user_namespaces"),
        unprivileged: read("kernel/unprivileged_userns_clone"),
        apparmor: read("kernel/apparmor_restrict_unprivileged_userns"),
        filtered: status
            .lines()
            .any(|line| line.starts_with("Seccomp:") && line.ends_with('2')),
        selinux: enforce.trim() == "1",
        has_profile: place::LAYOUT.apparmor_file().is_file(),
    }
}

/// Tries what each start of a browser does.
async fn namespace() -> Result<(), String> {
    let launch = Launch {
        helper: helper().map_err(|error| error.to_string())?,
        account: unprivileged(),
        environment: Vec::new(),
        network: true,
    };
    let waiting = prepare(&launch).await.map_err(|error| error.to_string())?;
    match &waiting.arrived {
        Arrived::Namespace => Ok(()),
        Arrived::Host => Err("the helper stayed outside".to_owned()),
        Arrived::NoNamespace(why) | Arrived::Refused(why) => Err(why.clone()),
    }
}

/// Of the account where there is one, else of us.
fn missing_groups() -> Vec<(String, PathBuf)> {
    let account = User::from_name(place::ACCOUNT).ok().flatten();
    let own = own_groups();
    let is_in = |gid: Gid, group: &Group| match &account {
        Some(account) => {
            account.gid == gid || group.mem.iter().any(|member| member == place::ACCOUNT)
        }
        None => nix::unistd::geteuid().is_root() || own.contains(&gid),
    };
    let groups = groups_of_nodes().into_iter().filter_map(|(gid, node)| {
        let gid = Gid::from_raw(gid);
        let group = Group::from_gid(gid).ok().flatten()?;
        (!is_in(gid, &group)).then_some((group.name, node))
    });
    groups.collect()
}

#[cfg(target_os = "linux")]
fn own_groups() -> Vec<Gid> {
    nix::unistd::getgroups().unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn own_groups() -> Vec<Gid> {
    Vec::new()
}

fn has_files(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// The verdict that the last start has left in the cache.
fn remembered() -> Option<bool> {
    let file = place::cache_folder()?.join("probe-Auto.json");
    let text = std::fs::read(file).ok()?;
    let remembered: serde_json::Value = serde_json::from_slice(&text).ok()?;
    remembered["verdict"]["hardware"].as_bool()
}

/// Whether a relay takes connections, and what its host says the time is.
#[expect(
    clippy::disallowed_methods,
    reason = "the owner asked whether the relay can be reached; nothing is sent there but a request for the date"
)]
fn reach(relay: &str) -> (Result<(), String>, Option<Duration>) {
    let Some((host, port)) = url::Url::parse(relay)
        .ok()
        .and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)))
    else {
        return (Err("it is no address".to_owned()), None);
    };
    let connect = |port: u16| -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::other("its name has no address");
        for address in (host.as_str(), port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, DIAL_TIME) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    };
    let reached = connect(port).map(drop).map_err(|error| error.to_string());
    // The date comes over plain HTTP: a clock that is wrong fails at every certificate.
    let date = reached
        .as_ref()
        .ok()
        .and_then(|()| connect(80).ok())
        .and_then(|stream| date(stream, &host));
    let off = date.map(|date| {
        let now = SystemTime::now();
        now.duration_since(date)
            .unwrap_or_else(|error| error.duration())
    });
    (reached, off)
}

fn date(mut stream: TcpStream, host: &str) -> Option<SystemTime> {
    stream.set_read_timeout(Some(DIAL_TIME)).ok()?;
    write!(
        stream,
        "HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut head = String::new();
    stream.take(16 * 1024).read_to_string(&mut head).ok()?;
    let line = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("date:"))?;
    httpdate::parse_http_date(line.split_once(':')?.1.trim()).ok()
}
