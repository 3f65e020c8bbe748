//! The helper that becomes Chromium (or Xvfb): it drops to the account, enters a network namespace that holds nothing
//! but `lo`, makes the proxy's listening socket there, hands it out, and turns into the program.
//!
//! It is a hidden subcommand of ours with one thread, since a process with threads may not enter a user namespace. Its
//! standard input is the control socket; its standard output is what the program gets as descriptors 3 and 4.
//!
//! | step | why in this order |
//! |---|---|
//! | groups, group, user | the user last: an ordinary user may not change groups |
//! | dumpable again | else `/proc/self/uid_map` belongs to root after the change of user |
//! | death signal | a change of user clears it |
//! | user and network namespace | one call: the new user namespace owns the new network |
//! | `lo` up, bind, listen | inside, so that only what lives inside can connect |
//! | descriptor out, go-ahead in | the port belongs into Chromium's arguments |
//! | exec | capabilities of the new user namespace end here |
#![allow(unsafe_code)] // one ioctl raises `lo`, and a descriptor comes out of a control message; no safe wrapper has either

use std::convert::Infallible;
use std::io::{IoSlice, IoSliceMut, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::{Deserialize, Serialize};

use super::account::Account;

/// How long the helper may take to be where it should be.
const ARRIVAL: Duration = Duration::from_secs(10);

/// What the helper is told before anything else, as its one argument.
#[derive(Debug, Serialize, Deserialize)]
pub struct Orders {
    /// The account to become.
    pub account: Option<Account>,
    /// Whether to enter a network namespace and make the listening socket.
    pub network: bool,
    /// Who started it: where that one is gone already, there is nobody to end the program.
    pub parent: u32,
}

/// What the helper says once it is where it should be; the listening socket comes with it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrived {
    /// Inside, with the socket.
    Namespace,
    /// Outside, since none was asked for.
    Host,
    /// The kernel refused a namespace: which step, and its words. Where it stopped is no place to start a browser.
    NoNamespace(String),
    /// The account could not be taken on.
    Refused(String),
}

/// The go-ahead: what to become.
#[derive(Debug, Serialize, Deserialize)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Whether standard output becomes descriptors 3 and 4 (a CDP pipe) and is closed as such.
    pub pipe: bool,
}

/// Runs the helper; returns only where it failed.
pub fn enter(orders: &str) -> std::io::Error {
    match run(orders) {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

fn run(orders: &str) -> std::io::Result<Infallible> {
    let orders: Orders = serde_json::from_str(orders)?;
    let control = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (message, listener) = match become_account(&orders) {
        Err(error) => (Arrived::Refused(error.to_string()), None),
        Ok(()) if !orders.network => (Arrived::Host, None),
        Ok(()) => match isolated() {
            Ok(listener) => (Arrived::Namespace, Some(listener)),
            Err(error) => (Arrived::NoNamespace(error.to_string()), None),
        },
    };
    report(&control, &message, listener.as_ref())?;
    drop(listener);
    let program = go_ahead(control)?;
    Err(replace(&program))
}

fn step<T>(what: &str, result: nix::Result<T>) -> std::io::Result<T> {
    result.map_err(|errno| {
        std::io::Error::new(
            std::io::Error::from(errno).kind(),
            format!("{what}: {errno}"),
        )
    })
}

fn become_account(orders: &Orders) -> std::io::Result<()> {
    use nix::unistd::{Gid, Uid, getppid, setgid, setuid};
    if let Some(account) = &orders.account {
        #[cfg(target_os = "linux")]
        {
            let groups: Vec<Gid> = account.groups.iter().copied().map(Gid::from_raw).collect();
            step("set the groups", nix::unistd::setgroups(&groups))?;
        }
        step("set the group", setgid(Gid::from_raw(account.gid)))?;
        step("set the user", setuid(Uid::from_raw(account.uid)))?;
    }
    #[cfg(target_os = "linux")]
    {
        step("be dumpable", nix::sys::prctl::set_dumpable(true))?;
        step(
            "die with the daemon",
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL),
        )?;
    }
    if getppid().as_raw().unsigned_abs() != orders.parent {
        return Err(std::io::Error::other("the daemon is gone"));
    }
    // A crash must not leave a page's memory on the owner's disk.
    step(
        "leave no core file",
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0),
    )
}

