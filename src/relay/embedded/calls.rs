//! Calls in flight: what agents wait for.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::denied::Denied;
use crate::policy::limits;
use crate::relay::frames::body::Answer;

/// A call on its way to the app. It is made a frame only when it is written, so that waiting ones stay small.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Bytes,
    pub(super) headers: BTreeMap<String, String>,
}

/// How a call ends, where it ends at all.
#[derive(Debug)]
pub(super) enum Outcome {
    Answer(Answer),
    /// The work goes on under this id.
    Task(String),
    Denied(Denied),
}

/// The calls in flight of a session.
///
/// An agent that hangs up is not reported: its place stays taken until the reply or the timeout. So places are kept here
/// and not by the request, and those past their time are cleared when somebody asks for one.
pub(super) struct Calls {
    /// Random, so that a reply to an older session of this app never fits a call of this one.
    prefix: String,
    next: u64,
    timeout: Duration,
    /// In the order of their deadlines, since all have the same time.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    number: u64,
    deadline: Instant,
    reply: oneshot::Sender<Outcome>,
}

impl Calls {
    pub(super) fn new(prefix: String, timeout: Duration) -> Self {
        Self {
            prefix,
            next: 0,
            timeout,
            waiting: VecDeque::new(),
        }
    }

    /// Whether all places are taken.
    pub(super) fn is_full(&mut self) -> bool {
        let now = Instant::now();
        let late = self
            .waiting
            .partition_point(|waiting| waiting.deadline <= now);
        for waiting in self.waiting.drain(..late) {
            waiting.end(Denied::Timeout(self.timeout));
        }
        self.waiting.len() >= limits::CALLS_IN_FLIGHT
    }

    /// Takes a place: the call's id, and where its end arrives.
    pub(super) fn begin(&mut self) -> (String, oneshot::Receiver<Outcome>) {
        let (reply, outcome) = oneshot::channel();
        self.next += 1;
        let deadline = Instant::now() + self.timeout;
        self.waiting.push_back(Waiting {
            number: self.next,
            deadline,
            reply,
        });
        (format!("{}-{}", self.prefix, self.next), outcome)
    }

    /// Takes the call that an id names, if it still waits.
    pub(super) fn take(&mut self, id: &str) -> Option<oneshot::Sender<Outcome>> {
        let (prefix, number) = id.rsplit_once('-')?;
        let number: u64 = number.parse().ok().filter(|_| prefix == self.prefix)?;
        let place = self
            .waiting
            .binary_search_by_key(&number, |waiting| waiting.number)
            .ok()?;
        let waiting = self.waiting.remove(place)?;
        if waiting.deadline <= Instant::now() {
            waiting.end(Denied::Timeout(self.timeout));
            return None;
        }
        Some(waiting.reply)
    }

    /// Gives up all of them; their agents learn how long the app has been away, if it may come back.
    pub(super) fn fail_all(&mut self, away: Option<Duration>) {
        for waiting in self.waiting.drain(..) {
            waiting.end(Denied::Offline(away));
        }
    }
}

impl Waiting {
    fn end(self, denied: Denied) {
        // The agent may have hung up.
        let _ = self.reply.send(Outcome::Denied(denied));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Calls {
        Calls::new("p".into(), Duration::from_secs(3))
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_again_after_the_reply_or_the_timeout() {
        let mut calls = calls();
        let waiting: Vec<_> = (0..limits::CALLS_IN_FLIGHT)
            .map(|_| calls.begin())
            .collect();
        assert!(calls.is_full());
        assert!(calls.take(&waiting[40].0).is_some() && !calls.is_full());
        calls.begin();
        assert!(calls.is_full());
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(!calls.is_full() && calls.waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn late_repeated_and_foreign_ids_find_nothing() {
        let mut calls = calls();
        let (id, _outcome) = calls.begin();
        assert_eq!(id, "p-1");
        for foreign in ["", "p", "p-2", "q-1", "p-x", "-1"] {
            assert!(calls.take(foreign).is_none(), "{foreign}");
        }
        assert!(calls.take(&id).is_some() && calls.take(&id).is_none());
        let (late, _outcome) = calls.begin();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(calls.take(&late).is_none());
    }
}
