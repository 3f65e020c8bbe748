//! The account that Chromium and Xvfb run under.
//!
//! Chromium keeps its sandbox only for an ordinary account, so root in development drops to one: the account of an
//! install where it is there, else `nobody`. It gets the groups that own the GPU's device nodes and no other.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};

use crate::place;

/// An account to become: numbers, so that the helper looks nothing up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The user.
    pub uid: u32,
    /// Its own group.
    pub gid: u32,
    /// The groups of the GPU's device nodes.
    pub groups: Vec<u32>,
    /// Its name, for the owner's screen.
    pub name: String,
}

/// The account to drop to; `None` where we are an ordinary one already.
pub fn unprivileged() -> Option<Account> {
    if !Uid::effective().is_root() {
        return None;
    }
    let user = [place::ACCOUNT, "nobody"]
        .iter()
        .find_map(|name| User::from_name(name).ok().flatten());
    // 65534 is `nobody` by convention of every system that has no such name.
    let (uid, gid, name) = user.map_or_else(
        || (65_534, 65_534, "65534".to_owned()),
        |user| (user.uid.as_raw(), user.gid.as_raw(), user.name),
    );
    Some(Account {
        uid,
        gid,
        groups: groups_of_nodes().into_keys().collect(),
        name,
    })
}

/// Whether this machine has a GPU that a driver has opened a device node for.
pub fn has_gpu() -> bool {
    !device_nodes().is_empty() || cfg!(target_os = "macos")
}

/// Device nodes through which a process reaches a GPU.
fn device_nodes() -> Vec<PathBuf> {
    let listed = |folder: &str, starts: &[&str]| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let fits = |name: &str| starts.iter().any(|start| name.starts_with(start));
        entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|n| fits(&n.to_string_lossy())))
            .collect()
    };
    let mut nodes = listed("/dev/dri", &["renderD", "card"]);
    nodes.extend(
        listed("/dev", &["nvidia", "kfd", "dxg", "mali"])
            .into_iter()
            .filter(|path| !path.is_dir()),
    );
    nodes
}

/// The groups that own nodes which not everybody may open, each with such a node: what the account of an install needs.
pub fn groups_of_nodes() -> BTreeMap<u32, PathBuf> {
    closed(&device_nodes())
}

fn closed(nodes: &[PathBuf]) -> BTreeMap<u32, PathBuf> {
    let group = |node: &PathBuf| -> Option<u32> {
        let metadata = node.metadata().ok()?;
        let mode = metadata.permissions().mode();
        // Root's own group is never handed on, whatever it may open.
        (mode & 0o006 != 0o006 && mode & 0o060 == 0o060 && metadata.gid() != 0)
            .then(|| metadata.gid())
    };
    nodes
        .iter()
        .filter_map(|node| Some((group(node)?, node.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_closed_nodes_are_handed_on() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode, gid) in [
            ("open", 0o666, 4_001),
            ("closed", 0o660, 4_002),
            ("root", 0o660, 0),
            ("none", 0o600, 4_003),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(&path, None, Some(gid)).unwrap();
        }
        let nodes: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(closed(&nodes).into_keys().eq([4_002]));
    }
}
