//! Reads the files of a log in the order they were written, across their rotation, a line at a time.
//!
//! The files belong to the account of the session, where there is one, and are read by the owner: only ordinary files are
//! opened, links are not followed, and no line is held that is longer than ours can be.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::LogsError;
use crate::policy::limits::{LOG_KEPT, LOG_LINE};
use crate::server::audit;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A whole line without its end.
    Line(String),
    /// A line that is none of ours; it was read over.
    TooLong,
}

/// Reads on from where it was.
pub(super) struct Reader {
    folder: PathBuf,
    /// The file that is read, with its number on the disk.
    at: Option<(BufReader<File>, u64)>,
    /// Files after it that are open already, so that no rotation takes them away.
    next: VecDeque<(File, u64)>,
    /// The beginning of a line whose end is not written yet.
    part: Vec<u8>,
    /// Whether the line is too long, and is read over to its end.
    over: bool,
}

impl Reader {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            at: None,
            next: VecDeque::new(),
            part: Vec::new(),
            over: false,
        }
    }

    /// Whether there was a file at all.
    pub(super) fn has_begun(&self) -> bool {
        self.at.is_some()
    }

    /// Whether the end of the last line is missing.
    pub(super) fn is_inside_a_line(&self) -> bool {
        self.over || !self.part.is_empty()
    }

    /// The next line; nothing where there is none yet.
    pub(super) fn next(&mut self) -> Result<Option<Found>, LogsError> {
        loop {
            if let Some(found) = self.read()? {
                return Ok(Some(found));
            }
            if self.next.is_empty() {
                self.next = self.after()?;
                // Its last lines may have been written after it was read to its end and before it was moved.
                if !self.next.is_empty()
                    && let Some(found) = self.read()?
                {
                    return Ok(Some(found));
                }
            }
            let Some((file, number)) = self.next.pop_front() else {
                return Ok(None);
            };
            let torn = self.is_inside_a_line();
            self.at = Some((BufReader::new(file), number));
            self.part.clear();
            self.over = false;
            if torn {
                return Ok(Some(Found::TooLong));
            }
        }
    }

    /// The next line of the file that is read.
    fn read(&mut self) -> Result<Option<Found>, LogsError> {
        let Some((file, _)) = &mut self.at else {
            return Ok(None);
        };
        loop {
            let room = (LOG_LINE - self.part.len()) as u64;
            let read = file.by_ref().take(room).read_until(b'\n', &mut self.part);
            read.map_err(|source| LogsError::File {
                path: self.folder.clone(),
                source,
            })?;
            if self.part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.part);
                let over = std::mem::take(&mut self.over);
                let text = String::from_utf8_lossy(&line[..line.len() - 1]).into_owned();
                return Ok(Some(if over {
                    Found::TooLong
                } else {
                    Found::Line(text)
                }));
            }
            if self.part.len() < LOG_LINE {
                return Ok(None);
            }
            self.part.clear();
            self.over = true;
        }
    }

    /// The files after the one that is read, oldest first; all of them where that one is there no more.
    fn after(&self) -> Result<VecDeque<(File, u64)>, LogsError> {
        let held = self.at.as_ref().map(|(_, number)| *number);
        let mut found = VecDeque::<(File, u64)>::new();
        // Newest first: a file that is moved meanwhile is met a second time, and none is missed.
        for path in audit::names(&self.folder, LOG_KEPT) {
            let opened = open(&path).map_err(|source| LogsError::File { path, source })?;
            let Some((file, number)) = opened else {
                continue;
            };
            if held == Some(number) {
                break;
            }
            if found.iter().all(|(_, known)| *known != number) {
                found.push_front((file, number));
            }
        }
        Ok(found)
    }
}

/// Opens an ordinary file; nothing where there is none.
fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    Ok(Some((file, found.ino())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    struct Log(tempfile::TempDir);

    impl Log {
        fn new() -> (Self, Reader) {
            let folder = tempfile::tempdir().unwrap();
            let reader = Reader::new(folder.path().to_owned());
            (Self(folder), reader)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.unwrap().write_all(text.as_bytes()).unwrap();
        }

        fn rotate(&self) {
            let names: Vec<PathBuf> = audit::names(self.0.path(), LOG_KEPT).collect();
            for pair in names.windows(2).rev() {
                let _ = fs::rename(&pair[0], &pair[1]);
            }
        }
    }

    fn lines(reader: &mut Reader) -> Vec<String> {
        std::iter::from_fn(|| reader.next().unwrap())
            .map(|found| match found {
                Found::Line(text) => text,
                Found::TooLong => "TOO LONG".to_owned(),
            })
            .collect()
    }

    #[test]
    fn files_are_read_oldest_first() {
        let (log, mut reader) = Log::new();
        assert_eq!(lines(&mut reader), [""; 0]);
        assert!(!reader.has_begun());
        log.write("log.2.jsonl", "1\n2\n");
        log.write("log.1.jsonl", "3\n");
        log.write("log.jsonl", "4\n");
        assert_eq!(lines(&mut reader), ["1", "2", "3", "4"]);
        assert!(reader.has_begun());
    }

    #[test]
    fn what_is_written_later_is_read_on_across_rotations() {
        let (log, mut reader) = Log::new();
        log.write("log.jsonl", "1\n2");
        assert_eq!(lines(&mut reader), ["1"]);
        assert!(reader.is_inside_a_line());
        log.write("log.jsonl", "2\n");
        assert_eq!(lines(&mut reader), ["22"]);
        log.write("log.jsonl", "3\n");
        log.rotate();
        log.write("log.jsonl", "4\n");
        log.rotate();
        log.write("log.jsonl", "5\n");
        assert_eq!(lines(&mut reader), ["3", "4", "5"]);
        (0..=LOG_KEPT).for_each(|_| log.rotate());
        log.write("log.jsonl", "6\n");
        assert_eq!(lines(&mut reader), ["6"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_read_over() {
        let (log, mut reader) = Log::new();
        log.write(
            "log.jsonl",
            &format!("{}\nnext\n", "x".repeat(3 * LOG_LINE + 5)),
        );
        assert_eq!(lines(&mut reader), ["TOO LONG", "next"]);
    }

    #[test]
    fn what_is_no_ordinary_file_is_not_read() {
        let (log, mut reader) = Log::new();
        log.write("secret", "mine\n");
        let (secret, path) = (log.0.path().join("secret"), log.0.path().join("log.jsonl"));
        std::os::unix::fs::symlink(secret, &path).unwrap();
        assert!(reader.next().is_err());
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(reader.next().is_err());
    }
}
