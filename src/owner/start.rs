//! `gpu-browser start`: one session, from its first line to its last.

use std::path::PathBuf;
use std::time::SystemTime;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::arguments::Start;
use super::console::{self, Typed};
use super::stop::Stop;
use super::teller::{Style, Teller};
use super::{Failure, config, shown, words};
use crate::policy::limits::{LAST_WORD, OWNER_EVENTS};
use crate::relay::link::{LinkError, ListedLink, Minted};
use crate::server::{Event, Server, ServerConfig};

/// Why a session is over.
enum Over {
    /// The owner wanted it.
    Wanted(String),
    /// By itself: its time, its link, its browser.
    ByItself(String),
}

/// What a command of the owner came to.
enum Outcome {
    Made(Minted),
    Listed(Vec<ListedLink>),
    Revoked(bool),
}

/// Runs a session until its time is up or the owner ends it. The end of standard input alone does not: a session may
/// run in the background.
pub(super) async fn run(arguments: Start) -> Result<(), Failure> {
    let (is_dev, is_program) = (arguments.dev, arguments.json);
    let mut teller = Teller::new(if is_program {
        Style::Json
    } else {
        Style::Words
    });
    let file = config::read(arguments.config.as_deref())?;
    let config = arguments.config(file, helper()?)?;
    if !is_dev {
        return Err(Failure::NotInstalled);
    }
    let mut stop = Stop::listen()?;
    let begun = tokio::select! {
        begun = begin(config, &mut teller) => begun,
        reason = stop.wait() => return last_word(&mut teller, reason).await,
    };
    let (mut server, mut events) = match begun {
        Ok(begun) => begun,
        Err(failure) => {
            // A person reads the error itself; a program waits for the end of the events.
            if is_program {
                let _ = last_word(&mut teller, &failure.to_string()).await;
            }
            return Err(failure);
        }
    };
    let over = tokio::select! {
        over = converse(&mut server, &mut events, &mut teller) => over,
        reason = stop.wait() => Ok(Over::Wanted(reason.to_owned())),
    };
    let reason = match &over {
        Ok(Over::Wanted(reason) | Over::ByItself(reason)) => reason.clone(),
        Err(failure) => failure.to_string(),
    };
    end(server, &reason, events, &mut teller).await;
    match over? {
        Over::Wanted(reason) => last_word(&mut teller, &reason).await,
        Over::ByItself(reason) => {
            last_word(&mut teller, &reason).await?;
            let end = teller.ready.map(|ready| ready.end);
            if end.is_some_and(|end| end <= SystemTime::now()) {
                Ok(())
            } else {
                Err(Failure::Ended(reason))
            }
        }
    }
}

/// Our own program, which becomes Chromium.
pub(super) fn helper() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|source| Failure::System {
        what: "cannot find our own program",
        source,
    })
}

/// Starts a session, and tells meanwhile what it is doing.
pub(super) async fn begin(
    config: ServerConfig,
    teller: &mut Teller,
) -> Result<(Server, mpsc::Receiver<Event>), Failure> {
    let (sender, mut events) = mpsc::channel(OWNER_EVENTS);
    let mut starting = Box::pin(Server::start(config, sender));
    loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => teller.tell(&event).await?,
            started = &mut starting => return Ok((started?, events)),
        }
    }
}

/// Ends a session; what still happens is told as long as somebody listens.
pub(super) async fn end(
    server: Server,
    reason: &str,
    mut events: mpsc::Receiver<Event>,
    teller: &mut Teller,
) {
    let mut ending = Box::pin(server.end(reason));
    let mut is_heard = true;
    loop {
        tokio::select! {
            () = &mut ending => return,
            Some(event) = events.recv() => if is_heard {
                is_heard = matches!(timeout(LAST_WORD, teller.tell(&event)).await, Ok(Ok(())));
            },
        }
    }
}

/// The last line, unless nobody takes it.
async fn last_word(teller: &mut Teller, reason: &str) -> Result<(), Failure> {
    timeout(LAST_WORD, teller.ended(reason))
        .await
        .unwrap_or(Ok(()))
}

