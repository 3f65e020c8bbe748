//! What the owner types: one command a line.

use super::shown;

/// A command of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// Yes to the request with this number.
    Allow {
        /// The request.
        number: u32,
        /// In later sessions too.
        always: bool,
    },
    /// No to it.
    Deny {
        /// The request.
        number: u32,
        /// What the agent is told beside it.
        note: Option<String>,
    },
    /// The requests that wait.
    Requests,
    /// The session's parts.
    Status,
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
        ("allow", rest) => allow(rest)?,
        ("deny", rest) => deny(rest)?,
        ("requests", "") => Typed::Requests,
        ("status", "") => Typed::Status,
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
        ("requests" | "status" | "hosts" | "links" | "pages" | "help" | "stop", _) => {
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

/// `N` or `N always`.
fn allow(rest: &str) -> Result<Typed, String> {
    let (number, always) = match rest.split_once(char::is_whitespace) {
        None => (rest, false),
        Some((number, word)) if word.trim() == "always" => (number, true),
        Some(_) => return Err("allow takes a number, and nothing after it but `always`".to_owned()),
    };
    let number = request(number, "allow 3")?;
    Ok(Typed::Allow { number, always })
}

/// `N` or `N note`.
fn deny(rest: &str) -> Result<Typed, String> {
    let (number, note) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let number = request(number, "deny 3 too broad")?;
    let note = Some(note.trim().to_owned()).filter(|note| !note.is_empty());
    Ok(Typed::Deny { number, note })
}

/// Digits alone: `+3` and `03` name nothing that was shown.
fn request(text: &str, example: &str) -> Result<u32, String> {
    let is_plain = !text.starts_with(['0', '+']);
    text.parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or_else(|| format!("name a request by its number, as in: {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_command() {
        for (line, typed) in [
            (
                "allow 3",
                Typed::Allow {
                    number: 3,
                    always: false,
                },
            ),
            (
                "allow 3  always",
                Typed::Allow {
                    number: 3,
                    always: true,
                },
            ),
            (
                "deny 12",
                Typed::Deny {
                    number: 12,
                    note: None,
                },
            ),
            (
                "deny 1 too broad",
                Typed::Deny {
                    number: 1,
                    note: Some("too broad".into()),
                },
            ),
            ("requests", Typed::Requests),
            ("status", Typed::Status),
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
            ("y", "help"),
            ("yes", "help"),
            ("3", "help"),
            ("allow", "number"),
            ("allow all", "number"),
            ("allow 1 2", "always"),
            ("allow 1,2", "number"),
            ("allow +1", "number"),
            ("allow 01", "number"),
            ("allow -1", "number"),
            ("allow 99999999999", "number"),
            ("allow \u{661}", "number"),
            ("deny", "number"),
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
