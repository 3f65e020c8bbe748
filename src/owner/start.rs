//! `gpu-browser start`: one session, from its first line to its last.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::arguments::Start;
use super::clipboard;
use super::console::{self, Typed};
use super::input::{self, Line, Typing};
use super::session::{Desk, News, Session, remote};
use super::socket::Door;
use super::stop::Stop;
use super::teller::{Style, Teller};
use super::terminal::{self, Terminal};
use super::{Failure, config, helper, shown, words};
use crate::install::{self, Way};
use crate::place::{self, Form};
use crate::policy::allowlist::Rule;
use crate::policy::limits::{LAST_WORD, OWNER_LINE, SHUTDOWN};
use crate::server::desk::{Ask, Ending, LiveLink, Reply};
use crate::server::{Event, ServerConfig};

/// Runs a session until its time is up or the owner ends it. The end of standard input alone does not: a session may
/// run in the background.
pub(super) async fn run(arguments: Start) -> Result<(), Failure> {
    let is_program = arguments.json;
    let mut teller = Teller::new(match (is_program, arguments.quiet) {
        (true, _) => Style::Json,
        (false, true) => Style::Quiet,
        (false, false) => Style::Words,
    });
    let mut stop = Stop::listen()?;
    let session = begin(&arguments)?;
    let mut lines = if !is_program && terminal::is_one() {
        let (terminal, lines) = Terminal::open()?;
        teller.screen.on(terminal);
        lines
    } else {
        input::lines(OWNER_LINE)?
    };
    let (config, copies) = (arguments.config, arguments.copy);
    match converse(session, config, &mut stop, &mut lines, copies, &mut teller).await {
        Ok(Ending { reason, in_order }) => {
            last_word(&mut teller, &reason).await?;
            if in_order {
                Ok(())
            } else {
                Err(Failure::Ended(reason))
            }
        }
        Err(failure) => {
            let failure = if arguments.dev {
                failure
            } else {
                explained(failure)
            };
            // A person reads the error itself; a program waits for the end of the events.
            if is_program {
                let _ = last_word(&mut teller, &failure.to_string()).await;
            }
            Err(failure)
        }
    }
}

/// A server that said nothing may never have been started: sudo itself knows.
fn explained(failure: Failure) -> Failure {
    match (&failure, install::way_in(None)) {
        (Failure::Lost(_), Ok(Way::Shut(words))) => Failure::NoRight(words),
        _ => failure,
    }
}

/// The session in the form that was asked for.
fn begin(arguments: &Start) -> Result<Session, Failure> {
    let wish = arguments.wish(config::read(arguments.config.as_deref())?);
    if arguments.dev {
        let log = place::log_folder(Form::Development);
        let config = wish.config(helper()?, !arguments.no_sandbox)?;
        return Ok(Session::local(ServerConfig { log, ..config }));
    }
    if !place::installed_program().exists() {
        return Err(Failure::NotInstalled);
    }
    remote(wish)
}

/// The last line, unless nobody takes it.
async fn last_word(teller: &mut Teller, reason: &str) -> Result<(), Failure> {
    timeout(LAST_WORD, teller.ended(reason))
        .await
        .unwrap_or(Ok(()))
}

/// Tells events and does what is typed, until the session is over; what ends it from here ends it in order.
async fn converse(
    mut session: Session,
    config: Option<PathBuf>,
    stop: &mut Stop,
    lines: &mut mpsc::Receiver<Typing>,
    copies: bool,
    teller: &mut Teller,
) -> Result<Ending, Failure> {
    let desk = session.desk().clone();
    // Without it, the session can still be stopped where it was started.
    let _door = match Door::open(desk.clone()) {
        Ok(door) => Some(door),
        Err(error) => {
            teller
                .reply(vec![format!(
                    "status and stop do not work from another terminal: {error}"
                )])
                .await?;
            None
        }
    };
    let mut talk = Talk {
        desk,
        replies: JoinSet::new(),
        config,
        copies,
    };
    let left = tokio::select! {
        left = talk.run(&mut session, lines, teller) => left,
        reason = stop.wait() => Ok(Left::Wish(reason)),
    };
    match left {
        Ok(Left::Over(over)) => over,
        Ok(Left::Wish(reason)) => {
            // What was typed before counts: a host that is to be kept is kept.
            let _ = timeout(LAST_WORD, talk.finish(teller)).await;
            end(session, reason, teller).await
        }
        Err(failure) => {
            let _ = end(session, "nobody reads what it says", teller).await;
            Err(failure)
        }
    }
}

