//! Tells the owner, and the log, what happens. Whoever tells never waits: an owner who does not read loses calls and refusals, which are
//! counted, but never a question, an answer or a link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::audit::Audit;
use super::chronicle;
use super::event::Event;
use crate::policy::limits::OWNER_EVENT_RESERVE;

/// The way to the owner; clones are the same.
#[derive(Clone)]
pub(super) struct Herald {
    events: mpsc::Sender<Event>,
    missed: Arc<AtomicU64>,
    audit: Audit,
}

impl Herald {
    pub(super) fn new(events: mpsc::Sender<Event>) -> Self {
        Self {
            events,
            missed: Arc::default(),
            audit: Audit::default(),
        }
    }

    /// Tells a log too.
    pub(super) fn with_log(self, audit: Audit) -> Self {
        Self { audit, ..self }
    }

    /// Tells an event, the log first: it keeps what an owner who does not read loses.
    pub(super) fn tell(&self, event: Event) {
        if let Some(record) = chronicle::record(&event) {
            self.audit.write(record);
        }
        let full = self.events.capacity() <= OWNER_EVENT_RESERVE;
        if event.is_chatter() && full {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if !full {
            let count = self.missed.swap(0, Ordering::Relaxed);
            if count > 0 {
                let _ = self.events.try_send(Event::Missed { count });
            }
        }
        if self.events.try_send(event).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::limits::OWNER_EVENTS;

    fn call() -> Event {
        Event::Call {
            tool: "GET /info".into(),
            page: None,
            status: 200,
            ms: 1,
        }
    }

    #[test]
    fn a_question_comes_through_where_calls_are_dropped_and_counted() {
        let (sender, mut events) = mpsc::channel(OWNER_EVENTS);
        let herald = Herald::new(sender);
        (0..2 * OWNER_EVENTS).for_each(|_| herald.tell(call()));
        let question = Event::Request {
            number: 1,
            hosts: vec![],
            reason: String::new(),
            page: None,
        };
        herald.tell(question.clone());
        let mut taken = Vec::new();
        while let Ok(event) = events.try_recv() {
            taken.push(event);
        }
        assert_eq!(taken.last(), Some(&question));
        herald.tell(call());
        let dropped = u64::try_from(2 * OWNER_EVENTS + 1 - taken.len()).unwrap();
        assert_eq!(events.try_recv().unwrap(), Event::Missed { count: dropped });
        assert_eq!(events.try_recv().unwrap(), call());
    }
}
