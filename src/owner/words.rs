//! Events in plain words, for a person at a terminal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::shown;
use crate::browser::probe::Api;
use crate::policy::limits::SESSION_MINUTES_MOST;
use crate::server::{Event, Ready};

/// What the console's `help` says.
pub(super) const HELP: &str = "\
hosts         the hosts that pages may reach, and those that were refused
link LABEL    make another link
links         the live links, with their numbers
revoke N      kill the link with this number
pages         the open pages
help          this
stop          end the session (ctrl-c does the same)";

/// The lines of an event.
pub(super) fn event(event: &Event) -> Vec<String> {
    vec![match event {
        Event::Ready(ready) => return self::ready(ready),
        Event::Progress(what) => format!("…        {}", shown::text(what)),
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
        Event::Page { page, state, url } => {
            format!(
                "page     {} {state}  {}",
                shown::text(page),
                shown::text(url)
            )
        }
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
        Event::Browser { state, reason } => changed("browser", state, reason.as_deref()),
        Event::Relay { state, reason } => changed("relay", state, reason.as_deref()),
        Event::Refused { host, reason } => {
            format!("refused  {} ({reason})", shown::text(host))
        }
    }]
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
            shown::text(&ready.version),
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
    lines.push(match &ready.isolation {
        Ok(()) => "network  a namespace of its own; nothing leads out but the proxy".to_owned(),
        Err(reason) => format!(
            "WARNING  NO network namespace ({}): the kernel does not keep Chromium off the network, only the proxy settings do",
            shown::text(reason)
        ),
    });
    lines.push(format!("ends     {}", end(ready.end, SystemTime::now())));
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
pub(super) mod tests {
    use super::*;
    use crate::browser::probe::Verdict;
    use crate::browser::rung::Rung;

    pub(in crate::owner) fn ready() -> Ready {
        Ready {
            link: "http://127.0.0.1:9/v1/t/as_x/agents.md".into(),
            relay: "http://127.0.0.1:9".into(),
            gpu: Verdict {
                rung: Rung::SoftwareX,
                display: "xvfb".into(),
                backend: "vulkan".into(),
                hardware: false,
                webgl: Api {
                    name: "SwiftShader".into(),
                    proven: true,
                    reason: None,
                },
                webgpu: Api {
                    name: String::new(),
                    proven: false,
                    reason: Some("navigator.gpu is missing".into()),
                },
                texture_side: 8192,
            },
            version: "Chromium 1".into(),
            sandbox: true,
            isolation: Ok(()),
            account: None,
            end: UNIX_EPOCH + Duration::from_secs(3600),
            start_ms: 900,
        }
    }

    #[test]
    fn the_link_stands_alone_and_what_is_missing_is_loud() {
        let mut ready = ready();
        let lines = super::ready(&ready);
        assert!(lines.contains(&format!("  {}", ready.link)));
        assert!(!lines.iter().any(|line| line.starts_with("WARNING")));
        assert!(lines.iter().any(|line| line.contains("only programs here")));
        assert!(lines.contains(&"WebGPU   NOT proven: navigator.gpu is missing".to_owned()));
        ready.sandbox = false;
        ready.isolation = Err("unshare: EPERM".into());
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
            state: "opened",
            url: "https://a/\u{1b}[2J\nlink".into(),
        });
        assert_eq!(lines, ["page     p1 opened  https://a/\\u{1b}[2J\\nlink"]);
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