/// Why the conversation is over.
enum Left {
    /// The session is.
    Over(Result<Ending, Failure>),
    /// The owner wants it to be.
    Wish(&'static str),
}

/// A conversation: lines in, events and replies out.
struct Talk {
    desk: Desk,
    replies: JoinSet<(Typed, Reply)>,
    /// The config file that was named, for what is to be remembered.
    config: Option<PathBuf>,
    /// Whether the link goes to the clipboard.
    copies: bool,
}

impl Talk {
    async fn run(
        &mut self,
        session: &mut Session,
        lines: &mut mpsc::Receiver<Typing>,
        teller: &mut Teller,
    ) -> Result<Left, Failure> {
        loop {
            tokio::select! {
                news = session.news() => match news {
                    News::Event(event) => {
                        teller.tell(&event).await?;
                        if let (true, Event::Ready(ready)) = (self.copies, &event) {
                            let done = clipboard::copy(&ready.link).await;
                            teller.reply(vec![done]).await?;
                        }
                    }
                    News::Over(over) => return Ok(Left::Over(over)),
                },
                Some(Ok((typed, reply))) = self.replies.join_next() => answered(&typed, reply, self.config.as_deref(), teller).await?,
                Some(typing) = lines.recv() => {
                    let Typing::Line(Line { text, begun }) = typing else {
                        return Ok(Left::Wish("stopped with ctrl-c"));
                    };
                    match console::parse(&text) {
                        Ok(None) => {}
                        Ok(Some(Typed::Stop)) => return Ok(Left::Wish("stopped by the owner")),
                        Ok(Some(typed)) => self.obey(typed, begun, teller).await?,
                        Err(why) => teller.reply(vec![why]).await?,
                    }
                }
            }
        }
    }

    /// Waits for what was asked.
    async fn finish(&mut self, teller: &mut Teller) {
        while let Some(Ok((typed, reply))) = self.replies.join_next().await {
            let _ = answered(&typed, reply, self.config.as_deref(), teller).await;
        }
    }

