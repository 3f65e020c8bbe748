//! What the owner is told of a session, as words or as JSON, and what of it is kept to answer questions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::questions::Questions;
use super::screen::Screen;
use super::{Failure, shown, words};
use crate::policy::limits::REFUSED_HOSTS;
use crate::server::event::PageState;
use crate::server::{Event, Ready};

/// For whom the events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A person.
    Words,
    /// A person who wants to hear what matters alone.
    Quiet,
    /// A program.
    Json,
    /// A person who follows the demo, which tells its own steps once the session is up.
    Steps,
}

/// Tells events, and remembers what the console's commands need.
pub(super) struct Teller {
    pub(super) screen: Screen,
    style: Style,
    /// What the session is; there once it is up.
    pub(super) ready: Option<Box<Ready>>,
    /// All links that were told, so that their numbers never change.
    pub(super) links: Links,
    /// The requests that were shown and wait.
    pub(super) questions: Questions,
    /// The pages that are open, as far as was told.
    pages: BTreeSet<String>,
    refused: Refused,
}

/// Links by number, from 1, in the order they were first told.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<String>);

/// How often each host was refused.
#[derive(Debug, Default)]
struct Refused {
    hosts: BTreeMap<String, u64>,
    /// Refusals of hosts beyond the limit of the map.
    others: u64,
}

impl Teller {
    /// Nothing told yet.
    pub(super) fn new(style: Style) -> Self {
        Self {
            screen: Screen::new(),
            style,
            ready: None,
            links: Links::default(),
            questions: Questions::default(),
            pages: BTreeSet::new(),
            refused: Refused::default(),
        }
    }

    /// Tells an event. A host that was refused before is only counted, and a link is told once.
    pub(super) async fn tell(&mut self, event: &Event) -> Result<(), Failure> {
        let is_news = match event {
            Event::Ready(ready) => {
                self.links.number(&ready.link);
                self.ready = Some(ready.clone());
                true
            }
            Event::Link { link, .. } => !self.links.number(link).is_known,
            Event::Refused { host, .. } => self.refused.count(host),
            Event::Page { page, state, .. } => {
                match state {
                    PageState::Opened => self.pages.insert(page.clone()),
                    PageState::Closed | PageState::Lost => self.pages.remove(page),
                    PageState::Frozen | PageState::Killed => false,
                };
                true
            }
            Event::Answered { number, .. } => {
                self.questions.ended(*number);
                true
            }
            _ => true,
        };
        self.screen.facts(|| self.facts());
        let is_progress = matches!(event, Event::Progress { .. });
        match self.style {
            Style::Json => self.tell_program(event, is_news).await?,
            Style::Words if is_news => self.lines(words::event(event)).await?,
            Style::Quiet if is_news && (is_progress || !event.is_chatter()) => {
                self.lines(words::event(event)).await?;
            }
            Style::Steps if is_progress => self.lines(words::event(event)).await?,
            Style::Words | Style::Quiet | Style::Steps => {}
        }
        // Only now has it been shown.
        if let Event::Request {
            number,
            hosts,
            reason,
            page,
        } = event
        {
            self.questions
                .shown(*number, hosts, reason, page.as_deref());
            self.screen.facts(|| self.facts());
            if self.style != Style::Json {
                self.lines(vec![String::new()]).await?;
            }
        }
        Ok(())
    }

    /// A program counts for itself, so that it hears every refusal.
    async fn tell_program(&mut self, event: &Event, is_news: bool) -> Result<(), Failure> {
        if matches!(event, Event::Progress { .. }) {
            for line in words::event(event) {
                self.screen.aside(&line).await;
            }
            return Ok(());
        }
        if !is_news && !matches!(event, Event::Refused { .. }) {
            return Ok(());
        }
        let value = serde_json::to_value(event).unwrap_or_default();
        self.screen.line(&shown::json(&value)).await
    }

