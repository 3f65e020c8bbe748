//! Keeps the log of a session: what the owner is told, what the proxy tells, its begin and its end.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::audit::{Audit, AuditError, Record, place_of};
use super::event::Event;
use super::herald::Herald;
use super::pages::Pages;
use crate::policy::approval::Decision;
use crate::policy::limits::PAGES;
use crate::proxy::Event as ProxyEvent;

/// Browser contexts whose pages are remembered: of the open pages, and of the last that were closed, whose connections end
/// after them.
const NAMES: usize = 4 * PAGES;

/// The log of a session, with the tasks that write it.
pub(super) struct Chronicle {
    audit: Audit,
    /// What listens to the proxy.
    hearing: JoinSet<()>,
    /// What writes.
    writing: JoinSet<()>,
    /// The proxy is closed: what it has told is all.
    over: CancellationToken,
}

impl Chronicle {
    /// Opens the log. Without a folder, or where it cannot be opened, nothing is kept; the reason is told.
    pub(super) fn open(folder: Option<&Path>, tell: impl FnOnce(String) + Send + 'static) -> Self {
        let mut writing = JoinSet::new();
        let told = |error: AuditError| {
            tell(format!(
                "the log cannot be written; the session goes on without it: {error}"
            ));
        };
        let audit = match folder.map(Audit::open) {
            None => Audit::default(),
            Some(Err(error)) => {
                told(error);
                Audit::default()
            }
            Some(Ok((audit, writer))) => {
                writing.spawn_blocking(move || writer.run(told));
                audit
            }
        };
        Self {
            audit,
            hearing: JoinSet::new(),
            writing,
            over: CancellationToken::new(),
        }
    }

    /// The way into the log.
    pub(super) fn audit(&self) -> Audit {
        self.audit.clone()
    }

    /// Writes down what the proxy tells, and tells of hosts that were refused.
    pub(super) fn hear_proxy(
        &mut self,
        mut events: mpsc::Receiver<ProxyEvent>,
        pages: Arc<Pages>,
        herald: Herald,
    ) {
        let (audit, over) = (self.audit.clone(), self.over.clone());
        self.hearing.spawn(async move {
            let mut names = Names::default();
            loop {
                let event = tokio::select! {
                    // What the proxy said before it was closed comes first.
                    biased;
                    Some(event) = events.recv() => event,
                    () = over.cancelled() => return,
                };
                if let ProxyEvent::Stopped { target, reason, .. } = &event {
                    let (host, reason) = (target.clone(), reason.as_str().to_owned());
                    herald.tell(Event::Refused { host, reason });
                }
                audit.write(names.record(event, |user| pages.name_of(user)));
            }
        });
    }

    /// Ends the log after the proxy is closed: all that was told is written, and why the session ended is its last line.
    pub(super) async fn end(mut self, reason: &str) {
        self.over.cancel();
        while self.hearing.join_next().await.is_some() {}
        let reason = reason.to_owned();
        self.audit.write(Record::Ended { reason });
        self.audit.close().await;
        while self.writing.join_next().await.is_some() {}
    }
}

/// The pages of browser contexts.
#[derive(Default)]
struct Names(VecDeque<(String, String)>);

impl Names {
    fn page(&mut self, user: &str, ask: impl Fn(&str) -> Option<String>) -> Option<String> {
        if let Some((_, page)) = self.0.iter().find(|(known, _)| known == user) {
            return Some(page.clone());
        }
        let page = ask(user)?;
        if self.0.len() == NAMES {
            self.0.pop_front();
        }
        self.0.push_back((user.to_owned(), page.clone()));
        Some(page)
    }

    fn record(&mut self, event: ProxyEvent, ask: impl Fn(&str) -> Option<String>) -> Record {
        let text = |address: IpAddr| address.to_string();
        match event {
            ProxyEvent::Reached {
                user,
                host,
                port,
                address,
            } => Record::Connected {
                host,
                address: text(address),
                port,
                page: self.page(&user, ask),
            },
            ProxyEvent::Ended {
                user,
                host,
                port,
                address,
                sent,
                received,
                open,
                reason,
            } => Record::Disconnected {
                host,
                address: text(address),
                port,
                sent,
                received,
                ms: u64::try_from(open.as_millis()).unwrap_or(u64::MAX),
                reason: reason.to_owned(),
                page: self.page(&user, ask),
            },
            ProxyEvent::Stopped {
                user,
                target,
                reason,
            } => Record::Refused {
                host: target,
                reason: reason.as_str().to_owned(),
                page: self.page(&user, ask),
            },
        }
    }
}