/// Tells events and does what is typed, until the session is over.
async fn converse(
    server: &mut Server,
    events: &mut mpsc::Receiver<Event>,
    teller: &mut Teller,
) -> Result<Over, Failure> {
    let mut lines = console::lines()?;
    loop {
        let line = tokio::select! {
            reason = server.over() => return Ok(Over::ByItself(reason)),
            Some(event) = events.recv() => {
                teller.tell(&event).await?;
                continue;
            }
            Some(line) = lines.recv() => line,
        };
        match console::parse(&line) {
            Ok(None) => {}
            Ok(Some(Typed::Stop)) => return Ok(Over::Wanted("stopped by the owner".to_owned())),
            Ok(Some(typed)) => obey(typed, server, events, teller).await?,
            Err(why) => teller.reply(vec![why]).await?,
        }
    }
}

async fn obey(
    typed: Typed,
    server: &Server,
    events: &mut mpsc::Receiver<Event>,
    teller: &mut Teller,
) -> Result<(), Failure> {
    let at_once = match &typed {
        Typed::Hosts => hosts(server, teller),
        Typed::Pages => pages(server),
        Typed::Help => words::HELP.lines().map(str::to_owned).collect(),
        Typed::Revoke(number) if teller.links.get(*number).is_none() => {
            vec![format!("there is no link {number}; links lists them")]
        }
        Typed::Revoke(_) | Typed::Link(_) | Typed::Links | Typed::Stop => Vec::new(),
    };
    if !at_once.is_empty() {
        return teller.reply(at_once).await;
    }
    let target = match &typed {
        Typed::Revoke(number) => teller.links.get(*number).map(str::to_owned),
        _ => None,
    };
    // The relay may be away: what happens meanwhile is told meanwhile.
    let mut asking = Box::pin(ask(server, &typed, target));
    let outcome = loop {
        tokio::select! {
            outcome = &mut asking => break outcome,
            Some(event) = events.recv() => teller.tell(&event).await?,
        }
    };
    answer(outcome, teller).await
}

/// Asks the relay.
async fn ask(server: &Server, typed: &Typed, target: Option<String>) -> Result<Outcome, LinkError> {
    match (typed, target) {
        (Typed::Link(label), _) => server.new_link(label).await.map(Outcome::Made),
        (Typed::Revoke(_), Some(link)) => {
            let listed = server.links().await?;
            match listed.into_iter().find(|live| live.minted.link == link) {
                Some(live) => server
                    .revoke(&live.minted.token)
                    .await
                    .map(Outcome::Revoked),
                None => Ok(Outcome::Revoked(false)),
            }
        }
        _ => server.links().await.map(Outcome::Listed),
    }
}

async fn answer(outcome: Result<Outcome, LinkError>, teller: &mut Teller) -> Result<(), Failure> {
    let lines = match outcome {
        Ok(Outcome::Made(minted)) => {
            let made = Event::Link {
                link: minted.link,
                label: minted.label,
                reason: "asked for by the owner".to_owned(),
            };
            return teller.tell(&made).await;
        }
        Ok(Outcome::Listed(listed)) if listed.is_empty() => vec!["no live link".to_owned()],
        Ok(Outcome::Listed(listed)) => listed
            .iter()
            .map(|live| {
                let numbered = teller.links.number(&live.minted.link);
                let label = shown::text(&live.minted.label);
                format!(
                    "{:>3}  {}  {label}",
                    numbered.number,
                    shown::link(&live.minted.link)
                )
            })
            .collect(),
        Ok(Outcome::Revoked(true)) => vec!["the link is dead".to_owned()],
        Ok(Outcome::Revoked(false)) => vec!["the link was dead already".to_owned()],
        Err(error) => vec![shown::text(&error.to_string())],
    };
    teller.reply(lines).await
}

fn hosts(server: &Server, teller: &Teller) -> Vec<String> {
    let mut lines: Vec<String> = server
        .hosts()
        .iter()
        .map(|host| format!("allowed  {}", shown::text(host)))
        .collect();
    lines.extend(teller.refused());
    if lines.is_empty() {
        lines.push("no host may be reached".to_owned());
    }
    lines
}

fn pages(server: &Server) -> Vec<String> {
    let open = server.pages();
    if open.is_empty() {
        return vec!["no page is open".to_owned()];
    }
    open.iter()
        .map(|(page, url)| format!("{}  {}", shown::text(page), shown::text(url)))
        .collect()
}
