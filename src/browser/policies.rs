//! Managed policies of the machine: they beat the command line, so one that opens a hole stops the start.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Where Chromium and Chrome look, each with `managed` and `recommended` below.
const FOLDERS: &[&str] = &[
    "/etc/chromium/policies",
    "/etc/opt/chrome/policies",
    "/etc/opt/chrome_for_testing/policies",
];
/// Policies that decide what goes through the proxy begin with these.
const DANGEROUS: &[&str] = &["Proxy", "WebRtc", "WebRTC"];

/// A policy that would open the boundary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy {policy} in {} beats the browser's boundary; take it out of that file, or start another Chromium with --chromium PATH", file.display())]
pub struct PolicyHole {
    /// The file.
    pub file: PathBuf,
    /// The policy, or `unreadable`.
    pub policy: String,
}

/// Looks at the machine's policies.
pub fn check() -> Result<(), PolicyHole> {
    FOLDERS
        .iter()
        .try_for_each(|folder| check_folder(Path::new(folder)))
}

fn check_folder(folder: &Path) -> Result<(), PolicyHole> {
    for part in ["managed", "recommended"] {
        let entries = std::fs::read_dir(folder.join(part))
            .into_iter()
            .flatten()
            .flatten();
        for file in entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
        {
            check_file(&file)?;
        }
    }
    Ok(())
}

/// A file that cannot be read by us may well be read by Chromium, so it counts as a hole.
fn check_file(file: &Path) -> Result<(), PolicyHole> {
    let hole = |policy: &str| PolicyHole {
        file: file.to_owned(),
        policy: policy.to_owned(),
    };
    let text = std::fs::read(file).map_err(|_| hole("(unreadable)"))?;
    let policies: Value = serde_json::from_slice(&text).map_err(|_| hole("(not JSON)"))?;
    let names = policies
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys());
    let dangerous = |name: &&String| DANGEROUS.iter().any(|start| name.starts_with(start));
    names
        .into_iter()
        .find(dangerous)
        .map_or(Ok(()), |name| Err(hole(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_on_the_proxy_or_on_webrtc_stops_the_start_and_others_do_not() {
        for (text, hole) in [
            (r#"{"ProxyMode": "direct"}"#, Some("ProxyMode")),
            (
                r#"{"ProxySettings": {"ProxyMode": "direct"}}"#,
                Some("ProxySettings"),
            ),
            (
                r#"{"WebRtcIPHandling": "default"}"#,
                Some("WebRtcIPHandling"),
            ),
            ("{", Some("(not JSON)")),
            (r#"{"BookmarkBarEnabled": true}"#, None),
        ] {
            for part in ["managed", "recommended"] {
                let folder = tempfile::tempdir().unwrap();
                std::fs::create_dir(folder.path().join(part)).unwrap();
                std::fs::write(folder.path().join(part).join("a.json"), text).unwrap();
                let found = check_folder(folder.path()).err().map(|hole| hole.policy);
                assert_eq!(found.as_deref(), hole, "{text}");
            }
        }
    }
}
