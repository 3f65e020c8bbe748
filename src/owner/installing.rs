//! `install`, `update`, `uninstall`: the plan is shown, the owner agrees, it is carried out, and a self-test proves it.

pub(super) mod arguments;

use std::io::IsTerminal;
use std::path::PathBuf;

use nix::unistd::{Gid, Group, Uid};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinError;

use self::arguments::{Install, Manner, Source, Uninstall, Update};
use super::screen::Screen;
use super::{Failure, helper, self_test, shown};
use crate::browser::account::groups_of_nodes;
use crate::browser::find::find;
use crate::install::{self, Ask, Prepared, State, Wishes, prepare};
use crate::place;

/// Lines that may wait for the screen.
const LINES: usize = 64;

/// Where lines go, for a person or for a program.
pub(super) struct Voice {
    screen: Screen,
    is_program: bool,
}

impl Voice {
    pub(super) fn new(is_program: bool) -> Self {
        Self {
            screen: Screen::new(),
            is_program,
        }
    }

    /// A line; for a program an object with the event's name.
    pub(super) async fn say(&mut self, event: &str, text: &str) -> Result<(), Failure> {
        let line = if self.is_program {
            json!({ "event": event, "text": text }).to_string()
        } else {
            shown::text(text)
        };
        self.screen.line(&line).await
    }
}

/// `gpu-browser install`.
pub(super) async fn install(arguments: Install) -> Result<(), Failure> {
    let ask = if arguments.undo {
        Ask::Undo
    } else {
        Ask::Install
    };
    change(ask, Some(arguments.source), arguments.manner).await
}

/// `gpu-browser update`.
pub(super) async fn update(arguments: Update) -> Result<(), Failure> {
    change(Ask::Update, Some(arguments.source), arguments.manner).await
}

/// `gpu-browser uninstall`.
pub(super) async fn uninstall(arguments: Uninstall) -> Result<(), Failure> {
    change(Ask::Uninstall, None, arguments.manner).await
}

async fn change(ask: Ask, source: Option<Source>, manner: Manner) -> Result<(), Failure> {
    need_root()?;
    let mut voice = Voice::new(manner.json);
    let program = helper()?;
    let from = source.clone();
    let prepared = blocking(move || prepare(ask, || wishes(from, program))).await??;
    for note in &prepared.notes {
        voice.say("note", note).await?;
    }
    for line in prepared.lines() {
        voice.say("plan", &format!("- {line}")).await?;
    }
    if manner.dry_run {
        return Ok(());
    }
    if !prepared.is_nothing() && !manner.yes && !agreed(&mut voice).await? {
        return Err(Failure::Stopped);
    }
    #[cfg(debug_assertions)]
    install::tripwire::set(manner.stop_after);
    carry_out(prepared, &mut voice).await?;
    conclude(
        ask,
        source.is_some_and(|source| source.skip_self_test),
        &mut voice,
    )
    .await
}

/// What an installed state is worth is what its self-test says.
async fn conclude(ask: Ask, is_skipped: bool, voice: &mut Voice) -> Result<(), Failure> {
    match (ask, install::installed()) {
        (Ask::Uninstall | Ask::Undo, State::Absent) => {
            voice
                .say("done", "nothing of gpu-browser is installed here")
                .await
        }
        (Ask::Uninstall | Ask::Undo, State::Installed { version, .. }) => {
            voice.say("done", &format!("installed: {version}")).await
        }
        (_, State::Absent) => Ok(()),
        (
            _,
            State::Installed {
                version,
                proven: true,
            },
        ) => {
            voice
                .say("done", &format!("installed: {version}, proven"))
                .await
        }
        (
            _,
            State::Installed {
                version,
                proven: false,
            },
        ) if is_skipped => Err(Failure::Unproven(format!(
            "installed, not proven: {version}; `sudo gpu-browser self-test` proves it"
        ))),
        (
            _,
            State::Installed {
                version,
                proven: false,
            },
        ) => {
            voice
                .say("note", "the self-test takes up to two minutes")
                .await?;
            self_test::prove(voice).await?;
            voice
                .say("done", &format!("installed: {version}, proven"))
                .await
        }
        (_, State::Unfinished { what }) => {
            Err(install::Failure::from(install::lease::Busy::Unfinished(what)).into())
        }
    }
}

async fn carry_out(prepared: Prepared, voice: &mut Voice) -> Result<(), Failure> {
    let (sender, mut lines) = mpsc::channel::<String>(LINES);
    let work = tokio::task::spawn_blocking(move || {
        // A screen that is gone does not stop a change in its middle.
        prepared.carry_out(&mut |line| drop(sender.blocking_send(line.to_owned())))
    });
    let mut heard = Ok(());
    while let Some(line) = lines.recv().await {
        if heard.is_ok() {
            heard = voice.say("step", &line).await;
        }
    }
    work.await.map_err(stopped)??;
    heard
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(stopped)
}

fn stopped(error: JoinError) -> Failure {
    Failure::System {
        what: "a part of the program broke",
        source: std::io::Error::other(error),
    }
}

/// Only an answer that is a clear yes is one.
async fn agreed(voice: &mut Voice) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(install::Failure::Owner(
            "there is no terminal to agree at: look at the plan with --dry-run, then run it with --yes".to_owned(),
        )
        .into());
    }
    voice.say("question", "do this? [y/N]").await?;
    let mut line = String::new();
    let mut input = BufReader::new(tokio::io::stdin());
    input
        .read_line(&mut line)
        .await
        .map_err(|source| Failure::System {
            what: "cannot read the answer",
            source,
        })?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn wishes(source: Option<Source>, program: PathBuf) -> Result<Wishes, install::Failure> {
    let (owner, archive) = source.map_or((None, None), |source| {
        (source.owner, source.chromium_archive.zip(source.sha256))
    });
    let owner = owner.or_else(place::sudo_caller).or_else(in_rule);
    let owner = owner.ok_or_else(|| {
        install::Failure::Owner(
            "who may start the server? name an account with --owner NAME".to_owned(),
        )
    })?;
    if nix::unistd::User::from_name(&owner)
        .ok()
        .flatten()
        .is_none()
    {
        return Err(install::Failure::Owner(format!(
            "there is no account {owner:?}"
        )));
    }
    let gpu = groups_of_nodes().into_iter().filter_map(|(gid, node)| {
        let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten()?;
        Some((group.name, node))
    });
    Ok(Wishes {
        owner,
        source: program,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        chromium: find(None)
            .map(|found| found.as_path().to_owned())
            .map_err(|error| error.to_string()),
        archive,
        gpu: gpu.collect(),
    })
}

/// The owner of the install that is there.
pub(super) fn in_rule() -> Option<String> {
    let text = std::fs::read_to_string(place::LAYOUT.sudoers_file()).ok()?;
    let rule = text.lines().find(|line| line.contains(" NOPASSWD:"))?;
    rule.split(' ').next().map(str::to_owned)
}

/// Without root, the line that has it.
pub(super) fn need_root() -> Result<(), Failure> {
    if Uid::effective().is_root() {
        return Ok(());
    }
    let program = helper()?.display().to_string();
    let arguments = std::env::args().skip(1).map(|argument| quoted(&argument));
    let words: Vec<String> = ["sudo".to_owned(), quoted(&program)]
        .into_iter()
        .chain(arguments)
        .collect();
    Err(Failure::NeedsRoot(shown::text(&words.join(" "))))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
