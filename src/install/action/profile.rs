//! An AppArmor profile, where the kernel keeps user namespaces from programs that have none (Ubuntu since 23.10).
//! It takes nothing away from the programs that it names and gives them user namespaces back: Chromium's sandbox and our
//! own namespace need them. It names resolved paths below folders of root's, so that nobody else can use it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Standing, Step};
use crate::install::files::{self, ROOT, at};
use crate::install::run::{expect, has, run};
use crate::place;

/// Where the kernel says that the restriction is on.
const SWITCH: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
/// The profiles that the kernel has.
const LOADED: &str = "/sys/kernel/security/apparmor/profiles";
/// Where AppArmor keeps compiled profiles.
const CACHE: &str = "/var/cache/apparmor";
/// One profile a program, from the file that ships with the sources.
const TEMPLATE: &str = include_str!("../../../apparmor/profile.in");
/// What comes before the profiles.
const HEAD: &str = include_str!("../../../apparmor/head.in");

/// The file of our profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::install) struct Profile {
    pub(in crate::install) path: PathBuf,
    /// Name of a profile, and the programs it is for.
    pub(in crate::install) programs: Vec<(String, String)>,
}

/// Whether a profile of the system's own is for a program already.
pub(in crate::install) fn is_profiled(program: &str) -> bool {
    let entries = std::fs::read_dir(place::LAYOUT.apparmor)
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter(|entry| entry.file_name() != place::ACCOUNT)
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
        .any(|text| {
            text.lines()
                .any(|line| line.starts_with("profile ") && line.contains(program))
        })
}

/// Whether this machine needs a profile.
pub(in crate::install) fn is_restricted() -> bool {
    std::fs::read_to_string(SWITCH).is_ok_and(|text| text.trim() == "1") && has("apparmor_parser")
}

impl Profile {
    fn text(&self) -> String {
        let profiles = self.programs.iter().map(|(name, program)| {
            TEMPLATE
                .replace("@NAME@", name)
                .replace("@PROGRAM@", program)
        });
        std::iter::once(HEAD.to_owned()).chain(profiles).collect()
    }

    fn aside(&self) -> PathBuf {
        let folder = self.path.parent().and_then(Path::parent);
        folder
            .unwrap_or(Path::new("/etc"))
            .join(format!(".{}.apparmor", place::ACCOUNT))
    }

    fn put(&self, text: &str) -> Result<(), Error> {
        let aside = self.aside();
        files::write_aside(&aside, text.as_bytes(), 0o644, ROOT)?;
        // A parser that does not know the words is told apart before anything is in its folder.
        let parsed = expect(
            "apparmor_parser",
            &[
                "--skip-kernel-load",
                "--skip-cache",
                &aside.to_string_lossy(),
            ],
        );
        if parsed.is_err() {
            files::remove_file(&aside)?;
        }
        parsed?;
        files::rename(&aside, &self.path)?;
        load(&self.path)
    }
}

fn load(path: &Path) -> Result<(), Error> {
    let path = path.to_string_lossy();
    expect("apparmor_parser", &["--replace", "--skip-cache", &path]).map(drop)
}

impl Step for Profile {
    fn thing(&self) -> String {
        format!("AppArmor profile {}", self.path.display())
    }

    fn describe(&self) -> String {
        format!(
            "give Chromium and its helper user namespaces back, for their sandbox ({})",
            self.path.display()
        )
    }

    fn inspect(&self) -> Result<Standing, Error> {
        if self.path.symlink_metadata().is_err() {
            return Ok(Standing::Absent);
        }
        let text = std::fs::read_to_string(&self.path).map_err(at("read", &self.path))?;
        let loaded = std::fs::read_to_string(LOADED).unwrap_or_default();
        let are_loaded = self.programs.iter().all(|(name, _)| {
            loaded
                .lines()
                .any(|line| line.starts_with(&format!("{name} ")))
        });
        Ok(match (text == self.text(), are_loaded) {
            (true, true) => Standing::Same,
            (true, false) => Standing::different(format!("{} is not loaded", self.path.display())),
            (false, _) => Standing::Different {
                why: format!("{} holds another profile", self.path.display()),
                content: Some(text),
            },
        })
    }

    fn apply(&self) -> Result<(), Error> {
        self.put(&self.text())
    }

    fn remove(&self) -> Result<(), Error> {
        files::remove_file(&self.aside())?;
        if self.path.exists() {
            // First out of the kernel: the parser needs the file for it. Where it was never loaded, it says so.
            let _ = run(
                "apparmor_parser",
                &["--remove", &self.path.to_string_lossy()],
            )?;
        }
        files::remove_file(&self.path)?;
        // The machine's own start of AppArmor keeps a compiled copy, a folder for each kernel.
        for kernel in std::fs::read_dir(CACHE).into_iter().flatten().flatten() {
            files::remove_file(&kernel.path().join(place::ACCOUNT))?;
        }
        Ok(())
    }

    fn put_back(&self, content: &str) -> Result<(), Error> {
        self.put(content)
    }
}
