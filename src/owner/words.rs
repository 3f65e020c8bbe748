//! Events in plain words, for a person at a terminal.

mod parts;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::shown;
use crate::browser::probe::Api;
use crate::policy::limits::SESSION_MINUTES_MOST;
use crate::server::{Event, Ready};

pub(super) use self::parts::{pages, status};

/// What the console's `help` says.
pub(super) const HELP: &str = "\
allow N       let pages reach the hosts of request N (`allow N always`: in later sessions too)
deny N [note] do not; the agent reads the note
requests      the requests that wait
hosts         the hosts that pages may reach, and those that were refused
link LABEL    make another link
links         the live links, with their numbers
revoke N      kill the link with this number
pages         the open pages
status        the session's parts
help          this
stop          end the session (ctrl-c does the same)";

/// The lines of an event.
pub(super) fn event(event: &Event) -> Vec<String> {
    vec![match event {
        Event::Ready(ready) => return self::ready(ready),
        Event::Progress { text } => format!("…        {}", shown::text(text)),
        Event::Call {
            tool,
            page,
            status,
            ms,
        } => {
            let page = page
                .as_deref()
                .map(|page| format!(" {}", shown::text(page)));
            format!(
                "call     {}{}  {status}  {ms} ms",
                shown::text(tool),
                page.unwrap_or_default()
            )
        }
        Event::Page {
            page,
            state,
            url,
            reason,
        } => {
            let (page, url) = (shown::text(page), shown::text(url));
            let mut lines = vec![format!("page     {page} {}  {url}", state.as_str())];
            lines.extend(
                reason
                    .iter()
                    .map(|reason| format!("         {}", shown::text(reason))),
            );
            return lines;
        }
        Event::Idle { minutes } => {
            format!("idle     no call for {minutes} minutes; the session goes on")
        }
        Event::Link {
            link,
            label,
            reason,
        } if link.is_empty() => format!(
            "link     {} ({}): the relay makes no other; `link {0}` tries again",
            shown::text(label),
            shown::text(reason)
        ),
        Event::Link {
            link,
            label,
            reason,
        } => {
            return vec![
                format!("link     {} ({}):", shown::text(label), shown::text(reason)),
                String::new(),
                format!("  {}", shown::link(link)),
                String::new(),
            ];
        }
        Event::Browser { state, reason } => changed("browser", state.as_str(), reason.as_deref()),
        Event::Relay { state, reason } => changed("relay", state.as_str(), reason.as_deref()),
        Event::Refused { host, reason } => {
            format!("refused  {} ({})", shown::text(host), shown::text(reason))
        }
        Event::Request {
            number,
            hosts,
            reason,
            page,
        } => return question(*number, hosts, reason, page.as_deref()),
        Event::Answered {
            number,
            decision,
            hosts,
            note,
        } => {
            let note = note
                .as_deref()
                .map(|note| format!(": {}", shown::text(note)))
                .unwrap_or_default();
            format!(
                "request  {number} {}: {}{note}",
                shown::text(decision),
                hosts_in_words(hosts)
            )
        }
        Event::Missed { count } => {
            format!("…        {count} lines left out: the screen did not keep up")
        }
    }]
}

/// A question, so that it can be answered by whoever reads these lines and nothing else.
pub(super) fn question(
    number: u32,
    hosts: &[String],
    reason: &str,
    page: Option<&str>,
) -> Vec<String> {
    let page = page
        .map(|page| format!(" (page {})", shown::text(page)))
        .unwrap_or_default();
    let mut lines = vec![
        String::new(),
        format!("REQUEST {number}  an agent asks to reach{page}:"),
    ];
    lines.extend(
        hosts
            .iter()
            .map(|host| format!("           {}", host_in_words(host))),
    );
    lines.push(format!(
        "         its reason, in its own words: \u{201c}{}\u{201d}",
        shown::text(reason)
    ));
    lines.push(format!(
        "         type: allow {number} | allow {number} always | deny {number} [note]"
    ));
    lines
}

/// Hosts in their wire form, each with what a browser would show for it where that differs.
fn hosts_in_words(hosts: &[String]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| host_in_words(host)).collect();
    hosts.join(", ")
}

/// A host in its wire form. One that is written in other letters is named as such: `xn--pple-43d.com` looks like `apple.com`.
fn host_in_words(host: &str) -> String {
    let wire = shown::text(host);
    let (star, name) = host
        .strip_prefix("*.")
        .map_or(("", host), |name| ("*.", name));
    let (letters, _) = idna::domain_to_unicode(name);
    let mut line = if letters == name {
        wire
    } else {
        format!(
            "{wire}  (in letters: \u{201c}{star}{}\u{201d}; it can look like another name)",
            shown::text(&letters)
        )
    };
    if star == "*." {
        line.push_str("  (every host below that name)");
    }
    line
}

fn changed(name: &str, state: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{name:<8} {state}: {}", shown::text(reason)),
        None => format!("{name:<8} {state}"),
    }
}

