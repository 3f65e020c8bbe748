//! Pictures and recordings kept for fetching, as files in the folder of the run: the daemon's memory stays small
//! however many there are. The oldest make room for new ones, and a part asked of one that went is told so.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::policy::limits::{ARTIFACT_BYTES, ARTIFACTS, PART};

/// What kind of thing is kept; its letter begins the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A picture: `i1`, `i2`, …
    Picture,
    /// A recording: `v1`, `v2`, …
    Recording,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Self::Picture => 'i',
            Self::Recording => 'v',
        }
    }
}

/// What the receipt of a kept artifact says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its id.
    pub id: String,
    /// Its bytes.
    pub bytes: usize,
    /// The digest of its bytes, in hexadecimal.
    pub sha256: String,
    /// The parts that it is fetched in, at least one.
    pub parts: usize,
}

/// Why a part was not given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartRefusal {
    /// The id was never given out.
    #[error("there is no image {0:?}")]
    NotFound(String),
    /// The artifact has made room for newer ones.
    #[error("{0} has made room for newer ones")]
    Gone(String),
    /// There is no such part.
    #[error("{id} has {parts} part(s), numbered from 1; there is no part {part}")]
    OutOfRange {
        /// The artifact.
        id: String,
        /// The part asked for.
        part: usize,
        /// The parts there are.
        parts: usize,
    },
}

