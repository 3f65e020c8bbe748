//! Files and folders that survive a kill: written aside under a fixed name, synced, renamed into place.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::action::Error;
use super::tripwire::passed;

/// Who owns a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Root and its group.
pub(super) const ROOT: Owner = Owner { uid: 0, gid: 0 };

/// Wraps the system's word on a path.
pub(super) fn at<'a>(
    what: &'static str,
    path: &'a Path,
) -> impl FnOnce(std::io::Error) -> Error + 'a {
    move |source| Error::Path {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Writes a whole file: aside, synced, then renamed over what is there.
pub(super) fn replace(
    path: &Path,
    aside: &Path,
    content: &[u8],
    mode: u32,
    owner: Owner,
) -> Result<(), Error> {
    write_aside(aside, content, mode, owner)?;
    rename(aside, path)
}

/// Writes a file under its temporary name; what a killed run left there is replaced.
pub(super) fn write_aside(
    aside: &Path,
    content: &[u8],
    mode: u32,
    owner: Owner,
) -> Result<(), Error> {
    remove_file(aside)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(aside)
        .map_err(at("write", aside))?;
    passed();
    file.write_all(content).map_err(at("write", aside))?;
    settle(&file, aside, mode, owner)
}

/// Owner, mode, and to the disk.
pub(super) fn settle(file: &File, path: &Path, mode: u32, owner: Owner) -> Result<(), Error> {
    chown(path, Some(owner.uid), Some(owner.gid)).map_err(at("give to its owner", path))?;
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(at("set the mode of", path))?;
    file.sync_all().map_err(at("sync", path))?;
    passed();
    Ok(())
}

/// As [`settle`] for one file of many, which count as one effect.
pub(super) fn settle_quietly(file: &File, path: &Path, mode: u32) -> Result<(), Error> {
    chown(path, Some(ROOT.uid), Some(ROOT.gid)).map_err(at("give to root", path))?;
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(at("set the mode of", path))?;
    file.sync_all().map_err(at("sync", path))
}

/// Renames, and syncs the folder.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to).map_err(at("rename to", to))?;
    passed();
    sync_folder_of(to)
}

/// Makes a folder as it should be; one that a killed run left half-made becomes so.
pub(super) fn folder(path: &Path, mode: u32, owner: Owner) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(at("make", path)(error));
        }
        _ => passed(),
    }
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_DIRECTORY)
        .open(path)
        .map_err(at("open", path))?;
    settle(&folder, path, mode, owner)?;
    sync_folder_of(path)
}

/// Removes a file or a link; one that is gone already is well.
pub(super) fn remove_file(path: &Path) -> Result<(), Error> {
    gone(std::fs::remove_file(path), path)
}

/// Removes an empty folder. One that holds what is not ours stays.
pub(super) fn remove_folder(path: &Path) -> Result<(), Error> {
    match std::fs::remove_dir(path) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        outcome => gone(outcome, path),
    }
}

/// Removes a folder that is ours whole; links in it are removed, never followed.
pub(super) fn remove_tree(path: &Path) -> Result<(), Error> {
    gone(std::fs::remove_dir_all(path), path)
}

fn gone(outcome: std::io::Result<()>, path: &Path) -> Result<(), Error> {
    match outcome {
        Ok(()) => {
            passed();
            sync_folder_of(path)
        }
        // A file system that is read-only says that first, even of what is not there.
        Err(_) if is_gone(path) => Ok(()),
        Err(error) => Err(at("remove", path)(error)),
    }
}

fn is_gone(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn sync_folder_of(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(at("sync", folder))
}

/// The SHA-256 of a file, as hex.
pub(super) fn sha256(path: &Path) -> Result<String, Error> {
    let mut file = File::open(path).map_err(at("read", path))?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block).map_err(at("read", path))? {
            0 => break,
            read => hasher.update(&block[..read]),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Whether each part of a path is root's, no link, and writable by root alone: what root will run lies nowhere else.
///
/// # Errors
/// Says which part is not, and why.
pub fn is_roots_alone(path: &Path) -> Result<(), String> {
    for part in path.ancestors() {
        let Ok(found) = part.symlink_metadata() else {
            continue;
        };
        let shown = part.display();
        if found.is_symlink() {
            return Err(format!("{shown} is a link"));
        }
        if found.uid() != 0 {
            return Err(format!(
                "{shown} belongs to user {}, not to root",
                found.uid()
            ));
        }
        // Where a sticky bit is, others cannot rename what is root's.
        if found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0 {
            return Err(format!(
                "{shown} can be written by others (mode {:o})",
                found.mode() & 0o7777
            ));
        }
    }
    Ok(())
}
