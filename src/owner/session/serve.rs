//! `gpu-browser server`: the session under the account of the install, spoken to in lines. The owner's command starts it; a
//! person never does.
//!
//! It ends when it is told to, and when its input ends: then the owner's command is gone.

use tokio::io::{AsyncWriteExt as _, Stdout};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::account;
use super::wire::{Opening, Question, Says, Sealed};
use super::{News, Session};
use crate::owner::input::{self, Typing};
use crate::owner::{Failure, helper};
use crate::place::{self, Form};
use crate::policy::limits::SERVER_LINE;
use crate::server::ServerConfig;
use crate::server::desk::{Ask, Reply};

/// Lines out, each with the key of the run.
struct Out {
    key: String,
    output: Stdout,
}

impl Out {
    async fn say(&mut self, says: Says) -> Result<(), Failure> {
        let line = Sealed::write(&self.key, says);
        let written = async {
            self.output.write_all(line.as_bytes()).await?;
            self.output.flush().await
        };
        written.await.map_err(Failure::Output)
    }
}

/// Runs one session for whoever holds the other ends of standard input and output.
pub(in crate::owner) async fn run() -> Result<(), Failure> {
    let listen = |kind| {
        signal(kind).map_err(|source| Failure::System {
            what: "cannot listen for signals",
            source,
        })
    };
    // A ctrl-c at the terminal reaches us too; what it means, the owner's command decides.
    let _ignored = [
        listen(SignalKind::interrupt())?,
        listen(SignalKind::hangup())?,
    ];
    let mut terminate = listen(SignalKind::terminate())?;
    let mut lines = input::lines(SERVER_LINE)?;
    let opening = text(lines.recv().await).unwrap_or_default();
    let Opening { key, mut wish } =
        serde_json::from_str(&opening).map_err(|error| Failure::Opening(error.to_string()))?;
    let mut out = Out {
        key,
        output: tokio::io::stdout(),
    };
    wish.chromium = match account::chromium(wish.chromium) {
        Ok(chromium) => chromium,
        Err(failure) => return fail(&mut out, failure).await,
    };
    let log = place::log_folder(Form::Installed);
    let _lease = match account::lease() {
        Ok(lease) => lease,
        Err(failure) => return fail(&mut out, failure).await,
    };
    let session = match wish.config(helper()?, true) {
        Ok(config) => Session::local(ServerConfig { log, ..config }),
        Err(usage) => return fail(&mut out, usage.into()).await,
    };
    let over = converse(session, &mut lines, &mut terminate, &mut out).await;
    match over? {
        News::Over(Ok(ending)) => out.say(Says::Ended(ending)).await,
        News::Over(Err(failure)) => fail(&mut out, failure).await,
        News::Event(_) => Ok(()),
    }
}

/// The last word of a session that failed, for the owner's command; the failure itself is for the log.
async fn fail(out: &mut Out, failure: Failure) -> Result<(), Failure> {
    let (message, exit_code) = (failure.to_string(), failure.exit_code());
    out.say(Says::Failed { message, exit_code }).await?;
    Err(failure)
}

/// A program sends lines and nothing else.
fn text(typing: Option<Typing>) -> Option<String> {
    match typing? {
        Typing::Line(line) => Some(line.text),
        Typing::Interrupt => None,
    }
}

async fn converse(
    mut session: Session,
    lines: &mut mpsc::Receiver<Typing>,
    terminate: &mut Signal,
    out: &mut Out,
) -> Result<News, Failure> {
    let mut replies: JoinSet<(u64, Reply)> = JoinSet::new();
    let mut is_asked = true;
    let stop = |reason: &str| Ask::Stop {
        reason: reason.to_owned(),
    };
    loop {
        tokio::select! {
            news = session.news() => match news {
                News::Event(event) => if out.say(Says::Event(event)).await.is_err() && is_asked {
                    is_asked = false;
                    let (desk, ask) = (session.desk().clone(), stop("the owner's command is gone"));
                    replies.spawn(async move { (0, desk.ask(ask).await) });
                },
                over @ News::Over(_) => {
                    while let Some(Ok((id, reply))) = replies.join_next().await {
                        let _ = out.say(Says::Reply { id, reply }).await;
                    }
                    return Ok(over);
                }
            },
            Some(Ok((id, reply))) = replies.join_next() => {
                let _ = out.say(Says::Reply { id, reply }).await;
            }
            _ = terminate.recv() => {
                let (desk, ask) = (session.desk().clone(), stop("stopped with SIGTERM"));
                replies.spawn(async move { (0, desk.ask(ask).await) });
            }
            line = lines.recv(), if is_asked => {
                let (id, ask) = match text(line).as_deref().map(serde_json::from_str::<Question>) {
                    Some(Ok(Question { id, ask })) => (id, ask),
                    Some(Err(error)) => {
                        tracing::warn!(%error, "a line is no question");
                        continue;
                    }
                    None => {
                        is_asked = false;
                        (0, stop("the owner's command is gone"))
                    }
                };
                let desk = session.desk().clone();
                replies.spawn(async move { (id, desk.ask(ask).await) });
            }
        }
    }
}
