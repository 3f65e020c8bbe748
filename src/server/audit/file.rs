//! The files of the log: `log.jsonl` is written, `log.1.jsonl` is the one before it, up to [`LOG_KEPT`].
//!
//! Several sessions may write into one folder: lines are appended whole, the files change places under a lock, and a writer
//! whose file was moved by another goes on in the new one.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::policy::limits::{LOG_FILE, LOG_KEPT};

/// The file that is written.
pub const BASE: &str = "log.jsonl";
/// What keeps two writers from moving the files at once; it stays empty.
const LOCK: &str = "log.lock";
/// Who may read the folder may read its files, and nobody else.
const OWNER_ONLY: u32 = 0o600;
const GROUP_READS: u32 = 0o040;

/// The log could not be opened or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .path.display())]
pub struct AuditError {
    path: PathBuf,
    source: io::Error,
}

/// When a file is full, and how many full ones are kept.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    /// Bytes of a file.
    pub bytes: u64,
    /// Files beside the one that is written.
    pub kept: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            bytes: LOG_FILE,
            kept: LOG_KEPT,
        }
    }
}

/// The paths of a log's files, newest first.
pub fn names(folder: &Path, kept: usize) -> impl Iterator<Item = PathBuf> {
    let older = (1..=kept).map(|number| format!("log.{number}.jsonl"));
    let folder = folder.to_owned();
    std::iter::once(BASE.to_owned())
        .chain(older)
        .map(move |name| folder.join(name))
}

/// The file that is written.
#[derive(Debug)]
pub(super) struct LogFile {
    folder: PathBuf,
    rotation: Rotation,
    file: File,
    /// A line before may have been cut off in its middle.
    torn: bool,
}

impl LogFile {
    pub(super) fn open(folder: &Path, rotation: Rotation) -> Result<Self, AuditError> {
        let opened = make(folder).and_then(|()| open(folder));
        let (file, torn) = opened.map_err(|source| AuditError {
            path: folder.to_owned(),
            source,
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            rotation,
            file,
            torn,
        })
    }

    /// Appends a line with one write, into the next file where this one is full.
    pub(super) fn append(&mut self, line: &str) -> Result<(), AuditError> {
        self.append_or_fail(line).map_err(|source| AuditError {
            path: self.path(),
            source,
        })
    }

    fn append_or_fail(&mut self, line: &str) -> io::Result<()> {
        let bytes = line.len() as u64 + 1;
        if self.is_moved() {
            (self.file, self.torn) = open(&self.folder)?;
        }
        if self.is_full(bytes)? {
            self.rotate()?;
        }
        let torn = std::mem::replace(&mut self.torn, true);
        let before = if torn { "\n" } else { "" };
        self.file
            .write_all(format!("{before}{line}\n").as_bytes())?;
        self.torn = false;
        Ok(())
    }

    /// Whether another writer has moved the file, or somebody has deleted it.
    fn is_moved(&self) -> bool {
        let held = self.file.metadata().map(|held| (held.dev(), held.ino()));
        let named = fs::symlink_metadata(self.path()).map(|named| (named.dev(), named.ino()));
        !matches!((held, named), (Ok(held), Ok(named)) if held == named)
    }

    fn is_full(&self, bytes: u64) -> io::Result<bool> {
        let length = self.file.metadata()?.len();
        Ok(length > 0 && length + bytes > self.rotation.bytes)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ONLY)
            .open(self.folder.join(LOCK))?;
        lock.lock()?;
        // Another writer may have done it meanwhile.
        if !self.is_moved() {
            let names: Vec<PathBuf> = names(&self.folder, self.rotation.kept).collect();
            for pair in names.windows(2).rev() {
                match fs::rename(&pair[0], &pair[1]) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        (self.file, self.torn) = open(&self.folder)?;
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.folder.join(BASE)
    }
}

/// A folder of the owner's own; one that an install made stays as it is.
fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens the file at its end; whether that end is inside of a line.
fn open(folder: &Path) -> io::Result<(File, bool)> {
    let group = fs::metadata(folder)?.mode() & GROUP_READS;
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(OWNER_ONLY | group)
        // What lies there may have been put there by whatever runs under this account.
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(folder.join(BASE))?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    if found.len() == 0 {
        // The mask of the process may have taken the group's part away.
        file.set_permissions(Permissions::from_mode(OWNER_ONLY | group))?;
        return Ok((file, false));
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok((file, last != *b"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Rotation = Rotation { bytes: 40, kept: 2 };

    fn read(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(name)).unwrap()
    }

    #[test]
    fn a_full_file_makes_room_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path(), TINY).unwrap();
        // Two lines of 20 bytes fill a file to the byte.
        for number in 0..8 {
            log.append(&format!("{number:019}")).unwrap();
        }
        let first = |name| read(folder.path(), name)[18..19].to_owned();
        assert_eq!(first("log.2.jsonl"), "2");
        assert_eq!(first("log.1.jsonl"), "4");
        assert_eq!(first(BASE), "6");
        assert!(names(folder.path(), 9).skip(3).all(|path| !path.exists()));
    }

    #[test]
    fn two_writers_lose_no_line_and_tear_none() {
        let folder = tempfile::tempdir().unwrap();
        let rotation = Rotation {
            bytes: 1_000,
            kept: 200,
        };
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let mut log = LogFile::open(folder.path(), rotation).unwrap();
                scope.spawn(move || {
                    for number in 0..500 {
                        log.append(&format!("{writer} {number:017}")).unwrap();
                    }
                });
            }
        });
        let mut lines: Vec<String> = names(folder.path(), rotation.kept)
            .filter_map(|path| fs::read_to_string(path).ok())
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        assert!(lines.iter().all(|line| line.len() == 19));
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), 1_000);
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_swallow_the_next() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(BASE), "whole\nhal").unwrap();
        let mut log = LogFile::open(folder.path(), Rotation::default()).unwrap();
        log.append("next").unwrap();
        log.append("last").unwrap();
        assert_eq!(read(folder.path(), BASE), "whole\nhal\nnext\nlast\n");
    }

    #[test]
    fn a_file_that_was_taken_away_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path(), Rotation::default()).unwrap();
        log.append("gone").unwrap();
        fs::remove_file(folder.path().join(BASE)).unwrap();
        log.append("here").unwrap();
        assert_eq!(read(folder.path(), BASE), "here\n");
    }

    #[test]
    fn who_may_read_the_folder_may_read_the_files_and_nobody_else() {
        for (mode, files) in [(0o700, 0o600), (0o2750, 0o640), (0o755, 0o640)] {
            let folder = tempfile::tempdir().unwrap();
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            LogFile::open(folder.path(), TINY).unwrap();
            let found = fs::metadata(folder.path().join(BASE)).unwrap().mode();
            assert_eq!(found & 0o777, files, "{mode:o}");
        }
        let base = tempfile::tempdir().unwrap();
        let made = base.path().join("a/b");
        LogFile::open(&made, TINY).unwrap();
        assert_eq!(fs::metadata(made).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn what_is_no_ordinary_file_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(BASE)).unwrap();
        let error = LogFile::open(folder.path(), TINY).unwrap_err();
        assert!(error.to_string().contains(folder.path().to_str().unwrap()));
        assert_eq!(fs::read_to_string(elsewhere).unwrap(), "mine");
    }
}
