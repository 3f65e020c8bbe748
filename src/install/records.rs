//! The folder of the records: made in one rename before anything else, taken away in one rename after everything else.

use std::path::{Path, PathBuf};

use super::action::Error;
use super::files::{self, ROOT, at};
use super::journal::{self, Record};
use super::tripwire::passed;
use crate::place;

/// The beginning of the name of a folder that is about to become the records, or was them.
const ASIDE: &str = ".agent-socket-gpu-browser.";

/// Makes the records, with the first line of the journal in them. Where two do it at once, one rename wins.
pub(super) fn make(records: &Path) -> Result<(), Error> {
    let (base, parent) = around(records);
    let made_parent = !parent.exists();
    let aside = base.join(format!("{ASIDE}{}", std::process::id()));
    files::remove_tree(&aside)?;
    files::folder(&aside, 0o755, ROOT)?;
    let inner = if made_parent {
        let inner = aside.join(records.file_name().unwrap_or_default());
        files::folder(&inner, 0o750, ROOT)?;
        inner
    } else {
        files::folder(&aside, 0o750, ROOT)?;
        aside.clone()
    };
    for name in place::RECORD_FILES {
        let first = match name {
            "journal" => journal::line(&Record::Opened { made_parent }),
            _ => String::new(),
        };
        files::write_aside(&inner.join(name), first.as_bytes(), 0o640, ROOT)?;
    }
    let to = if made_parent { parent } else { records };
    let renamed = files::rename(&aside, to);
    if renamed.is_err() {
        files::remove_tree(&aside)?;
    }
    renamed
}

/// Takes the records away. The lock is still held, on files that have no name any more.
pub(super) fn remove(records: &Path, made_parent: bool) -> Result<(), Error> {
    let (base, parent) = around(records);
    let aside = base.join(format!("{ASIDE}{}", std::process::id()));
    files::remove_tree(&aside)?;
    files::rename(records, &aside)?;
    if made_parent {
        files::remove_folder(parent)?;
    }
    files::remove_tree(&aside)
}

/// Clears away what a run has left that was killed while it made or removed the records.
pub(super) fn sweep(records: &Path) -> Result<(), Error> {
    let (base, parent) = around(records);
    for aside in left(base)? {
        let name = records.file_name().unwrap_or_default();
        // One that was made aside and never renamed still has the records one folder deeper, and made no parent.
        let was_used = !aside.join(name).exists();
        let opened = journal::look(&aside.join("journal"));
        if was_used && opened.is_ok_and(|ledger| ledger.made_parent) {
            files::remove_folder(parent)?;
        }
        files::remove_tree(&aside)?;
        passed();
    }
    Ok(())
}

fn left(base: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(base).map_err(at("read", base))?;
    let is_ours = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(ASIDE))
    };
    Ok(entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_ours)
        .collect())
}

/// The system's own folder that all lies in, and the folder above the records.
fn around(records: &Path) -> (&Path, &Path) {
    let parent = records.parent().unwrap_or(Path::new("/"));
    (parent.parent().unwrap_or(Path::new("/")), parent)
}