/// Why keeping or fetching failed.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// It is larger than all artifacts together may be.
    #[error("{bytes} bytes are more than the {most} that may be kept")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most bytes that may be kept.
        most: usize,
    },
    /// The folder of the run cannot be written or read.
    #[error("the folder of the run failed: {0}")]
    Folder(#[from] io::Error),
    /// The part is not there to be given.
    #[error(transparent)]
    Part(#[from] PartRefusal),
}

/// The artifacts of one session; clones share them.
#[derive(Debug, Clone)]
pub struct Artifacts {
    shelf: Arc<Shelf>,
}

impl Artifacts {
    /// Keeps artifacts in a folder, which lasts as long as the run.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::within(folder.into(), ARTIFACTS, ARTIFACT_BYTES, PART)
    }

    fn within(folder: PathBuf, most: usize, most_bytes: usize, part: usize) -> Self {
        let shelf = Shelf {
            folder,
            most,
            most_bytes,
            part,
            held: Mutex::default(),
        };
        Self {
            shelf: Arc::new(shelf),
        }
    }

    /// Keeps an artifact; the oldest ones go where there is no room. Hashing and writing happen on a blocking thread,
    /// and are finished there even when the caller goes away, so that no file is left that nobody knows.
    pub async fn keep(&self, kind: Kind, bytes: Bytes) -> Result<Kept, ArtifactError> {
        let shelf = Arc::clone(&self.shelf);
        blocking(move || shelf.keep(kind, &bytes)).await
    }

    /// A part as base64, numbered from 1; the parts joined are the artifact, in base64 as in bytes.
    pub async fn part(&self, id: &str, part: usize) -> Result<String, ArtifactError> {
        let (shelf, id) = (Arc::clone(&self.shelf), id.to_owned());
        blocking(move || shelf.part(&id, part)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> Result<T, ArtifactError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(io::Error::other(error).into()),
    }
}

/// The folder and the list of what is in it. Its lock is held for the list alone, never while a file is read or written.
#[derive(Debug)]
struct Shelf {
    folder: PathBuf,
    most: usize,
    most_bytes: usize,
    /// Bytes of a part; a multiple of 3, so that base64 joins without padding between.
    part: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// From the oldest to the newest.
    entries: VecDeque<Entry>,
    bytes: usize,
    pictures: u64,
    recordings: u64,
}

#[derive(Debug)]
struct Entry {
    id: String,
    bytes: usize,
}

impl Shelf {
    fn keep(&self, kind: Kind, bytes: &[u8]) -> Result<Kept, ArtifactError> {
        if bytes.len() > self.most_bytes {
            return Err(ArtifactError::TooLarge {
                bytes: bytes.len(),
                most: self.most_bytes,
            });
        }
        let sha256 = Sha256::digest(bytes);
        let sha256 = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = self.lock().next_id(kind);
        let path = self.folder.join(&id);
        if let Err(error) = File::create_new(&path).and_then(|mut file| file.write_all(bytes)) {
            // Half a file is of no use, and the folder may be full; a failure to remove it changes nothing.
            let _ = std::fs::remove_file(&path);
            return Err(error.into());
        }
        for old in self.shelve(&id, bytes.len()) {
            // Whoever has it open reads on; one that cannot be removed goes with the folder.
            let _ = std::fs::remove_file(self.folder.join(old.id));
        }
        Ok(Kept {
            id,
            bytes: bytes.len(),
            sha256,
            parts: self.parts(bytes.len()),
        })
    }

    /// Enters a written file, and takes out the oldest ones that have no room beside it.
    fn shelve(&self, id: &str, bytes: usize) -> Vec<Entry> {
        let mut held = self.lock();
        held.bytes += bytes;
        held.entries.push_back(Entry {
            id: id.to_owned(),
            bytes,
        });
        let mut gone = Vec::new();
        while held.entries.len() > self.most || held.bytes > self.most_bytes {
            let Some(oldest) = held.entries.pop_front() else {
                break;
            };
            held.bytes -= oldest.bytes;
            gone.push(oldest);
        }
        gone
    }

    fn part(&self, id: &str, part: usize) -> Result<String, ArtifactError> {
        let bytes = self.lock().find(id)?;
        let parts = self.parts(bytes);
        if !(1..=parts).contains(&part) {
            let id = id.to_owned();
            return Err(PartRefusal::OutOfRange { id, part, parts }.into());
        }
        let start = (part - 1) * self.part;
        let mut slice = vec![0; self.part.min(bytes - start)];
        // Between the look-up and here the oldest may have gone.
        let mut file = match File::open(self.folder.join(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(PartRefusal::Gone(id.to_owned()).into());
            }
            opened => opened?,
        };
        file.seek(SeekFrom::Start(start as u64))?;
        file.read_exact(&mut slice)?;
        Ok(STANDARD.encode(slice))
    }

    fn parts(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.part).max(1)
    }

    /// A panic elsewhere leaves a list that is whole, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn next_id(&mut self, kind: Kind) -> String {
        let count = match kind {
            Kind::Picture => &mut self.pictures,
            Kind::Recording => &mut self.recordings,
        };
        *count += 1;
        format!("{}{count}", kind.letter())
    }

    /// The bytes of an artifact. Numbers are given in order, so one that was given and is not held is gone.
    fn find(&self, id: &str) -> Result<usize, PartRefusal> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.id == id) {
            return Ok(entry.bytes);
        }
        let given = |kind: Kind, count: u64| {
            let number = id.strip_prefix(kind.letter())?.parse::<u64>().ok()?;
            // Only the very spelling that was given out: "+1" and "01" parse too.
            let same = id == format!("{}{number}", kind.letter());
            Some(same && (1..=count).contains(&number))
        };
        let was =
            given(Kind::Picture, self.pictures).or_else(|| given(Kind::Recording, self.recordings));
        Err(match was {
            Some(true) => PartRefusal::Gone(id.to_owned()),
            _ => PartRefusal::NotFound(id.chars().take(40).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn shelf(most: usize, most_bytes: usize, part: usize) -> (TempDir, Artifacts) {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::within(folder.path().into(), most, most_bytes, part);
        (folder, artifacts)
    }

    fn files(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn the_oldest_goes_and_its_part_says_gone() {
        let (folder, artifacts) = shelf(2, 10, 3);
        for content in ["one", "two"] {
            artifacts.keep(Kind::Picture, content.into()).await.unwrap();
        }
        let film = artifacts
            .keep(Kind::Recording, "film".into())
            .await
            .unwrap();
        assert_eq!((film.id.as_str(), film.parts, film.bytes), ("v1", 2, 4));
        assert_eq!(files(&folder), ["i2", "v1"]);
        // By bytes: 3 + 4 + 9 are more than 10.
        artifacts
            .keep(Kind::Picture, "ninebytes".into())
            .await
            .unwrap();
        assert_eq!(files(&folder), ["i3"]);
        for (id, gone) in [
            ("i1", true),
            ("i2", true),
            ("v1", true),
            ("i4", false),
            ("v2", false),
            ("i+1", false),
            ("i01", false),
            ("../i1", false),
            ("", false),
            ("i0", false),
        ] {
            match artifacts.part(id, 1).await.unwrap_err() {
                ArtifactError::Part(PartRefusal::Gone(_)) => assert!(gone, "{id}"),
                ArtifactError::Part(PartRefusal::NotFound(_)) => assert!(!gone, "{id}"),
                other => panic!("{id}: {other}"),
            }
        }
    }

    #[tokio::test]
    async fn a_part_out_of_range_says_how_many_there_are() {
        let (_folder, artifacts) = shelf(2, 10, 3);
        artifacts
            .keep(Kind::Picture, "seven77".into())
            .await
            .unwrap();
        for part in [0, 4, usize::MAX] {
            let refused = artifacts.part("i1", part).await.unwrap_err();
            assert!(
                refused.to_string().starts_with("i1 has 3 part(s)"),
                "{refused}"
            );
        }
        let empty = artifacts.keep(Kind::Picture, Bytes::new()).await.unwrap();
        assert_eq!(
            (empty.parts, artifacts.part("i2", 1).await.unwrap()),
            (1, String::new())
        );
    }

    #[tokio::test]
    async fn what_cannot_be_kept_leaves_nothing_behind() {
        let (folder, artifacts) = shelf(2, 10, 3);
        let error = artifacts
            .keep(Kind::Picture, vec![0; 11].into())
            .await
            .unwrap_err();
        assert!(matches!(
            error,
            ArtifactError::TooLarge {
                bytes: 11,
                most: 10
            }
        ));
        assert!(files(&folder).is_empty());
        let nowhere = Artifacts::new(folder.path().join("missing"));
        let error = nowhere.keep(Kind::Picture, "x".into()).await.unwrap_err();
        assert!(matches!(error, ArtifactError::Folder(_)));
    }

    proptest! {
        #[test]
        fn the_parts_joined_are_the_very_same_bytes(
            content in proptest::collection::vec(any::<u8>(), 0..200),
            thirds in 1_usize..20,
        ) {
            let (_folder, artifacts) = shelf(2, 1_000, thirds * 3);
            let kept = artifacts.shelf.keep(Kind::Picture, &content).unwrap();
            let parts: Vec<String> = (1..=kept.parts)
                .map(|part| artifacts.shelf.part("i1", part).unwrap())
                .collect();
            let decoded: Vec<u8> = parts.iter().flat_map(|part| STANDARD.decode(part).unwrap()).collect();
            prop_assert_eq!(&decoded, &content);
            prop_assert_eq!(parts.concat(), STANDARD.encode(&content));
        }
    }
}
