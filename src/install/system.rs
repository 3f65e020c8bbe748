//! Which system this is, and whether an install can be exact on it.

use std::path::{Path, PathBuf};

/// A system that an install works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct System {
    /// Its name, for the owner.
    pub(super) name: String,
}

/// Systems by their `ID`, or by what they say they are like.
const KNOWN: &[&str] = &[
    "debian", "ubuntu", "fedora", "rhel", "arch", "opensuse", "suse",
];
/// Files that only an immutable system has, with its name.
const IMMUTABLE: &[(&str, &str)] = &[
    (
        "/run/ostree-booted",
        "an ostree system (Silverblue, CoreOS, Bazzite, …)",
    ),
    ("/etc/NIXOS", "NixOS"),
    (
        "/usr/sbin/transactional-update",
        "a transactional system (MicroOS, Aeon, …)",
    ),
];
/// Shells that let nobody in.
const NO_LOGIN: &[&str] = &[
    "/usr/sbin/nologin",
    "/sbin/nologin",
    "/usr/bin/nologin",
    "/bin/false",
];

/// Looks at this machine.
pub(super) fn detect() -> Result<System, String> {
    if cfg!(target_os = "macos") {
        return Ok(System {
            name: "macOS".to_owned(),
        });
    }
    let text = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_default();
    let marks = IMMUTABLE
        .iter()
        .filter(|(path, _)| Path::new(path).exists());
    judge(&text, marks.map(|(_, name)| *name).next())
}

fn judge(os_release: &str, immutable: Option<&str>) -> Result<System, String> {
    let field = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    let (id, like, name) = (field("ID="), field("ID_LIKE="), field("PRETTY_NAME="));
    let refuse = |what: &str, why: &str| {
        Err(format!(
            "{what} is not supported by `install`: {why}. `gpu-browser start --dev` works without an install"
        ))
    };
    if let Some(immutable) = immutable {
        return refuse(
            immutable,
            "accounts and programs are declared there, and what an install writes would not stay",
        );
    }
    match id.as_str() {
        "nixos" => return refuse("NixOS", "accounts are declared in its configuration"),
        "steamos" => return refuse("SteamOS", "its system is replaced whole by updates"),
        "alpine" => {
            return refuse(
                "Alpine",
                "it has neither `useradd` nor a Chromium for Testing that runs on musl",
            );
        }
        _ => {}
    }
    let is_known = std::iter::once(id.as_str())
        .chain(like.split_whitespace())
        .any(|word| {
            KNOWN
                .iter()
                .any(|known| word == *known || word.starts_with(&format!("{known}-")))
        });
    if is_known {
        return Ok(System { name });
    }
    let named = if name.is_empty() {
        "this system"
    } else {
        name.as_str()
    };
    refuse(
        named,
        "only Debian, Ubuntu, Fedora, Arch, openSUSE and systems like them are known to keep accounts as expected",
    )
}

/// The shell of an account that nobody logs in to.
pub(super) fn no_login() -> PathBuf {
    let found = NO_LOGIN.iter().map(Path::new).find(|path| path.exists());
    found.unwrap_or(Path::new("/bin/false")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_told_apart_and_a_refusal_says_why() {
        for (id, like, immutable, expected) in [
            ("debian", "", None, None),
            ("ubuntu", "debian", None, None),
            ("linuxmint", "ubuntu debian", None, None),
            ("fedora", "", None, None),
            ("rocky", "rhel centos fedora", None, None),
            ("arch", "", None, None),
            ("manjaro", "arch", None, None),
            ("opensuse-tumbleweed", "opensuse suse", None, None),
            (
                "fedora",
                "",
                Some("an ostree system"),
                Some("would not stay"),
            ),
            ("nixos", "", None, Some("declared")),
            ("steamos", "arch", None, Some("replaced whole")),
            ("alpine", "", None, Some("musl")),
            ("gentoo", "", None, Some("only Debian")),
            ("", "", None, Some("this system")),
        ] {
            let text = format!("ID={id}\nID_LIKE=\"{like}\"\nPRETTY_NAME=\"\"\n");
            match (judge(&text, immutable), expected) {
                (Ok(_), None) => {}
                (Err(why), Some(part)) => assert!(why.contains(part), "{id}: {why}"),
                (found, _) => panic!("{id}: {found:?}"),
            }
        }
    }
}