    /// How the session is, in a few words.
    fn facts(&self) -> String {
        let Some(ready) = &self.ready else {
            return "starting; ctrl-c stops it".to_owned();
        };
        let waiting = match self.questions.waiting().count() {
            0 => String::new(),
            1 => "1 REQUEST WAITS, ".to_owned(),
            many => format!("{many} REQUESTS WAIT, "),
        };
        let left = words::left(ready.end_unix_s, SystemTime::now());
        format!("{waiting}{} pages, ends in {left} (help)", self.pages.len())
    }

    /// Answers a command of the owner; beside the events where those are for a program.
    pub(super) async fn reply(&mut self, lines: Vec<String>) -> Result<(), Failure> {
        if self.style != Style::Json {
            return self.lines(lines).await;
        }
        for line in lines {
            self.screen.aside(&line).await;
        }
        Ok(())
    }

    /// The last word of a session.
    pub(super) async fn ended(&mut self, reason: &str) -> Result<(), Failure> {
        if self.style == Style::Json {
            let value = serde_json::json!({"event": "ended", "reason": reason});
            return self.screen.line(&shown::json(&value)).await;
        }
        let mut lines = self.refused.lines();
        let ended = format!("ended    {}", shown::lines(reason));
        lines.extend(ended.lines().map(str::to_owned));
        self.lines(lines).await
    }

    /// The hosts that were refused, with how often.
    pub(super) fn refused(&self) -> Vec<String> {
        self.refused.lines()
    }

    async fn lines(&mut self, lines: Vec<String>) -> Result<(), Failure> {
        for line in lines {
            self.screen.line(&line).await?;
        }
        Ok(())
    }
}

/// A link's number, and whether it had one already.
pub(super) struct Numbered {
    pub(super) number: usize,
    is_known: bool,
}

impl Links {
    /// The number of a link, which it keeps.
    pub(super) fn number(&mut self, link: &str) -> Numbered {
        if let Some(at) = self.0.iter().position(|known| known == link) {
            return Numbered {
                number: at + 1,
                is_known: true,
            };
        }
        self.0.push(link.to_owned());
        Numbered {
            number: self.0.len(),
            is_known: false,
        }
    }

    /// The link of a number.
    pub(super) fn get(&self, number: usize) -> Option<&str> {
        let at = number.checked_sub(1)?;
        self.0.get(at).map(String::as_str)
    }
}

impl Refused {
    /// Counts a refusal; `true` where its host is new.
    fn count(&mut self, host: &str) -> bool {
        if let Some(count) = self.hosts.get_mut(host) {
            *count += 1;
            return false;
        }
        if self.hosts.len() == REFUSED_HOSTS {
            self.others += 1;
            return false;
        }
        self.hosts.insert(host.to_owned(), 1);
        true
    }

    fn lines(&self) -> Vec<String> {
        let each = self.hosts.iter();
        let mut lines: Vec<String> = each
            .map(|(host, count)| format!("refused  {} ({count} times)", shown::text(host)))
            .collect();
        if self.others > 0 {
            lines.push(format!("refused  other hosts ({} times)", self.others));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_host_is_news_once_and_then_counted() {
        let mut refused = Refused::default();
        assert!(refused.count("a.example"));
        assert!(!refused.count("a.example"));
        assert!(refused.count("b.example"));
        assert_eq!(
            refused.lines(),
            [
                "refused  a.example (2 times)",
                "refused  b.example (1 times)"
            ]
        );
    }

    #[test]
    fn a_page_that_makes_up_hosts_fills_no_memory() {
        let mut refused = Refused::default();
        let news = (0..10 * REFUSED_HOSTS).filter(|n| refused.count(&format!("h{n}.example")));
        assert_eq!(news.count(), REFUSED_HOSTS);
        assert_eq!(refused.lines().len(), REFUSED_HOSTS + 1);
    }

    #[test]
    fn a_link_keeps_its_number() {
        let mut links = Links::default();
        assert_eq!(links.number("a").number, 1);
        assert_eq!(links.number("b").number, 2);
        assert!(links.number("a").is_known);
        assert_eq!(
            (links.get(0), links.get(2), links.get(3)),
            (None, Some("b"), None)
        );
    }
}
