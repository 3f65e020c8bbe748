//! `gpu-browser doctor`: what works, what does not, and the exact command that mends it.

mod facts;
mod judge;

use tokio::process::Command;

use self::facts::Facts;
use self::judge::{Finding, Mend};
use super::installing::arguments::Doctor;
use super::installing::{Voice, need_root};
use super::{Failure, helper, shown};
use crate::place;

/// Looks, says what was found, and mends what needs no decision where that was asked for.
pub(super) async fn run(arguments: Doctor) -> Result<(), Failure> {
    if arguments.fix && !arguments.dry_run {
        need_root()?;
    }
    let mut voice = Voice::new(arguments.json);
    let facts = Facts::gather(arguments.relay.as_deref()).await;
    let findings = judge::all(&facts);
    for finding in &findings {
        voice.say("finding", &finding.line()).await?;
        for mend in finding.mend() {
            voice
                .say("mend", &format!("       -> {}", exact(mend)?))
                .await?;
        }
    }
    if arguments.fix {
        for mend in findings
            .iter()
            .flat_map(Finding::mend)
            .filter(|mend| mend.is_safe)
        {
            voice.say("fix", &format!("running: {}", mend.line)).await?;
            if !arguments.dry_run {
                carry_out(mend).await?;
            }
        }
    }
    Ok(())
}

/// The line as it can be run here: where our program is on no search path, with its own.
fn exact(mend: &Mend) -> Result<String, Failure> {
    const NAME: &str = "gpu-browser";
    let folders = place::search_path();
    if folders.iter().any(|folder| folder.join(NAME).is_file()) {
        return Ok(mend.line.clone());
    }
    let program = helper()?.display().to_string();
    let words = mend.line.split(' ');
    let words = words.map(|word| if word == NAME { program.as_str() } else { word });
    Ok(words.collect::<Vec<_>>().join(" "))
}

/// The line is one of our own constants, never a text from outside: its words are split at spaces.
async fn carry_out(mend: &Mend) -> Result<(), Failure> {
    let line = exact(mend)?;
    let line = line.strip_prefix("sudo ").unwrap_or(&line);
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    #[expect(
        clippy::disallowed_methods,
        reason = "the owner asked for this command to be run, and sees what it says"
    )]
    let status = Command::new(program).args(words).status().await;
    let why = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Failure::System {
        what: "a command of the doctor failed",
        source: std::io::Error::other(shown::text(&format!("{line}: {why}"))),
    })
}
