//! The files of a session, in memory: changed in batches that take effect whole or not at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::policy::limits::{UPLOAD_BYTES, UPLOAD_FILES, UPLOAD_PATH};

/// Why a change was refused; nothing of it took effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreRefusal {
    /// The path is none that a file may have.
    #[error("the path {path:?} {reason}")]
    BadPath {
        /// The path as it came.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The limits of number or bytes would be passed.
    #[error("the uploads would hold {files} files and {bytes} bytes")]
    Full {
        /// Files there would be.
        files: usize,
        /// Bytes there would be.
        bytes: usize,
    },
    /// A chunk does not begin where the file ends.
    #[error("{path} holds {expected} bytes, so the next chunk begins there")]
    OffsetMismatch {
        /// The file.
        path: UploadPath,
        /// The right offset: bytes that are there.
        expected: usize,
    },
    /// A file to delete is not there.
    #[error("there is no upload {path}")]
    NotFound {
        /// The file.
        path: UploadPath,
    },
}

/// A path of an upload: relative, clean, of a bounded length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadPath(String);

impl UploadPath {
    /// Parses a path; a leading `./` is dropped, everything else that is not a plain relative path is refused.
    pub fn parse(text: &str) -> Result<Self, StoreRefusal> {
        let path = text.strip_prefix("./").unwrap_or(text);
        let reason = if path.is_empty() {
            "is empty"
        } else if path.len() > UPLOAD_PATH {
            "is longer than 255 bytes"
        } else if path.starts_with('/') {
            "is absolute; leave the leading slash out"
        } else if path.contains('\\') || path.chars().any(char::is_control) {
            "holds a backslash or a control character"
        } else if path.split('/').any(|part| part == "..") {
            "leaves the uploads with `..`"
        } else if path.split('/').any(|part| part.is_empty() || part == ".") {
            "has an empty part, a `.` part or ends with a slash"
        } else {
            return Ok(Self(path.to_owned()));
        };
        Err(StoreRefusal::BadPath {
            path: text.chars().take(80).collect(),
            reason,
        })
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for UploadPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A file or a chunk of one.
#[derive(Debug, Clone)]
pub struct Put {
    /// Where it goes.
    pub path: UploadPath,
    /// What it holds.
    pub bytes: Bytes,
    /// Its content type; from the path's ending where the agent did not say.
    pub content_type: Option<String>,
    /// Where the chunk begins; `None` and 0 replace the file.
    pub offset: Option<usize>,
}

/// A batch: clearing first, then deleting, then putting in order.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Whether everything is dropped first.
    pub clear: bool,
    /// Files to drop.
    pub delete: Vec<UploadPath>,
    /// Files and chunks to write.
    pub put: Vec<Put>,
}

/// A file as it is served: its chunks in order, never copied.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The content, in the chunks it came in.
    pub chunks: Vec<Bytes>,
    /// Bytes of all chunks.
    pub len: usize,
    /// The content type it is served with.
    pub content_type: String,
    /// The running digest, so that a chunk costs only its own bytes.
    digest: Sha256,
}

impl Upload {
    /// The SHA-256 of the content, in hexadecimal; it is the entity tag too.
    pub fn sha256(&self) -> String {
        self.digest
            .clone()
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// A line of the list of uploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The path.
    pub path: UploadPath,
    /// Bytes of the content.
    pub bytes: usize,
    /// The digest of the content in hexadecimal.
    pub sha256: String,
}

type Files = BTreeMap<UploadPath, Arc<Upload>>;

/// The files of one session.
#[derive(Debug, Default)]
pub struct UploadStore {
    files: Mutex<Files>,
}

impl UploadStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a batch whole, and returns the lines of the files it wrote; on a refusal nothing has changed.
    pub fn apply(&self, change: Change) -> Result<Vec<Listed>, StoreRefusal> {
        let mut files = self.lock();
        let mut next = if change.clear {
            Files::new()
        } else {
            files.clone()
        };
        for path in change.delete {
            if next.remove(&path).is_none() {
                return Err(StoreRefusal::NotFound { path });
            }
        }
        let mut written = Vec::with_capacity(change.put.len());
        for put in change.put {
            written.push(put.path.clone());
            write(&mut next, put)?;
        }
        let bytes = next.values().map(|upload| upload.len).sum();
        if next.len() > UPLOAD_FILES || bytes > UPLOAD_BYTES {
            return Err(StoreRefusal::Full {
                files: next.len(),
                bytes,
            });
        }
        written.sort();
        written.dedup();
        let lines = written
            .iter()
            .filter_map(|path| Some(line(path, next.get(path)?)))
            .collect();
        *files = next;
        Ok(lines)
    }

    /// The file at a path.
    pub fn get(&self, path: &UploadPath) -> Option<Arc<Upload>> {
        self.lock().get(path).cloned()
    }

    /// All files, in the order of their paths.
    pub fn list(&self) -> Vec<Listed> {
        self.lock()
            .iter()
            .map(|(path, upload)| line(path, upload))
            .collect()
    }

    /// Files and bytes held.
    pub fn total(&self) -> (usize, usize) {
        let files = self.lock();
        (files.len(), files.values().map(|upload| upload.len).sum())
    }

