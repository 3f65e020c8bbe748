//! What the owner types: one command a line.

use std::io::{BufRead, Read};

use tokio::sync::mpsc;

use super::{Failure, shown};
use crate::policy::limits::{OWNER_LINE, OWNER_LINES};

/// A command of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// The hosts that may be reached.
    Hosts,
    /// Another link, under this label.
    Link(String),
    /// The live links.
    Links,
    /// Kill the link with this number.
    Revoke(usize),
    /// The open pages.
    Pages,
    /// What can be typed.
    Help,
    /// End the session.
    Stop,
}

/// Reads a line; `None` where it is empty. The error says what to type instead.
pub(super) fn parse(line: &str) -> Result<Option<Typed>, String> {
    let line = line.trim();
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let typed = match (command, rest) {
        ("", _) => return Ok(None),
        ("hosts", "") => Typed::Hosts,
        ("links", "") => Typed::Links,
        ("pages", "") => Typed::Pages,
        ("help", "") => Typed::Help,
        ("stop", "") => Typed::Stop,
        ("link", "") => return Err("link takes a label, as in: link laptop".to_owned()),
        ("link", label) => Typed::Link(label.to_owned()),
        ("revoke", number) => match number.parse() {
            Ok(number) => Typed::Revoke(number),
            Err(_) => {
                return Err("revoke takes the number of a link, as `links` shows it".to_owned());
            }
        },
        ("hosts" | "links" | "pages" | "help" | "stop", _) => {
            return Err(format!("{command} takes nothing after it"));
        }
        _ => {
            return Err(format!(
                "there is no command {:?}; help lists them",
                shown::text(command)
            ));
        }
    };
    Ok(Some(typed))
}

/// Lines of standard input. They are read by a thread of their own, which ends with the process: a read of a terminal cannot
/// be given up, and the runtime would wait for it.
pub(super) fn lines() -> Result<mpsc::Receiver<String>, Failure> {
    let (sender, lines) = mpsc::channel(OWNER_LINES);
    let read = move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.by_ref().take(OWNER_LINE).read_until(b'\n', &mut line) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            if sender.blocking_send(text).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("console".to_owned());
    thread.spawn(read).map_err(|source| Failure::System {
        what: "cannot read standard input",
        source,
    })?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_command() {
        for (line, typed) in [
            ("hosts\n", Typed::Hosts),
            ("  link my laptop \r\n", Typed::Link("my laptop".into())),
            ("links", Typed::Links),
            ("revoke 2", Typed::Revoke(2)),
            ("pages", Typed::Pages),
            ("help", Typed::Help),
            ("stop\n", Typed::Stop),
        ] {
            assert_eq!(parse(line), Ok(Some(typed)), "{line:?}");
        }
        assert_eq!(parse(" \n"), Ok(None));
    }

    #[test]
    fn what_is_no_command_says_what_to_type() {
        for (line, says) in [
            ("stopp", "help"),
            ("stop now", "nothing"),
            ("link", "label"),
            ("revoke", "number"),
            ("revoke two", "number"),
            ("revoke -1", "number"),
            ("\u{1b}[2J", "\\\\u{1b}"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(says), "{line:?}: {error}");
            assert!(!error.contains('\u{1b}'));
        }
    }
}
