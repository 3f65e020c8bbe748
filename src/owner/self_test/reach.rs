//! A connection from where the browser lives, tried by a process that enters its namespaces: what a page could do if it
//! had the whole browser.

use std::fs::File;
use std::net::TcpStream;
use std::time::Duration;

use super::super::Failure;
use super::super::installing::arguments::Reach;

/// A local port answers at once, or never.
const PATIENCE: Duration = Duration::from_secs(2);

/// Succeeds where the connection does.
pub(in crate::owner) fn run(arguments: &Reach) -> Result<(), Failure> {
    let failed =
        |what: &'static str| move |source: std::io::Error| Failure::System { what, source };
    enter(arguments.process).map_err(failed("cannot enter the browser's namespaces"))?;
    TcpStream::connect_timeout(&arguments.to, PATIENCE)
        .map(drop)
        .map_err(failed("no connection"))
}

/// Process 0 is no process: then the connection is tried from here.
#[cfg(target_os = "linux")]
fn enter(process: u32) -> std::io::Result<()> {
    use nix::sched::{CloneFlags, setns};
    if process == 0 {
        return Ok(());
    }
    let open = |kind: &str| File::open(format!("/proc/{process}/ns/{kind}"));
    let (user, network) = (open("user")?, open("net")?);
    let own = std::fs::read_link("/proc/self/ns/user")?;
    if own != std::fs::read_link(format!("/proc/{process}/ns/user"))? {
        setns(user, CloneFlags::CLONE_NEWUSER)?;
    }
    setns(network, CloneFlags::CLONE_NEWNET)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn enter(_process: u32) -> std::io::Result<()> {
    Ok(())
}
