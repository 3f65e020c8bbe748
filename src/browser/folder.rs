//! The folder of a run: the browser's home, profile and temporary files, and the pictures. It is gone when the run is.

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::account::Account;
use super::flags::PREFERENCES;
use crate::place;

/// The folder; it removes itself.
#[derive(Debug)]
pub struct RunFolder {
    folder: TempDir,
    account: Option<Account>,
}

impl RunFolder {
    /// Makes one. Others of the machine may pass through it and see nothing: each part is its owner's alone.
    pub fn create(account: Option<&Account>) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("gpu-browser-")
            .tempdir_in(place::run_folder_base())?;
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711))?;
        let folder = Self {
            folder,
            account: account.cloned(),
        };
        for part in [folder.home(), folder.temporary(), folder.crashes()] {
            folder.make(&part)?;
        }
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(folder.artifacts())?;
        Ok(folder)
    }

    /// A new profile for a start of the browser; what an earlier one left is gone.
    pub fn new_profile(&self) -> std::io::Result<PathBuf> {
        let profile = self.folder.path().join("profile");
        match std::fs::remove_dir_all(&profile) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.make(&profile)?;
        self.make(&profile.join("Default"))?;
        self.write("profile/Default/Preferences", PREFERENCES.as_bytes())?;
        Ok(profile)
    }

    /// Makes a folder that the browser's account may read and write.
    pub fn make_part(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.folder.path().join(name);
        self.make(&path)?;
        Ok(path)
    }

    /// Writes a file that the browser's account may read and write.
    pub fn write(&self, name: &str, content: &[u8]) -> std::io::Result<PathBuf> {
        let path = self.folder.path().join(name);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        std::io::Write::write_all(&mut file, content)?;
        self.give(&path)?;
        Ok(path)
    }

    /// The environment of what runs under the account: built from nothing.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.home()),
            ("TMPDIR", self.temporary()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("LANG", "C.UTF-8".into()),
            // The crash handler runs in spite of its switch, and would write into the home of the account.
            ("BREAKPAD_DUMP_LOCATION", self.crashes()),
            // An address that leads nowhere: the owner's own session bus is none of the browser's business.
            ("DBUS_SESSION_BUS_ADDRESS", "disabled:".into()),
        ]
    }

    /// Where pictures are kept: the daemon's alone.
    pub fn artifacts(&self) -> PathBuf {
        self.folder.path().join("artifacts")
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    fn crashes(&self) -> PathBuf {
        self.folder.path().join("crashes")
    }

    fn make(&self, path: &Path) -> std::io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).create(path)?;
        self.give(path)
    }

    fn give(&self, path: &Path) -> std::io::Result<()> {
        match &self.account {
            Some(account) => chown(path, Some(account.uid), Some(account.gid)),
            None => Ok(()),
        }
    }
}
