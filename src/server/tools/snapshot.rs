//! `POST /snapshot`: the accessibility tree of a page as lines, with refs that `/act` takes.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::act::missed;
use super::blocking;
use super::eval::hung;
use crate::browser::fold::short;
use crate::browser::page::PageError;
use crate::browser::snapshot::lines::{Lines, Pattern, Wanted};
use crate::browser::snapshot::{Measure, SnapshotError};
use crate::policy::limits::{SNAPSHOT_BYTES, SNAPSHOT_ELEMENTS, SNAPSHOT_KEPT, SNAPSHOT_TIMEOUT};
use crate::server::answer::{Answer, Code, Refused};
use crate::server::arguments::parse;
use crate::server::pages::{Opened, Pages};
use crate::server::session::{Outcome, Session};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    page: String,
    interactive: Option<bool>,
    depth: Option<usize>,
    selector: Option<String>,
    find: Option<String>,
    after: Option<String>,
}

/// Takes a snapshot, or gives the rest of the last one.
pub(super) async fn post(session: &Session, body: &str) -> Outcome {
    let arguments: Arguments = parse(body)?;
    if let Some(after) = &arguments.after {
        let alone = arguments.interactive.is_none()
            && arguments.depth.is_none()
            && arguments.selector.is_none()
            && arguments.find.is_none();
        if !alone {
            return Err(Refused::new(
                Code::BadArguments,
                "`after` gives the rest of a snapshot as it was taken",
                "leave the other fields out, or take a new snapshot without `after`",
            ));
        }
        let opened = session.pages.alive(&arguments.page)?;
        return rest(&opened, after).map(Answer::Json);
    }
    let wanted = wanted(&arguments)?;
    let opened = session.pages.alive(&arguments.page)?;
    take(session, &opened, arguments.selector.as_deref(), wanted)
        .await
        .map(Answer::Json)
}

fn wanted(arguments: &Arguments) -> Result<Wanted, Refused> {
    if arguments.depth == Some(0) {
        return Err(Refused::new(
            Code::BadArguments,
            "`depth` is 0",
            "use 1 or more levels",
        ));
    }
    let find = match arguments.find.as_deref() {
        None => None,
        Some("") => {
            let fix = "give a text, or a /regular expression/";
            return Err(Refused::new(Code::BadArguments, "`find` is empty", fix));
        }
        Some(text) => Some(Pattern::parse(text).map_err(|why| {
            let message = format!("`find`: {}", short(&why));
            let fix = "mend the /regular expression/, or give plain text without slashes";
            Refused::new(Code::BadArguments, message, fix)
        })?),
    };
    Ok(Wanted {
        // What is looked for may be any text of the page.
        interactive: arguments.interactive.unwrap_or(find.is_none()),
        depth: arguments.depth,
        find,
    })
}

async fn take(
    session: &Session,
    opened: &Opened,
    selector: Option<&str>,
    wanted: Wanted,
) -> Result<Value, Refused> {
    let deadline = Instant::now() + SNAPSHOT_TIMEOUT;
    let loader = opened.page.observed.document().loader;
    let (tree, measure) = match opened.page.tree(selector, deadline).await {
        Ok(read) => read,
        Err(SnapshotError::Page(PageError::Timeout)) if !opened.page.is_responsive().await => {
            return Err(hung(session, opened).await);
        }
        Err(error) => {
            return Err(refuse(
                &session.pages,
                opened,
                selector.unwrap_or_default(),
                error,
            ));
        }
    };
    let first = opened.sight().next_ref();
    let nodes = tree.len();
    let found = blocking(move || tree.lines(&wanted, first, SNAPSHOT_KEPT)).await?;
    let Measure { url, title, .. } = measure;
    let mut reply =
        json!({ "page": opened.id, "url": short(&url), "title": short(&title), "nodes": nodes });
    let Lines {
        lines,
        nodes,
        deeper,
        lost,
    } = found;
    let mut sight = opened.sight();
    if sight.next_ref() != first {
        let fix = "take it again";
        return Err(Refused::new(
            Code::StaleRef,
            "another snapshot of the page was taken meanwhile",
            fix,
        ));
    }
    let name = sight.keep(loader, nodes, lines);
    if deeper > 0 {
        reply["deeper"] = deeper.into();
    }
    if lost > 0 {
        reply["lost"] = lost.into();
        reply["lost_fix"] = "use `selector`, `depth` or `find`".into();
    }
    let kept = sight.snapshot().map_or(&[][..], |kept| &kept.lines);
    put(&mut reply, &name, kept, 0);
    Ok(reply)
}

/// The next lines of the last snapshot.
fn rest(opened: &Opened, after: &str) -> Result<Value, Refused> {
    let loader = opened.page.observed.document().loader;
    let sight = opened.sight();
    let asked = after.split_once('.');
    let asked = asked.and_then(|(name, from)| Some((name, from.parse::<usize>().ok()?)));
    let Some((name, from)) = asked else {
        return Err(Refused::new(
            Code::BadArguments,
            format!("`after` is {:?}", short(after)),
            "use the `after` of the last reply, like \"s1.400\"",
        ));
    };
    match sight.snapshot() {
        Some(kept) if kept.name == name && kept.loader == loader => {
            let mut reply = json!({ "page": opened.id });
            put(&mut reply, name, &kept.lines, from);
            Ok(reply)
        }
        _ => Err(Refused::new(
            Code::StaleRef,
            format!("{:?} is of an earlier snapshot or document", short(after)),
            "take a new snapshot without `after`",
        )),
    }
}

/// As many lines as one reply carries, and the handle for the rest.
fn put(reply: &mut Value, name: &str, lines: &[String], from: usize) {
    let from = from.min(lines.len());
    let mut room = SNAPSHOT_BYTES;
    let fits = lines[from..].iter().take_while(|line| {
        let left = room.checked_sub(line.len() + 1);
        room = left.unwrap_or(0);
        left.is_some()
    });
    let end = from + fits.count();
    reply["snapshot"] = name.into();
    reply["lines"] = lines.len().into();
    reply["tree"] = lines[from..end].join("\n").into();
    if end < lines.len() {
        reply["left"] = (lines.len() - end).into();
        reply["after"] = format!("{name}.{end}").into();
    }
}

fn refuse(pages: &Pages, opened: &Opened, selector: &str, error: SnapshotError) -> Refused {
    match error {
        SnapshotError::Page(error) => pages.refused(&opened.id, error),
        SnapshotError::Missed(miss) => missed(&format!("{:?}", short(selector)), miss),
        SnapshotError::TooLarge(elements) => Refused::new(
            Code::BadArguments,
            format!("{elements} elements are more than a snapshot takes in"),
            format!("name a part of at most {SNAPSHOT_ELEMENTS} elements with `selector`"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_snapshot_join_to_all_its_lines() {
        let lines: Vec<String> = (0..5_000).map(|n| format!("e{n} button \"{n}\"")).collect();
        let mut joined: Vec<String> = Vec::new();
        let mut from = 0;
        loop {
            let mut reply = json!({});
            put(&mut reply, "s1", &lines, from);
            let text = reply["tree"].as_str().unwrap();
            assert!(text.len() <= SNAPSHOT_BYTES);
            joined.extend(text.lines().map(str::to_owned));
            let Some(after) = reply["after"].as_str() else {
                break;
            };
            from = after.strip_prefix("s1.").unwrap().parse().unwrap();
            assert_eq!(reply["left"], lines.len() - from);
        }
        assert_eq!(joined, lines);
    }
}