/// What the log keeps of what the owner is told. What the proxy tells, and the session's begin, have their own way into it.
pub(super) fn record(event: &Event) -> Option<Record> {
    Some(match event {
        Event::Progress { .. }
        | Event::Ready(_)
        | Event::Refused { .. }
        | Event::Idle { .. }
        | Event::Missed { .. } => return None,
        Event::Call {
            tool,
            page,
            status,
            ms,
        } => Record::Call {
            tool: tool.clone(),
            page: page.clone(),
            status: *status,
            ms: *ms,
        },
        Event::Page {
            page,
            state,
            url,
            reason,
        } => Record::Page {
            page: page.clone(),
            state: state.as_str().to_owned(),
            url: place_of(url),
            reason: reason.clone(),
        },
        Event::Link { label, reason, .. } => Record::Link {
            label: label.clone(),
            reason: without_links(reason),
        },
        Event::Browser { state, reason } => Record::Browser {
            state: state.as_str().to_owned(),
            reason: reason.clone(),
        },
        Event::Relay { state, reason } => Record::Relay {
            state: state.as_str().to_owned(),
            reason: reason.as_deref().map(without_links),
        },
        Event::Request {
            number,
            hosts,
            reason,
            page,
        } => Record::Request {
            number: *number,
            hosts: hosts.clone(),
            reason: reason.clone(),
            page: page.clone(),
        },
        Event::Answered {
            number,
            decision,
            hosts,
            note,
        } => Record::Answered {
            number: *number,
            decision: decision.clone(),
            by: if decision == Decision::Expired.as_str() {
                "nobody"
            } else {
                "owner"
            }
            .to_owned(),
            hosts: hosts.clone(),
            note: note.clone(),
        },
    })
}

/// A reason that may name a link, which is a credential even when the relay says that it is dead.
fn without_links(reason: &str) -> String {
    let words = reason.split(' ').map(|word| match word.contains("/v1/t/") {
        true => "(a link)",
        false => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::refusal::Refusal;

    #[test]
    fn a_link_is_not_written() {
        let link = "https://r.example/v1/t/as_secret/agents.md";
        let event = Event::Link {
            link: link.into(),
            label: "agent".into(),
            reason: format!("the relay lost the session; {link} is dead"),
        };
        let record = record(&event).unwrap();
        assert!(!format!("{record:?}").contains("as_secret"));
        assert!(format!("{record:?}").contains("is dead"));
    }

    #[test]
    fn a_connection_that_ends_after_its_page_still_names_it() {
        let mut names = Names::default();
        let refused = |user: &str| ProxyEvent::Stopped {
            user: user.into(),
            target: "a.example:443".into(),
            reason: Refusal::HostNotAllowed.into(),
        };
        names.record(refused("ctx-1"), |_| Some("p1".into()));
        let ended = ProxyEvent::Ended {
            user: "ctx-1".into(),
            host: "a.example".into(),
            port: 443,
            address: [93, 184, 215, 14].into(),
            sent: 1,
            received: 2,
            open: Duration::from_millis(3),
            reason: "page_closed",
        };
        let record = names.record(ended, |_| None);
        assert!(
            matches!(&record, Record::Disconnected { page: Some(page), ms: 3, .. } if page == "p1")
        );
        for number in 0..10 * NAMES {
            names.record(refused(&format!("ctx-{number}")), |_| Some("p".into()));
        }
        assert_eq!(names.0.len(), NAMES);
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_opened_is_told_and_the_session_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (sender, told) = std::sync::mpsc::channel();
        let chronicle = Chronicle::open(Some(&file), move |text| sender.send(text).unwrap());
        chronicle.audit().write(Record::Dropped { count: 1 });
        chronicle.end("over").await;
        assert!(told.recv().unwrap().contains("goes on without it"));
    }
}
