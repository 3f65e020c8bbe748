//! The way into a running session from the owner's other terminals: a socket in a folder that only the owner may enter.
//!
//! One line in, an [`Ask`]; one line out, a [`Reply`]. Only what looks and what ends can be asked here: the owner's word on a
//! request belongs to the terminal that shows it.

use std::fs::{DirBuilder, Permissions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::getuid;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::session::Desk;
use crate::place;
use crate::policy::limits::{SOCKET_CLIENTS, SOCKET_LINE, SOCKET_TIME};
use crate::server::desk::{Ask, Reply};

/// An open door; dropped, the socket is gone.
pub(super) struct Door {
    path: PathBuf,
    _listening: JoinSet<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Door {
    /// Listens for the owner.
    pub(super) fn open(desk: Desk) -> std::io::Result<Self> {
        let folder = place::socket_folder();
        own_folder(&folder)?;
        let path = folder.join(format!("{}.sock", std::process::id()));
        // One of an earlier process of this number.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, desk));
        Ok(Self {
            path,
            _listening: listening,
        })
    }
}

/// A folder that is ours and nobody else's, made where it is missing. In a folder that all may write to, a stranger may have
/// been there first.
fn own_folder(folder: &Path) -> std::io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = folder.symlink_metadata()?;
    if found.is_dir() && found.uid() == getuid().as_raw() && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = format!(
        "{} is not a folder of yours alone; remove it",
        folder.display()
    );
    Err(Error::new(ErrorKind::PermissionDenied, why))
}

async fn listen(listener: UnixListener, desk: Desk) {
    let places = Arc::new(Semaphore::new(SOCKET_CLIENTS));
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = clients.join_next() => {}
            came = listener.accept() => {
                let Ok((stream, _)) = came else { continue };
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let desk = desk.clone();
                clients.spawn(async move {
                    let _place = place;
                    if let Err(error) = timeout(SOCKET_TIME, serve(stream, desk)).await.unwrap_or(Ok(())) {
                        tracing::debug!(%error, "another terminal was not answered");
                    }
                });
            }
        }
    }
}

async fn serve(mut stream: UnixStream, desk: Desk) -> std::io::Result<()> {
    let peer = stream.peer_cred()?.uid();
    if peer != getuid().as_raw() && peer != 0 {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let mut line = String::new();
    let (input, mut output) = stream.split();
    BufReader::new(input.take(SOCKET_LINE))
        .read_line(&mut line)
        .await?;
    let reply = match serde_json::from_str(&line) {
        Ok(ask @ (Ask::Status | Ask::Stop { .. })) => desk.ask(ask).await,
        Ok(_) => no("answer it where the session was started"),
        Err(error) => no(&error.to_string()),
    };
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    output.write_all(&line).await
}

fn no(reason: &str) -> Reply {
    Reply::No {
        reason: reason.to_owned(),
    }
}

/// Asks every running session of the owner's; each answer with the process that gave it.
pub(super) async fn ask_all(ask: &Ask) -> Vec<(u32, Reply)> {
    let mut replies = Vec::new();
    for (process, path) in sockets() {
        match timeout(SOCKET_TIME, ask_one(&path, ask)).await {
            Ok(Ok(reply)) => replies.push((process, reply)),
            // Its session was killed.
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
                drop(std::fs::remove_file(&path));
            }
            Ok(Err(error)) => replies.push((process, no(&format!("it does not answer: {error}")))),
            Err(_) => replies.push((process, no("it does not answer in time"))),
        }
    }
    replies
}

/// Asks the session of one process.
pub(super) async fn ask(process: u32, ask: &Ask) -> Option<Reply> {
    let (_, path) = sockets().into_iter().find(|(found, _)| *found == process)?;
    timeout(SOCKET_TIME, ask_one(&path, ask)).await.ok()?.ok()
}

fn sockets() -> Vec<(u32, PathBuf)> {
    let folder = place::socket_folder();
    if own_folder(&folder).is_err() {
        return Vec::new();
    }
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_suffix(".sock")?.parse().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found
}

async fn ask_one(path: &Path, ask: &Ask) -> std::io::Result<Reply> {
    let mut stream = UnixStream::connect(path).await?;
    let mut line = serde_json::to_vec(ask)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    Ok(serde_json::from_str(&answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_could_have_made_is_not_used() {
        let base = tempfile::tempdir().unwrap();
        let own = base.path().join("own");
        assert!(own_folder(&own).is_ok() && own_folder(&own).is_ok());
        std::fs::set_permissions(&own, Permissions::from_mode(0o755)).unwrap();
        assert!(own_folder(&own).is_err());
        let link = base.path().join("link");
        std::os::unix::fs::symlink(base.path(), &link).unwrap();
        assert!(own_folder(&link).is_err());
        let file = base.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(own_folder(&file).is_err());
    }
}