    /// Does what needs no session at once, and asks the session for the rest.
    async fn obey(
        &mut self,
        typed: Typed,
        begun: Option<Instant>,
        teller: &mut Teller,
    ) -> Result<(), Failure> {
        let ask = match &typed {
            Typed::Allow { number, .. } => teller
                .questions
                .answerable(*number, begun)
                .map(|_| Ask::Allow { number: *number }),
            Typed::Deny { number, note } => {
                let answer = Ask::Deny {
                    number: *number,
                    note: note.clone(),
                };
                teller.questions.answerable(*number, begun).map(|_| answer)
            }
            Typed::Revoke(number) => match teller.links.get(*number) {
                Some(link) => Ok(Ask::Revoke {
                    link: link.to_owned(),
                }),
                None => Err(format!("there is no link {number}; links lists them")),
            },
            Typed::Link(label) => Ok(Ask::Link {
                label: label.clone(),
            }),
            Typed::Links => Ok(Ask::Links),
            Typed::Hosts => Ok(Ask::Hosts),
            Typed::Pages => Ok(Ask::Pages),
            Typed::Status => Ok(Ask::Status),
            Typed::Requests => return teller.reply(requests(teller)).await,
            Typed::Help | Typed::Stop => {
                return teller
                    .reply(words::HELP.lines().map(str::to_owned).collect())
                    .await;
            }
        };
        match ask {
            // The relay may be away: what happens meanwhile is told meanwhile.
            Ok(ask) => {
                let desk = self.desk.clone();
                self.replies
                    .spawn(async move { (typed, desk.ask(ask).await) });
                Ok(())
            }
            Err(why) => teller.reply(vec![why]).await,
        }
    }
}

/// Ends a session; what still happens is told as long as somebody listens.
pub(super) async fn end(
    mut session: Session,
    reason: &str,
    teller: &mut Teller,
) -> Result<Ending, Failure> {
    let desk = session.desk().clone();
    let mut asking = JoinSet::new();
    let ask = Ask::Stop {
        reason: reason.to_owned(),
    };
    asking.spawn(async move { desk.ask(ask).await });
    let mut is_heard = true;
    let ended = timeout(2 * SHUTDOWN, async {
        loop {
            match session.news().await {
                News::Over(over) => return over,
                News::Event(event) => {
                    if is_heard {
                        is_heard =
                            matches!(timeout(LAST_WORD, teller.tell(&event)).await, Ok(Ok(())));
                    }
                }
            }
        }
    });
    ended
        .await
        .unwrap_or_else(|_| Err(Failure::Lost("it did not end in time".to_owned())))
}

/// Tells what a command came to. Answers to requests come as events, to everybody.
async fn answered(
    typed: &Typed,
    reply: Reply,
    config: Option<&Path>,
    teller: &mut Teller,
) -> Result<(), Failure> {
    let lines = match reply {
        Reply::Answered { hosts } => match typed {
            Typed::Allow { always: true, .. } => vec![remember(&hosts, config)],
            _ => return Ok(()),
        },
        Reply::Made(LiveLink { link, label }) => {
            let reason = "asked for by the owner".to_owned();
            return teller
                .tell(&Event::Link {
                    link,
                    label,
                    reason,
                })
                .await;
        }
        Reply::Links { links } if links.is_empty() => vec!["no live link".to_owned()],
        Reply::Links { links } => links.iter().map(|live| link_line(live, teller)).collect(),
        Reply::Revoked { was_live: true } => vec!["the link is dead".to_owned()],
        Reply::Revoked { was_live: false } => vec!["the link was dead already".to_owned()],
        Reply::Hosts { allowed } => hosts(&allowed, teller),
        Reply::Pages { pages } => words::pages(&pages),
        Reply::Status(status) => words::status(&status),
        Reply::Stopping => return Ok(()),
        Reply::No { reason } => vec![shown::text(&reason)],
    };
    teller.reply(lines).await
}

fn link_line(live: &LiveLink, teller: &mut Teller) -> String {
    let number = teller.links.number(&live.link).number;
    format!(
        "{number:>3}  {}  {}",
        shown::link(&live.link),
        shown::text(&live.label)
    )
}

fn hosts(allowed: &[String], teller: &Teller) -> Vec<String> {
    let mut lines: Vec<String> = allowed
        .iter()
        .map(|host| format!("allowed  {}", shown::text(host)))
        .collect();
    lines.extend(teller.refused());
    if lines.is_empty() {
        lines.push("no host may be reached".to_owned());
    }
    lines
}

fn requests(teller: &Teller) -> Vec<String> {
    let waiting = teller.questions.waiting();
    let lines: Vec<String> = waiting
        .flat_map(|(number, question)| {
            words::question(
                number,
                &question.hosts,
                &question.reason,
                question.page.as_deref(),
            )
        })
        .collect();
    if lines.is_empty() {
        vec!["no request waits".to_owned()]
    } else {
        lines
    }
}

/// Writes hosts into the owner's config, for later sessions.
fn remember(hosts: &[String], named: Option<&Path>) -> String {
    let rules: Vec<Rule> = hosts.iter().flat_map(|host| Rule::parse(host)).collect();
    match config::remember(named, &rules) {
        Ok(path) => format!(
            "kept in {} for later sessions",
            shown::link(&path.to_string_lossy())
        ),
        Err(error) => format!("NOT kept for later sessions: {error}"),
    }
}
