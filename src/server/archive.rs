//! Archives of uploads, unpacked in memory: what a `tar.gz` or a `zip` holds becomes files of the session, or nothing does.
//!
//! An archive is the agent's own text, so it is read as an attack. Limits are enforced while bytes are inflated, never
//! by what a header claims; nothing but plain files and folders is taken, and a path is parsed like that of any upload.

use std::cell::Cell;
use std::io::{self, Cursor, Read};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use super::answer::{Code, Refused};
use crate::policy::limits::{ARCHIVE_ENTRIES, ARCHIVE_HEADERS, UPLOAD_BYTES};
use crate::proxy::uploads::store::{Put, UploadPath};

/// The kinds of archives that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ArchiveFormat {
    /// A tar, gzipped.
    #[serde(rename = "tar.gz", alias = "tgz")]
    TarGz,
    /// A zip, its files stored or deflated.
    #[serde(rename = "zip")]
    Zip,
}

/// Why an archive was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ArchiveRefusal {
    #[error("the archive cannot be read: {0}")]
    Broken(String),
    #[error("the archive's entry {name:?} {reason}")]
    Entry { name: String, reason: String },
    #[error("the archive holds more than {0} bytes")]
    TooLarge(usize),
    #[error("the archive holds more than {0} entries")]
    TooMany(usize),
}

impl From<ArchiveRefusal> for Refused {
    fn from(refusal: ArchiveRefusal) -> Self {
        let (code, fix) = match &refusal {
            ArchiveRefusal::Broken(_) => (
                Code::BadArchive,
                "send a whole tar.gz or zip as base64, with the right `format`; `tar czf - DIR | base64`",
            ),
            ArchiveRefusal::Entry { .. } => (
                Code::BadArchive,
                "leave this entry out; only plain files and folders with relative paths are taken",
            ),
            ArchiveRefusal::TooLarge(_) | ArchiveRefusal::TooMany(_) => (
                Code::UploadsFull,
                "leave out what the page does not load; nothing of the archive was kept",
            ),
        };
        Self::new(code, refusal.to_string(), fix)
    }
}

/// What an archive may hold.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    entries: usize,
    bytes: usize,
}

const BOUNDS: Bounds = Bounds {
    entries: ARCHIVE_ENTRIES,
    bytes: UPLOAD_BYTES,
};

/// Unpacks an archive into files below `prefix`. It takes as long as inflating takes: not for an async thread.
pub fn unpack(bytes: &[u8], format: ArchiveFormat, prefix: &str) -> Result<Vec<Put>, Refused> {
    let prefix = match prefix.trim_end_matches('/') {
        "" => String::new(),
        folder => match UploadPath::parse(folder) {
            Ok(folder) => format!("{folder}/"),
            Err(refusal) => {
                return Err(Refused::new(
                    Code::BadPath,
                    format!("archive.prefix: {refusal}"),
                    "give a relative folder, like \"site/\"",
                ));
            }
        },
    };
    Ok(unpack_within(bytes, format, prefix, BOUNDS)?)
}

fn unpack_within(
    bytes: &[u8],
    format: ArchiveFormat,
    prefix: String,
    bounds: Bounds,
) -> Result<Vec<Put>, ArchiveRefusal> {
    let unpacking = Unpacking {
        prefix,
        bounds,
        entries: 0,
        bytes: 0,
        puts: Vec::new(),
    };
    match format {
        ArchiveFormat::TarGz => unpacking.tar(bytes),
        ArchiveFormat::Zip => unpacking.zip(bytes),
    }
}

/// An archive half unpacked: what was taken, and how much of the bounds is used.
struct Unpacking {
    prefix: String,
    bounds: Bounds,
    entries: usize,
    bytes: usize,
    puts: Vec<Put>,
}

impl Unpacking {
    fn tar(mut self, bytes: &[u8]) -> Result<Vec<Put>, ArchiveRefusal> {
        let left = Cell::new(self.bounds.bytes + ARCHIVE_HEADERS);
        let inflated = Metered {
            inner: MultiGzDecoder::new(bytes),
            left: &left,
        };
        let mut archive = tar::Archive::new(inflated);
        let read = self.tar_entries(&mut archive).and_then(|()| {
            // What follows the last entry is read too, so that the checksum of the whole is.
            let mut rest = archive.into_inner();
            io::copy(&mut rest, &mut io::sink()).map_err(broken)
        });
        match read {
            Ok(_) => Ok(self.puts),
            Err(_) if left.get() == 0 => Err(ArchiveRefusal::TooLarge(self.bounds.bytes)),
            Err(refusal) => Err(refusal),
        }
    }

