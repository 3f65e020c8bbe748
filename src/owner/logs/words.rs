//! A line of the log in plain words.

use time::OffsetDateTime;

use crate::owner::shown;
use crate::server::audit::{Line, Record};

/// One line of the screen.
pub(super) fn line(line: &Line) -> String {
    let (name, what) = record(&line.record);
    let line = format!("{}  {name:<12} {what}", when(line.t));
    line.trim_end().to_owned()
}

/// `2026-12-01 10:00:00.250Z`, so that lines stay in columns.
fn when(t: OffsetDateTime) -> String {
    let (date, time) = (t.date(), t.time());
    let (hour, minute, second, ms) = time.as_hms_milli();
    format!("{date} {hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

fn record(record: &Record) -> (&'static str, String) {
    let text = shown::text;
    match record {
        Record::Started {
            version,
            relay,
            gpu,
            browser,
            sandbox,
            network_namespace,
            hosts,
        } => {
            let off = |on: &bool, what: &str| {
                if *on {
                    String::new()
                } else {
                    format!(", {what}")
                }
            };
            let hosts = match hosts.len() {
                0 => "no host allowed".to_owned(),
                count => format!("{count} rules of hosts"),
            };
            let what = format!(
                "gpu-browser {}, {} at {}, {}, {hosts}{}{}",
                text(version),
                text(browser),
                text(relay),
                text(gpu),
                off(sandbox, "SANDBOX OFF"),
                off(network_namespace, "NO NETWORK NAMESPACE"),
            );
            ("session", what)
        }
        Record::Ended { reason } => ("ended", text(reason)),
        Record::Call {
            tool,
            page,
            status,
            ms,
        } => (
            "call",
            format!("{}{}  {status}  {ms} ms", text(tool), option(" ", page)),
        ),
        Record::Page {
            page,
            state,
            url,
            reason,
        } => (
            "page",
            format!(
                "{} {}  {}{}",
                text(page),
                text(state),
                text(url),
                option(": ", reason)
            ),
        ),
        Record::Link { label, reason } => ("link", format!("{} ({})", text(label), text(reason))),
        Record::Browser { state, reason } => ("browser", text(state) + &option(": ", reason)),
        Record::Relay { state, reason } => ("relay", text(state) + &option(": ", reason)),
        Record::Request {
            number,
            hosts,
            reason,
            page,
        } => {
            let what = format!(
                "{number}: {}{}: \u{201c}{}\u{201d}",
                list(hosts),
                option(" for ", page),
                text(reason)
            );
            ("request", what)
        }
        Record::Answered {
            number,
            decision,
            by,
            hosts,
            note,
        } => {
            let what = format!(
                "{number} {} by {}: {}{}",
                text(decision),
                text(by),
                list(hosts),
                option(": ", note)
            );
            ("answered", what)
        }
        Record::Refused { host, reason, page } => (
            "refused",
            format!("{} ({}){}", text(host), text(reason), option(" for ", page)),
        ),
        Record::Connected {
            host,
            address,
            port,
            page,
        } => (
            "connected",
            format!(
                "{}:{port} at {}{}",
                text(host),
                text(address),
                option(" for ", page)
            ),
        ),
        Record::Disconnected {
            host,
            address,
            port,
            sent,
            received,
            ms,
            reason,
            page,
        } => {
            let what = format!(
                "{}:{port} at {}  {sent} bytes out, {received} in, {ms} ms, {}{}",
                text(host),
                text(address),
                text(reason),
                option(" for ", page)
            );
            ("disconnected", what)
        }
        Record::Dropped { count } => (
            "dropped",
            format!("{count} lines: more came than the disk took"),
        ),
    }
}

fn option(before: &str, said: &Option<String>) -> String {
    let said = said
        .as_deref()
        .map(|said| format!("{before}{}", shown::text(said)));
    said.unwrap_or_default()
}

fn list(hosts: &[String]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| shown::text(host)).collect();
    hosts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(record: Record) -> String {
        let t = OffsetDateTime::UNIX_EPOCH + time::Duration::milliseconds(1_250);
        line(&Line { t, record })
    }

    #[test]
    fn a_line_is_its_time_its_event_and_what_it_says() {
        let call = Record::Call {
            tool: "POST /eval".into(),
            page: Some("p1".into()),
            status: 200,
            ms: 7,
        };
        assert_eq!(
            shown(call),
            "1970-01-01 00:00:01.250Z  call         POST /eval p1  200  7 ms"
        );
        let end = Record::Disconnected {
            host: "a.example".into(),
            address: "93.184.215.14".into(),
            port: 443,
            sent: 5,
            received: 6,
            ms: 7,
            reason: "closed".into(),
            page: Some("p1".into()),
        };
        assert!(shown(end).ends_with(
            "disconnected a.example:443 at 93.184.215.14  5 bytes out, 6 in, 7 ms, closed for p1"
        ));
    }

    #[test]
    fn what_an_agent_said_cannot_move_the_cursor() {
        let request = Record::Request {
            number: 3,
            hosts: vec!["a.example\u{1b}[2J".into()],
            reason: "fine\r\n1970-01-01 answered \u{202e}".into(),
            page: Some("p1\u{9b}".into()),
        };
        assert!(
            !shown(request)
                .chars()
                .any(|c| c.is_control() || c == '\u{202e}')
        );
    }
}
