//! Which Chromium to run: the real program, full and with its own sandbox; never a snap, a wrapper script, or the
//! headless shell, which has no path to the GPU.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::place;

/// Where real Chromium programs lie, best first.
const KNOWN: &[&str] = if cfg!(target_os = "macos") {
    &[
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
    ]
} else {
    &[
        "/usr/lib/chromium/chromium",
        "/usr/lib64/chromium/chromium",
        "/usr/lib/chromium-browser/chromium-browser",
        "/usr/lib64/chromium-browser/chromium-browser",
        "/opt/google/chrome/chrome",
        "/opt/google/chrome-for-testing/chrome",
    ]
};

/// Names to look for on the search path after that.
const NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "chrome",
    "google-chrome-stable",
    "google-chrome",
];

/// A program that will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChromiumPath(PathBuf);

impl ChromiumPath {
    /// The program.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

/// Why a program will not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// It is not there, or is no file that may be run.
    Missing,
    /// A script that starts the real one, and would add flags of its own.
    Wrapper,
    /// A snap: confined, it can neither use our profile folder nor be put into our namespace.
    Snap,
    /// A Flatpak.
    Flatpak,
    /// The headless shell: software rendering only.
    HeadlessShell,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "is no program that may be run",
            Self::Wrapper => "is a wrapper script, which adds flags of its own",
            Self::Snap => "is a snap, which cannot be put into a namespace of ours",
            Self::Flatpak => "is a Flatpak, which cannot be put into a namespace of ours",
            Self::HeadlessShell => "is the headless shell, which cannot reach a GPU",
        })
    }
}

/// No usable Chromium: what was looked at and why it will not do.
#[derive(Debug, PartialEq, Eq)]
pub struct NotFound {
    /// Programs that are there but will not do.
    pub rejected: Vec<(PathBuf, Unusable)>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no usable Chromium was found")?;
        for (path, reason) in &self.rejected {
            write!(f, "; {} {reason}", path.display())?;
        }
        write!(
            f,
            ". Install one with: {} — or name one with --chromium PATH",
            install_command()
        )
    }
}

impl std::error::Error for NotFound {}

/// The program that the owner named, or the best that is there.
pub fn find(named: Option<&Path>) -> Result<ChromiumPath, NotFound> {
    if let Some(path) = named {
        return judge(path).map_err(|reason| NotFound {
            rejected: vec![(path.to_owned(), reason)],
        });
    }
    let on_path = place::search_path();
    let searched = NAMES
        .iter()
        .flat_map(|name| on_path.iter().map(move |folder| folder.join(name)));
    first_usable(KNOWN.iter().map(PathBuf::from).chain(searched))
}

fn first_usable(candidates: impl Iterator<Item = PathBuf>) -> Result<ChromiumPath, NotFound> {
    let mut rejected = Vec::new();
    for path in candidates {
        match judge(&path) {
            Ok(found) => return Ok(found),
            Err(Unusable::Missing) => {}
            Err(reason) => rejected.push((path, reason)),
        }
    }
    Err(NotFound { rejected })
}

fn judge(path: &Path) -> Result<ChromiumPath, Unusable> {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    let real = path.canonicalize().map_err(|_| Unusable::Missing)?;
    let within = |part: &str| {
        [path, &real]
            .iter()
            .any(|path| path.components().any(|name| name.as_os_str() == part))
    };
    let name = real
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    if within("snap") || name == "snap" {
        return Err(Unusable::Snap);
    }
    if within("flatpak") || name == "flatpak" {
        return Err(Unusable::Flatpak);
    }
    if name.contains("headless") {
        return Err(Unusable::HeadlessShell);
    }
    let executable = real
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    let mut start = [0; 2];
    let read = std::fs::File::open(&real).and_then(|mut file| file.read_exact(&mut start));
    match (executable, read, &start) {
        (false, ..) | (_, Err(_), _) => Err(Unusable::Missing),
        (true, Ok(()), b"#!") => Err(Unusable::Wrapper),
        (true, Ok(()), _) => Ok(ChromiumPath(real)),
    }
}

/// The command that installs a Chromium here.
pub fn install_command() -> &'static str {
    package_manager().map_or("your system's package manager", |(_, chromium, _)| chromium)
}

/// The command that installs Xvfb here.
pub fn install_xvfb_command() -> &'static str {
    package_manager().map_or("your system's package manager", |(_, _, xvfb)| xvfb)
}

fn package_manager() -> Option<(&'static str, &'static str, &'static str)> {
    const MANAGERS: &[(&str, &str, &str)] = &[
        (
            "apt-get",
            "sudo apt-get install chromium",
            "sudo apt-get install xvfb",
        ),
        (
            "dnf",
            "sudo dnf install chromium",
            "sudo dnf install xorg-x11-server-Xvfb",
        ),
        (
            "pacman",
            "sudo pacman -S chromium",
            "sudo pacman -S xorg-server-xvfb",
        ),
        (
            "zypper",
            "sudo zypper install chromium",
            "sudo zypper install xorg-x11-server-Xvfb",
        ),
        (
            "brew",
            "brew install --cask chromium",
            "nothing: this system needs no Xvfb",
        ),
    ];
    let folders = place::search_path();
    MANAGERS
        .iter()
        .find(|(name, ..)| folders.iter().any(|folder| folder.join(name).exists()))
        .copied()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(folder: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn only_the_real_program_will_do() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, mode, expected) in [
            ("chromium", &b"\x7fELF"[..], 0o755, None),
            ("plain", b"\x7fELF", 0o644, Some(Unusable::Missing)),
            ("empty", b"", 0o755, Some(Unusable::Missing)),
            (
                "wrapper",
                b"#!/bin/sh\nexec chromium",
                0o755,
                Some(Unusable::Wrapper),
            ),
            ("snap/bin/chromium", b"\x7fELF", 0o755, Some(Unusable::Snap)),
            (
                "flatpak/chromium",
                b"\x7fELF",
                0o755,
                Some(Unusable::Flatpak),
            ),
            (
                "chrome-headless-shell",
                b"\x7fELF",
                0o755,
                Some(Unusable::HeadlessShell),
            ),
        ] {
            let path = program(folder.path(), name, content, mode);
            assert_eq!(judge(&path).err(), expected, "{name}");
        }
        assert_eq!(
            judge(&folder.path().join("nothing")),
            Err(Unusable::Missing)
        );
    }

    #[test]
    fn a_link_is_judged_by_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let wrapper = program(folder.path(), "wrapper", b"#!/bin/sh", 0o755);
        let link = folder.path().join("chromium");
        std::os::unix::fs::symlink(wrapper, &link).unwrap();
        assert_eq!(judge(&link), Err(Unusable::Wrapper));
    }

    #[test]
    fn the_error_names_what_was_found_and_how_to_get_one() {
        let folder = tempfile::tempdir().unwrap();
        let wrapper = program(folder.path(), "chromium", b"#!/bin/sh", 0o755);
        let text = first_usable([wrapper].into_iter()).unwrap_err().to_string();
        assert!(
            text.contains("wrapper script") && text.contains("--chromium"),
            "{text}"
        );
    }
}
