//! A Chromium from an archive: Chrome for Testing as its makers pack it, one folder with `chrome` in it. It is unpacked
//! by root, so nothing in it is believed: no path leads out, no link is followed, no mode gives more than it must.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Standing, Step};
use crate::install::files::{self, ROOT, at};
use crate::install::tripwire::passed;

/// Bytes that an archive may come to: a Chromium is 400 MB; a bomb is more.
const LARGEST: u64 = 2 << 30;
/// Entries of an archive: a Chromium has 300.
const MOST: usize = 20_000;
/// The program.
const CHROME: &str = "chrome";

/// An unpacked Chromium.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Chromium {
    pub(in crate::install) folder: PathBuf,
    pub(in crate::install) archive: PathBuf,
    /// What the owner says that the archive is.
    pub(in crate::install) sha256: String,
}

impl Chromium {
    fn aside(&self) -> PathBuf {
        let mut name = self.folder.clone().into_os_string();
        name.push(".new");
        name.into()
    }

    fn refused(&self, why: impl std::fmt::Display) -> Error {
        Error::NotProven(format!("{}: {why}", self.archive.display()))
    }

    /// A copy that nobody but root can change, once it is known to be what the owner named.
    fn copied(&self, aside: &Path) -> Result<File, Error> {
        let copy = aside.join(".archive.zip");
        std::fs::copy(&self.archive, &copy).map_err(at("copy", &self.archive))?;
        let sha256 = files::sha256(&copy)?;
        if sha256 != self.sha256 {
            return Err(self.refused(format_args!("its SHA-256 is {sha256}, not {}", self.sha256)));
        }
        let file = File::open(&copy).map_err(at("open", &copy))?;
        files::remove_file(&copy)?;
        Ok(file)
    }

    fn unpack(&self, file: File, aside: &Path) -> Result<(), Error> {
        let mut archive = zip::ZipArchive::new(file).map_err(|error| self.refused(error))?;
        if archive.len() > MOST {
            return Err(self.refused("it has too many entries"));
        }
        let mut left = LARGEST;
        for index in 0..archive.len() {
            let mut entry = archive
                .by_index(index)
                .map_err(|error| self.refused(error))?;
            let name = entry
                .name()
                .map_err(|error| self.refused(error))?
                .into_owned();
            let inside =
                inside(&name).map_err(|why| self.refused(format_args!("{name:?} {why}")))?;
            let Some(inside) = inside else { continue };
            if entry.is_symlink() {
                return Err(self.refused(format_args!("{name:?} is a link")));
            }
            let to = aside.join(inside);
            let folder = if entry.is_dir() {
                Some(to.as_path())
            } else {
                to.parent()
            };
            if let Some(folder) = folder {
                std::fs::create_dir_all(folder).map_err(at("make", folder))?;
            }
            if entry.is_dir() {
                continue;
            }
            let is_program = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            let written = write(&mut entry, &to, is_program, left)?;
            left = left
                .checked_sub(written)
                .filter(|left| *left > 0)
                .ok_or_else(|| self.refused("it is too large"))?;
        }
        Ok(())
    }
}

/// The path below the archive's one folder; none for that folder itself.
fn inside(name: &str) -> Result<Option<PathBuf>, &'static str> {
    let mut parts = Path::new(name).components();
    if !matches!(parts.next(), Some(Component::Normal(_))) {
        return Err("leads out of the archive");
    }
    let rest = parts.as_path().to_owned();
    if name.contains(['\\', '\0']) || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err("leads out of the archive");
    }
    Ok((!rest.as_os_str().is_empty()).then_some(rest))
}

/// Writes one file, never over another; reads one byte more than is left, so that what is too large is seen.
fn write(entry: &mut impl Read, to: &Path, is_program: bool, left: u64) -> Result<u64, Error> {
    let mode = if is_program { 0o755 } else { 0o644 };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(to)
        .map_err(at("write", to))?;
    let written = std::io::copy(&mut entry.take(left), &mut file).map_err(at("unpack", to))?;
    files::settle_quietly(&file, to, mode)?;
    Ok(written)
}

/// All folders as everybody may see them; they were made under root's own mask.
fn open_folders(folder: &Path) -> Result<(), Error> {
    for entry in std::fs::read_dir(folder).map_err(at("read", folder))? {
        let entry = entry.map_err(at("read", folder))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_folders(&entry.path())?;
        }
    }
    let file = File::open(folder).map_err(at("open", folder))?;
    files::settle_quietly(&file, folder, 0o755)
}