    fn tar_entries<R: Read>(
        &mut self,
        archive: &mut tar::Archive<R>,
    ) -> Result<(), ArchiveRefusal> {
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let path = entry.path_bytes().into_owned();
            let name = Name::parse(&path)?;
            self.count()?;
            match entry.header().entry_type() {
                tar::EntryType::Regular | tar::EntryType::Continuous => {
                    self.file(&name, &mut entry)?;
                }
                tar::EntryType::Directory => self.folder(&name)?,
                // What `git archive` writes in front: a comment with the commit.
                tar::EntryType::XGlobalHeader => {}
                tar::EntryType::Symlink | tar::EntryType::Link => {
                    return Err(name.refuse("is a link"));
                }
                _ => return Err(name.refuse("is neither a file nor a folder")),
            }
        }
        Ok(())
    }

    fn zip(mut self, bytes: &[u8]) -> Result<Vec<Put>, ArchiveRefusal> {
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
        for index in 0..archive.len() {
            self.count()?;
            let listed = archive.by_index_data(index).map_err(broken)?;
            let raw = listed.name_raw().to_vec();
            let name = Name::parse(&raw)?;
            if listed.is_symlink() {
                return Err(name.refuse("is a link"));
            }
            if listed.encrypted() {
                return Err(name.refuse("is encrypted"));
            }
            if listed.is_dir() {
                self.folder(&name)?;
                continue;
            }
            let mut entry = archive
                .by_index(index)
                .map_err(|error| name.refuse(&format!("cannot be read: {error}")))?;
            self.file(&name, &mut entry)?;
        }
        Ok(self.puts)
    }

    fn count(&mut self) -> Result<(), ArchiveRefusal> {
        self.entries += 1;
        if self.entries > self.bounds.entries {
            return Err(ArchiveRefusal::TooMany(self.bounds.entries));
        }
        Ok(())
    }

    /// A folder leaves nothing behind, but a path that escapes is refused all the same.
    fn folder(&self, name: &Name<'_>) -> Result<(), ArchiveRefusal> {
        match name.0.trim_end_matches('/') {
            "." => Ok(()),
            folder => self.path(&Name(folder)).map(drop),
        }
    }

    fn file(&mut self, name: &Name<'_>, content: &mut impl Read) -> Result<(), ArchiveRefusal> {
        let path = self.path(name)?;
        let left = self.bounds.bytes - self.bytes;
        let mut bytes = Vec::new();
        // One byte more than is left tells a file that ends there from one that goes on.
        content
            .take(left as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| name.refuse(&format!("cannot be read: {error}")))?;
        if bytes.len() > left {
            return Err(ArchiveRefusal::TooLarge(self.bounds.bytes));
        }
        self.bytes += bytes.len();
        bytes.shrink_to_fit();
        self.puts.push(Put {
            path,
            bytes: Bytes::from(bytes),
            content_type: None,
            offset: None,
        });
        Ok(())
    }

    fn path(&self, name: &Name<'_>) -> Result<UploadPath, ArchiveRefusal> {
        // Parsed on its own first: behind a prefix, an absolute path would look like a relative one.
        let inside =
            UploadPath::parse(name.0).map_err(|refusal| name.refuse(&refusal.to_string()))?;
        UploadPath::parse(&format!("{}{inside}", self.prefix))
            .map_err(|refusal| name.refuse(&refusal.to_string()))
    }
}

/// The name of an entry as it is in the archive.
struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ArchiveRefusal> {
        std::str::from_utf8(bytes).map(Self).map_err(|_| {
            Name(&String::from_utf8_lossy(bytes)).refuse("has a name that is not UTF-8")
        })
    }

    fn refuse(&self, reason: &str) -> ArchiveRefusal {
        ArchiveRefusal::Entry {
            name: self.0.chars().take(80).collect(),
            reason: reason.to_owned(),
        }
    }
}

/// A reader that ends in an error once `left` bytes have passed.
struct Metered<'a, R> {
    inner: R,
    left: &'a Cell<usize>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.left.get());
        if most == 0 && !buffer.is_empty() {
            return Err(io::Error::other("more bytes than are allowed"));
        }
        let read = self.inner.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - read);
        Ok(read)
    }
}

fn broken(error: impl std::fmt::Display) -> ArchiveRefusal {
    ArchiveRefusal::Broken(error.to_string().chars().take(200).collect())
}

/// What fuzzing holds against any bytes: no panic, no path or size that an upload may not have. Integration tests run it
/// too, on a library that is built like any other.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let bounds = Bounds {
        entries: 64,
        bytes: crate::policy::limits::MIB,
    };
    for format in [ArchiveFormat::TarGz, ArchiveFormat::Zip] {
        if let Ok(puts) = unpack_within(bytes, format, "in/".into(), bounds) {
            assert!(puts.len() <= bounds.entries);
            assert!(puts.iter().map(|put| put.bytes.len()).sum::<usize>() <= bounds.bytes);
            assert!(puts.iter().all(|put| put.path.as_str().starts_with("in/")));
        }
    }
}

#[cfg(test)]
mod tests;
