//! The link into the owner's clipboard, through the tool that the desktop has for it.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::place;
use crate::policy::limits::CLIPBOARD;

/// The tools, the most fitting first: Wayland's, X's, the Mac's.
const TOOLS: [(&str, &[&str]); 4] = [
    ("wl-copy", &[]),
    ("xclip", &["-selection", "clipboard"]),
    ("xsel", &["--clipboard", "--input"]),
    ("pbcopy", &[]),
];

/// Copies a text, and says in words what came of it.
pub(super) async fn copy(text: &str) -> String {
    let folders = place::search_path();
    let is_there = |tool: &str| folders.iter().any(|folder| folder.join(tool).is_file());
    for (tool, arguments) in TOOLS {
        // One that is there may still have no desktop to talk to.
        if is_there(tool)
            && timeout(CLIPBOARD, give(tool, arguments, text))
                .await
                .is_ok_and(|given| given.is_ok())
        {
            return format!("the link is in the clipboard ({tool})");
        }
    }
    let names: Vec<&str> = TOOLS.iter().map(|(tool, _)| *tool).collect();
    format!(
        "the link could not be copied: no working {} here",
        names.join(", ")
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "a clipboard belongs to a tool of the desktop's, which needs the owner's environment"
)]
async fn give(tool: &str, arguments: &[&str], text: &str) -> std::io::Result<()> {
    let mut child = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes()).await?;
    }
    match child.wait().await?.success() {
        true => Ok(()),
        false => Err(std::io::ErrorKind::Other.into()),
    }
}
