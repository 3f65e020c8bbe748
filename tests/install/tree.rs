//! A file tree as far as it differs from the real one, to be compared byte for byte.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the system's own tools write beside: copies of the user database from before, locks, logs, notes of sudo's.
const NOT_OURS: &[&str] = &[
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
    "etc/.pwd.lock",
    "run",
    "tmp",
    "dev",
    "proc",
    "sys",
    "var/log/lastlog",
    "var/log/faillog",
    "var/log/wtmp",
    "var/log/btmp",
    "var/log/auth.log",
    "var/lib/sudo",
    "var/mail",
    "root/.cache",
];

const JOURNAL: &str = "var/lib/agent-socket/gpu-browser/journal";

/// Kind and mode, owner, group, content.
type Entry = (u32, u32, u32, u64);

/// Paths with what is there; nothing where the machine has less than the real tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, Option<Entry>>);

impl Tree {
    pub fn of(upper: &Path, merged: &Path) -> Self {
        let mut tree = BTreeMap::new();
        walk(upper, upper, merged, &mut tree);
        Self(tree)
    }

    /// Fails the test where anything differs.
    #[track_caller]
    pub fn assert_same(&self, after: &Self, when: &str) {
        let different = self.differences(after);
        assert!(different.is_empty(), "{when}:\n{}", different.join("\n"));
    }

    /// As [`assert_same`](Self::assert_same), where the journal may tell another story of how it came to be.
    #[track_caller]
    pub fn assert_same_things(&self, after: &Self, when: &str) {
        assert!(
            self.same_things(after),
            "{when}:\n{}",
            self.differences(after).join("\n")
        );
    }

    pub fn same_things(&self, after: &Self) -> bool {
        let mut different = self.differences(after).into_iter();
        different.all(|one| one.starts_with(JOURNAL))
    }

    fn differences(&self, after: &Self) -> Vec<String> {
        let paths = self.0.keys().chain(after.0.keys());
        let seen = |tree: &Self, path: &PathBuf| match tree.0.get(path) {
            Some(entry) => *entry,
            None => entry(&Path::new("/").join(path)),
        };
        paths
            .filter(|path| seen(self, path) != seen(after, path))
            .map(|path| {
                format!(
                    "{}: {:?} -> {:?}",
                    path.display(),
                    seen(self, path),
                    seen(after, path)
                )
            })
            .collect()
    }
}

fn walk(folder: &Path, upper: &Path, merged: &Path, tree: &mut BTreeMap<PathBuf, Option<Entry>>) {
    for found in std::fs::read_dir(folder).unwrap() {
        let path = found.unwrap().path();
        let inside = path.strip_prefix(upper).unwrap().to_owned();
        if NOT_OURS.iter().any(|name| inside.starts_with(name)) {
            continue;
        }
        tree.insert(inside.clone(), entry(&merged.join(&inside)));
        if path.symlink_metadata().unwrap().is_dir() {
            walk(&path, upper, merged, tree);
        }
    }
}

fn entry(path: &Path) -> Option<Entry> {
    let found = path.symlink_metadata().ok()?;
    let mut content = DefaultHasher::new();
    if found.is_symlink() {
        std::fs::read_link(path).ok()?.hash(&mut content);
    } else if found.is_file() {
        std::fs::read(path).ok()?.hash(&mut content);
    }
    Some((found.mode(), found.uid(), found.gid(), content.finish()))
}