#[cfg(target_os = "linux")]
fn isolated() -> std::io::Result<TcpListener> {
    use nix::sched::{CloneFlags, unshare};
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    step(
        "enter a namespace",
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET),
    )?;
    // The kernel wants group changes off before an ordinary user may map its group.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    raise_loopback()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // Only now, since a set-user-ID sandbox of Chromium's is needed only where there are no user namespaces.
    step("gain no privileges", nix::sys::prctl::set_no_new_privs())?;
    Ok(listener)
}

#[cfg(not(target_os = "linux"))]
fn isolated() -> std::io::Result<TcpListener> {
    Err(std::io::Error::other(
        "this system has no network namespaces",
    ))
}

#[cfg(target_os = "linux")]
fn raise_loopback() -> std::io::Result<()> {
    use nix::libc;
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: an all-zero `ifreq` is a valid value of that C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags =
        i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(i16::MAX);
    // SAFETY: the descriptor is open, and SIOCSIFFLAGS reads one `ifreq` whose name is NUL-terminated.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    step("raise lo", nix::errno::Errno::result(result)).map(drop)
}

fn report(
    control: &UnixStream,
    message: &Arrived,
    listener: Option<&TcpListener>,
) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let descriptors: Vec<_> = listener
        .iter()
        .map(|listener| listener.as_raw_fd())
        .collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let rights = if descriptors.is_empty() {
        &[]
    } else {
        &rights[..]
    };
    step(
        "report",
        sendmsg::<()>(
            control.as_raw_fd(),
            &[IoSlice::new(&bytes)],
            rights,
            MsgFlags::empty(),
            None,
        ),
    )?;
    Ok(())
}

/// The daemon writes the program and closes its side; no program means that it thought better of it.
fn go_ahead(mut control: UnixStream) -> std::io::Result<Program> {
    let mut bytes = Vec::new();
    control.read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this process becomes the program; nothing is started"
)]
fn replace(program: &Program) -> std::io::Error {
    let mut command = Command::new(&program.path);
    command.args(&program.arguments).stdin(Stdio::null());
    if program.pipe {
        let mappings = || -> std::io::Result<[FdMapping; 2]> {
            let ours: OwnedFd = std::io::stdout().as_fd().try_clone_to_owned()?;
            Ok([
                FdMapping {
                    parent_fd: ours.try_clone()?,
                    child_fd: 3,
                },
                FdMapping {
                    parent_fd: ours,
                    child_fd: 4,
                },
            ])
        };
        let mapped = mappings().map(|mappings| command.fd_mappings(mappings.into()).map(drop));
        if !matches!(mapped, Ok(Ok(()))) {
            return std::io::Error::other("descriptors 3 and 4 could not be set");
        }
        command.stdout(Stdio::null());
    }
    command.exec()
}

/// The daemon's side of the report: what the helper says, and the descriptor that may come with it.
pub fn receive(control: &UnixStream) -> std::io::Result<(Arrived, Option<TcpListener>)> {
    control.set_read_timeout(Some(ARRIVAL))?;
    let mut bytes = [0; 4096];
    let mut space = nix::cmsg_space!([std::os::fd::RawFd; 1]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<()>(
        control.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let length = message.bytes;
    let mut listener = None;
    for control_message in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = control_message {
            // SAFETY: the kernel made these descriptors for this process in this call; nobody else knows them.
            let owned = descriptors
                .into_iter()
                .map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) });
            listener = owned.map(TcpListener::from).next();
        }
    }
    if length == 0 {
        return Err(std::io::Error::other("the helper ended before it arrived"));
    }
    let arrived = serde_json::from_slice(&bytes[..length])?;
    Ok((arrived, listener))
}
