//! The user database, read from the machine's own files: what a directory service says is none of ours.

use std::path::{Path, PathBuf};

use super::action::Error;
use super::files::{self, Owner, at};

/// An account's line in `passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserLine {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) home: PathBuf,
    pub(super) shell: PathBuf,
}

/// The fields of the line that begins with a name.
fn fields(file: &str, name: &str) -> Result<Option<Vec<String>>, Error> {
    let path = Path::new("/etc").join(file);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(at("read", &path))?,
    };
    let mut lines = text.lines().map(|line| line.split(':'));
    let found = lines.find(|fields| fields.clone().next() == Some(name));
    Ok(found.map(|fields| fields.map(str::to_owned).collect()))
}

/// An account of this machine. macOS keeps its accounts in a directory service, and no file.
#[cfg(target_os = "macos")]
pub(super) fn user(name: &str) -> Result<Option<UserLine>, Error> {
    let found = nix::unistd::User::from_name(name).ok().flatten();
    Ok(found.map(|user| UserLine {
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        home: user.dir,
        shell: user.shell,
    }))
}

/// The number of a group of this machine.
#[cfg(target_os = "macos")]
pub(super) fn group(name: &str) -> Result<Option<u32>, Error> {
    let found = nix::unistd::Group::from_name(name).ok().flatten();
    Ok(found.map(|group| group.gid.as_raw()))
}

/// An account of this machine.
#[cfg(not(target_os = "macos"))]
pub(super) fn user(name: &str) -> Result<Option<UserLine>, Error> {
    let Some(fields) = fields("passwd", name)? else {
        return Ok(None);
    };
    let [_, _, uid, gid, _, home, shell] = fields.as_slice() else {
        return Err(Error::NotProven(format!(
            "the line of {name} in /etc/passwd cannot be read"
        )));
    };
    let number = |text: &str| text.parse().unwrap_or(u32::MAX);
    Ok(Some(UserLine {
        uid: number(uid),
        gid: number(gid),
        home: home.into(),
        shell: shell.into(),
    }))
}

/// The number of a group of this machine.
#[cfg(not(target_os = "macos"))]
pub(super) fn group(name: &str) -> Result<Option<u32>, Error> {
    Ok(fields("group", name)?.and_then(|fields| fields.get(2)?.parse().ok()))
}

/// Whether a user is listed in a group.
pub(super) fn is_member(group: &str, user: &str) -> Result<bool, Error> {
    Ok(fields("group", group)?.is_some_and(|fields| {
        fields
            .get(3)
            .is_some_and(|members| members.split(',').any(|member| member == user))
    }))
}

/// Whether the account or group has its line in a shadow file; a system without that file needs none.
pub(super) fn has_shadow(file: &str, name: &str) -> Result<bool, Error> {
    let path = Path::new("/etc").join(file);
    if !path.exists() {
        let open = if file == "shadow" { "passwd" } else { "group" };
        return Ok(fields(open, name)?.is_some());
    }
    Ok(fields(file, name)?.is_some())
}

/// Takes a line out of a shadow file that has none in the open one: no tool of the system does.
pub(super) fn drop_shadow(file: &str, name: &str) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let path = Path::new("/etc").join(file);
    if fields(file, name)?.is_none() {
        return Ok(());
    }
    let text = std::fs::read_to_string(&path).map_err(at("read", &path))?;
    let metadata = path.metadata().map_err(at("read", &path))?;
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| line.split(':').next() != Some(name))
        .collect();
    let owner = Owner {
        uid: metadata.uid(),
        gid: metadata.gid(),
    };
    let aside = Path::new("/etc").join(format!(".{file}.gpu-browser"));
    files::replace(
        &path,
        &aside,
        kept.as_bytes(),
        metadata.mode() & 0o7777,
        owner,
    )
}

/// Whether the name belongs to somebody whom this machine's files do not know.
pub(super) fn is_known_elsewhere(name: &str) -> bool {
    let user = nix::unistd::User::from_name(name).ok().flatten();
    let group = nix::unistd::Group::from_name(name).ok().flatten();
    let here = |file| matches!(fields(file, name), Ok(Some(_)));
    (user.is_some() && !here("passwd")) || (group.is_some() && !here("group"))
}
