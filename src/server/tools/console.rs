//! `POST /console`: what a page's scripts and the browser said about them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::listing::{found_text, limit, listed, near};
use crate::browser::journal::console::{Entry, Wanted};
use crate::browser::journal::line::Level;
use crate::browser::journal::ring::Seen;
use crate::server::answer::Answer;
use crate::server::arguments::parse;
use crate::server::session::{Outcome, Session};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    page: String,
    since: Option<u64>,
    #[serde(default)]
    level: Level,
    find: Option<String>,
    #[serde(default)]
    stacks: bool,
    limit: Option<usize>,
}

/// The lines since a cursor, or of the document that is shown.
pub(super) fn post(session: &Session, body: &str) -> Outcome {
    let arguments: Arguments = parse(body)?;
    let limit = limit(arguments.limit)?;
    let opened = session.pages.get(&arguments.page)?;
    let wanted = Wanted {
        level: arguments.level,
        find: found_text(arguments.find.as_deref()),
    };
    let journal = opened.page.observed.journal();
    let picked = journal.console.pick(arguments.since, &wanted, limit);
    let lines = picked
        .entries
        .iter()
        .map(|seen| line(seen, journal.began, arguments.stacks));
    Ok(Answer::Json(listed(
        "lines",
        lines.collect(),
        &picked,
        journal.console.dropped(),
    )))
}

/// One line: what is usual is left out.
fn line(seen: &Seen<'_, Entry>, began: f64, stacks: bool) -> Value {
    let Entry {
        line, count, last, ..
    } = seen.entry;
    let mut told = json!({ "level": line.level, "text": line.text });
    if let Some(place) = &line.place {
        told["at"] = near(place).into();
    }
    told["ms"] = super::listing::since(line.time, began).into();
    if *count > 1 {
        told["times"] = format!("x{count}").into();
        told["last_ms"] = super::listing::since(*last, began).into();
    }
    if let Some(stack) = line.stack.as_deref().filter(|_| stacks) {
        told["stack"] = stack.lines().collect::<Vec<_>>().into();
    }
    told
}