impl Step for Chromium {
    fn thing(&self) -> String {
        format!("Chromium {}", self.folder.display())
    }

    fn describe(&self) -> String {
        format!(
            "unpack the Chromium of {} to {}",
            self.archive.display(),
            self.folder.display()
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        if self.folder.symlink_metadata().is_err() {
            return Ok(Standing::Absent);
        }
        // Its name is its digest, and it was renamed in whole.
        Ok(match files::is_roots_alone(&self.folder.join(CHROME)) {
            Ok(()) if self.folder.join(CHROME).is_file() => Standing::Same,
            Ok(()) => Standing::different(format!("{} is not whole", self.folder.display())),
            Err(why) => Standing::different(why),
        })
    }

    fn apply(&self) -> Result<(), Error> {
        let aside = self.aside();
        files::remove_tree(&aside)?;
        files::remove_tree(&self.folder)?;
        files::folder(&aside, 0o700, ROOT)?;
        let unpacked = self
            .copied(&aside)
            .and_then(|file| self.unpack(file, &aside));
        passed();
        let whole = unpacked.and_then(|()| {
            if aside.join(CHROME).is_file() {
                Ok(())
            } else {
                Err(self.refused("there is no `chrome` in its folder; Chrome for Testing (chrome-linux64.zip) is wanted"))
            }
        });
        if let Err(error) = whole {
            files::remove_tree(&aside)?;
            return Err(error);
        }
        open_folders(&aside)?;
        files::rename(&aside, &self.folder)
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_tree(&self.aside())?;
        files::remove_tree(&self.folder)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn archive(entries: &[(&str, &str)]) -> (tempfile::TempDir, Chromium) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut writer = zip::ZipWriter::new(File::create(&path).unwrap());
        for (name, content) in entries {
            let options = zip::write::SimpleFileOptions::default().unix_permissions(0o6777);
            match content.strip_prefix("-> ") {
                Some(target) => writer.add_symlink(*name, target, options).unwrap(),
                None => {
                    writer.start_file(*name, options).unwrap();
                    writer.write_all(content.as_bytes()).unwrap();
                }
            }
        }
        writer.finish().unwrap();
        let step = Chromium {
            folder: folder.path().join("out"),
            sha256: files::sha256(&path).unwrap(),
            archive: path,
        };
        (folder, step)
    }

    #[test]
    fn an_archive_as_its_makers_pack_it_is_unpacked_without_special_modes() {
        use std::os::unix::fs::MetadataExt;
        let (_folder, step) = archive(&[
            ("chrome-linux64/chrome", "program"),
            ("chrome-linux64/locales/de.pak", "words"),
        ]);
        step.apply().unwrap();
        let chrome = step.folder.join("chrome");
        assert_eq!(chrome.metadata().unwrap().mode() & 0o7777, 0o755);
        assert_eq!(
            std::fs::read_to_string(step.folder.join("locales/de.pak")).unwrap(),
            "words"
        );
        assert!(!step.folder.join(".archive.zip").exists());
    }

    #[test]
    fn an_archive_that_reaches_out_leaves_nothing() {
        for (entries, named) in [
            (&[("../evil", "x")][..], "leads out"),
            (&[("/etc/evil", "x")], "leads out"),
            (&[("top/../../evil", "x")], "leads out"),
            (&[("top/a\\..\\b", "x")], "leads out"),
            (&[("top/chrome", "-> /bin/sh")], "is a link"),
            (&[("top/lib", "-> .."), ("top/lib/evil", "x")], "is a link"),
            (&[("top/readme", "x")], "no `chrome`"),
        ] {
            let (folder, step) = archive(entries);
            let error = step.apply().unwrap_err().to_string();
            assert!(error.contains(named), "{entries:?}: {error}");
            let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "{entries:?}: {left:?}");
        }
    }

    #[test]
    fn an_archive_that_is_not_what_the_owner_named_is_not_unpacked() {
        let (_folder, mut step) = archive(&[("top/chrome", "x")]);
        step.sha256 = "0".repeat(64);
        assert!(step.apply().unwrap_err().to_string().contains("SHA-256"));
        assert!(!step.folder.exists());
    }
}