    /// A panic elsewhere leaves the map as the last whole batch made it, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(path: &UploadPath, upload: &Upload) -> Listed {
    Listed {
        path: path.clone(),
        bytes: upload.len,
        sha256: upload.sha256(),
    }
}

fn write(files: &mut Files, put: Put) -> Result<(), StoreRefusal> {
    let held = files
        .get(&put.path)
        .filter(|_| put.offset.is_some_and(|offset| offset > 0));
    let expected = held.map_or(0, |upload| upload.len);
    if put.offset.unwrap_or(0) != expected {
        let there = files.get(&put.path).map_or(0, |upload| upload.len);
        return Err(StoreRefusal::OffsetMismatch {
            path: put.path,
            expected: there,
        });
    }
    let content_type = put
        .content_type
        .or_else(|| held.map(|upload| upload.content_type.clone()));
    let mut upload = held.map_or_else(
        || Upload {
            chunks: Vec::new(),
            len: 0,
            content_type: String::new(),
            digest: Sha256::new(),
        },
        |upload| Upload::clone(upload),
    );
    upload.content_type = content_type.unwrap_or_else(|| content_type_of(put.path.as_str()));
    upload.len += put.bytes.len();
    upload.digest.update(&put.bytes);
    upload.chunks.push(put.bytes);
    files.insert(put.path, Arc::new(upload));
    Ok(())
}

/// The content type of a path's ending; text gets its charset, and shaders, which no registry knows, are text.
pub fn content_type_of(path: &str) -> String {
    let ending = path
        .rsplit_once('.')
        .map_or("", |(_, ending)| ending)
        .to_ascii_lowercase();
    let known = match ending.as_str() {
        "wgsl" | "glsl" | "vert" | "frag" => Some("text/plain"),
        "mjs" | "js" => Some("text/javascript"),
        "glb" => Some("model/gltf-binary"),
        "gltf" => Some("model/gltf+json"),
        "ktx2" => Some("image/ktx2"),
        _ => None,
    };
    let guess = mime_guess::from_path(path).first_raw();
    let kind = known.or(guess).unwrap_or("application/octet-stream");
    if kind.starts_with("text/") || kind == "application/json" || kind == "application/xml" {
        format!("{kind}; charset=utf-8")
    } else {
        kind.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> UploadPath {
        UploadPath::parse(text).unwrap()
    }

    fn put(at: &str, content: &'static [u8], offset: Option<usize>) -> Change {
        let put = Put {
            path: path(at),
            bytes: Bytes::from_static(content),
            content_type: None,
            offset,
        };
        Change {
            put: vec![put],
            ..Change::default()
        }
    }

    #[test]
    fn a_path_that_escapes_is_refused() {
        let long = "a".repeat(256);
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            ".",
            "./",
            "a\\b",
            "a\0b",
            "a\nb",
            &long,
        ] {
            assert!(UploadPath::parse(bad).is_err(), "{bad:?}");
        }
        for good in [
            "index.html",
            "./a/b.js",
            "a b/ä.png",
            "..a/b..",
            &long[..255],
        ] {
            assert!(UploadPath::parse(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn chunks_join_to_the_digest_of_the_whole() {
        let (store, whole) = (UploadStore::new(), UploadStore::new());
        store.apply(put("a", b"one ", Some(0))).unwrap();
        let chunked = store.apply(put("a", b"two", Some(4))).unwrap();
        assert_eq!(chunked, whole.apply(put("a", b"one two", None)).unwrap());
    }

    #[test]
    fn a_wrong_offset_names_the_right_one_and_changes_nothing() {
        let store = UploadStore::new();
        store.apply(put("a", b"one", None)).unwrap();
        let before = store.list();
        for offset in [1, 4, usize::MAX] {
            let refused = store.apply(put("a", b"x", Some(offset))).unwrap_err();
            assert_eq!(
                refused,
                StoreRefusal::OffsetMismatch {
                    path: path("a"),
                    expected: 3
                }
            );
        }
        assert_eq!(store.list(), before);
    }

    #[test]
    fn a_batch_that_is_refused_changes_nothing() {
        let store = UploadStore::new();
        store.apply(put("keep", b"1", None)).unwrap();
        let mut change = put("new", b"2", None);
        change.delete = vec![path("missing")];
        assert!(store.apply(change).is_err());
        let many = (0..=UPLOAD_FILES).map(|n| Put {
            path: path(&format!("f{n}")),
            bytes: Bytes::new(),
            content_type: None,
            offset: None,
        });
        let refused = store.apply(Change {
            clear: true,
            put: many.collect(),
            ..Change::default()
        });
        assert!(matches!(refused, Err(StoreRefusal::Full { .. })));
        assert_eq!(store.list().len(), 1);
    }

    #[test]
    fn shaders_and_modules_get_types_that_browsers_take() {
        for (name, kind) in [
            ("a.html", "text/html; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.wasm", "application/wasm"),
            ("a.wgsl", "text/plain; charset=utf-8"),
            ("a.json", "application/json; charset=utf-8"),
            ("a.png", "image/png"),
            ("a", "application/octet-stream"),
        ] {
            assert_eq!(content_type_of(name), kind);
        }
    }
}