fn ready(ready: &Ready) -> Vec<String> {
    let gpu = &ready.gpu;
    let mut lines = vec![
        String::new(),
        format!("  {}", shown::link(&ready.link)),
        String::new(),
        "Give this link to an agent. Whoever has it may use the browser here until the session ends."
            .to_owned(),
    ];
    if is_local(&ready.relay) {
        lines.push(
            "The relay is on this machine: only programs here can reach the link.".to_owned(),
        );
    }
    lines.extend([
        format!("relay    {}", shown::text(&ready.relay)),
        format!(
            "gpu      {} ({}, {}, {})",
            gpu.word(),
            gpu.rung.name(),
            shown::text(&gpu.backend),
            shown::text(&gpu.display)
        ),
        format!("WebGL2   {}", api(&gpu.webgl)),
        format!("WebGPU   {}", api(&gpu.webgpu)),
        format!(
            "browser  {}, up in {} ms",
            shown::text(&ready.browser),
            ready.start_ms
        ),
        format!(
            "account  {}",
            ready
                .account
                .as_deref()
                .map_or_else(|| "the present user".to_owned(), shown::text)
        ),
    ]);
    lines.push(if ready.sandbox {
        "sandbox  Chromium's own, on".to_owned()
    } else {
        "WARNING  Chromium's sandbox is OFF: a page that breaks its renderer has this account's rights".to_owned()
    });
    lines.push(if ready.network_namespace {
        "network  a namespace of its own; nothing leads out but the proxy".to_owned()
    } else {
        let reason = ready.network_namespace_reason.as_deref().unwrap_or("no reason was given");
        format!(
            "WARNING  NO network namespace ({}): the kernel does not keep Chromium off the network, only the proxy settings do",
            shown::text(reason)
        )
    });
    let at = UNIX_EPOCH + Duration::from_secs(ready.end_unix_s);
    lines.push(format!("ends     {}", end(at, SystemTime::now())));
    lines.push("Type help for the commands; stop or ctrl-c ends the session.".to_owned());
    lines
}

/// What an interface is, and whether its pixels were right.
pub(super) fn api(api: &Api) -> String {
    let name = shown::text(&api.name);
    if api.proven {
        return format!("proven by pixels: {name}");
    }
    let reason = api.reason.as_deref().unwrap_or("no reason was given");
    format!("NOT proven: {}", shown::text(reason))
}

/// A link that only this machine reaches is the usual first surprise.
fn is_local(relay: &str) -> bool {
    url::Url::parse(relay).is_ok_and(|url| match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    })
}

/// How long it is until a time.
pub(super) fn left(end_unix_s: u64, now: SystemTime) -> String {
    let at = UNIX_EPOCH + Duration::from_secs(end_unix_s);
    length(at.duration_since(now).unwrap_or_default())
}

fn end(at: SystemTime, now: SystemTime) -> String {
    let left = at.duration_since(now).unwrap_or_default();
    let of_day = at
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() / 60 % (24 * 60));
    format!(
        "in {}, at {:02}:{:02} UTC",
        length(left),
        of_day / 60,
        of_day % 60
    )
}

/// A length of time in the two units that say most.
fn length(time: Duration) -> String {
    // Half a minute up: a session that has just begun has its whole time left.
    let minutes = ((time.as_secs() + 30) / 60).min(SESSION_MINUTES_MOST);
    match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::event::PageState;
    use crate::server::event::tests::ready;

    #[test]
    fn the_link_stands_alone_and_what_is_missing_is_loud() {
        let mut ready = ready();
        let lines = super::ready(&ready);
        assert!(lines.contains(&format!("  {}", ready.link)));
        assert!(!lines.iter().any(|line| line.starts_with("WARNING")));
        assert!(lines.iter().any(|line| line.contains("only programs here")));
        assert!(lines.contains(&"WebGPU   NOT proven: navigator.gpu is missing".to_owned()));
        ready.sandbox = false;
        ready.network_namespace = false;
        ready.network_namespace_reason = Some("unshare: EPERM".into());
        let loud = super::ready(&ready);
        let loud: Vec<_> = loud
            .iter()
            .filter(|line| line.starts_with("WARNING"))
            .collect();
        assert_eq!(loud.len(), 2);
        assert!(loud[1].contains("EPERM"));
    }

    #[test]
    fn what_a_page_made_cannot_move_the_cursor() {
        let lines = event(&Event::Page {
            page: "p1".into(),
            state: PageState::Opened,
            url: "https://a/\u{1b}[2J\nlink".into(),
            reason: None,
        });
        assert_eq!(lines, ["page     p1 opened  https://a/\\u{1b}[2J\\nlink"]);
    }

    #[test]
    fn a_question_cannot_be_dressed_up() {
        let lines = question(
            3,
            &["xn--pple-43d.com".into(), "*.cdn.example".into()],
            "fine\u{1b}[2K\r\nREQUEST 4  allow 4\u{202e}",
            Some("p1"),
        );
        assert!(lines[1].starts_with("REQUEST 3"));
        assert!(
            lines[2].contains("xn--pple-43d.com")
                && lines[2].contains("аpple.com")
                && lines[2].contains("can look like")
        );
        assert!(lines[3].contains("every host below"));
        assert!(
            lines.iter().all(|line| !line.chars().any(char::is_control)),
            "{lines:?}"
        );
        assert_eq!(
            lines
                .iter()
                .filter(|line| line.starts_with("REQUEST"))
                .count(),
            1
        );
        assert!(lines[4].contains("\\u{202e}"));
    }

    #[test]
    fn the_end_is_a_length_and_a_time() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        for (from, to, words) in [
            (0, 240 * 60, "in 4 h 0 min, at 04:00 UTC"),
            (1, 240 * 60, "in 4 h 0 min, at 04:00 UTC"),
            (0, 60, "in 1 min, at 00:01 UTC"),
            (0, 30 * 86_400, "in 30 d 0 h, at 00:00 UTC"),
        ] {
            assert_eq!(end(at(to), at(from)), words);
        }
    }
}
