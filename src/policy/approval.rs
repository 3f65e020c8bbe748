//! An agent's plea for more hosts, and the owner's word on it: pure states, driven from outside.
//!
//! ```text
//!         ask ──▶ waiting ──▶ allowed | denied | expired
//!          │         ▲
//!          └─ the same hosts again: joined to the question that waits
//! ```
//!
//! A number is given out once. An answer to a number that was not given out yet is refused, so that nothing typed ahead
//! can ever answer a question that was not there. Time is the length since the session's begin.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::allowlist::{Allowlist, Rule};
use super::limits::{
    REQUEST_JOINED, REQUEST_WAIT, REQUEST_WINDOW, REQUESTS_IN_WINDOW, REQUESTS_LISTED,
    REQUESTS_WAITING,
};

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The owner said yes.
    Allowed,
    /// The owner said no.
    Denied,
    /// Nobody answered in time, or the session ended.
    Expired,
}

impl Decision {
    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
        }
    }
}

/// Where a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It waits for the owner.
    Waiting,
    /// It has ended.
    Ended {
        /// How.
        decision: Decision,
        /// What the owner said beside it.
        note: Option<String>,
    },
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What the owner calls it; from 1.
    pub number: u32,
    /// The rules that were asked for, in the agent's order, each once.
    pub hosts: Vec<Rule>,
    /// The agent's reason.
    pub reason: String,
    /// The page that wants it.
    pub page: Option<String>,
    /// When it was asked.
    pub at: Duration,
    /// Where it is.
    pub state: State,
    /// The calls that wait for it.
    tasks: Vec<String>,
}

/// What a question came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It is a new one, for the owner to read.
    New(u32),
    /// The owner has it already.
    Joined(u32),
    /// All of it is allowed already.
    Allowed,
}

/// Why a question does not reach the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskRefusal {
    /// The owner denied one of the hosts in this session.
    AlreadyDenied(Rule),
    /// Too many wait.
    TooManyWaiting,
    /// Too many were asked lately.
    TooManyLately {
        /// When there is room again.
        wait: Duration,
    },
    /// Too many calls wait for the same question.
    TooManyJoined,
}

/// Why an answer answers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The number was not given out yet.
    #[error("there is no request {0} yet; an answer cannot be given ahead")]
    NotYet(u32),
    /// It has ended.
    #[error("request {number} is {} already", .decision.as_str())]
    Ended {
        /// The request.
        number: u32,
        /// How it ended.
        decision: Decision,
    },
    /// It ended so long ago that it is forgotten.
    #[error("request {0} ended long ago")]
    Forgotten(u32),
}

/// A request that has just ended, and whom to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The request as it is now.
    pub request: Request,
    /// The calls to complete.
    pub tasks: Vec<String>,
}

/// All requests of a session.
#[derive(Debug, Default)]
pub struct Approvals {
    last: u32,
    requests: VecDeque<Request>,
    denied: BTreeSet<Rule>,
    asked: VecDeque<Duration>,
}

impl Approvals {
    /// Takes a question. `task` is the call that waits for its end; it is kept unless all is allowed already.
    ///
    /// # Errors
    /// Where a limit is passed or a host was denied before: then nothing has changed.
    pub fn ask(
        &mut self,
        plea: Plea,
        allow: &Allowlist,
        now: Duration,
    ) -> Result<Asked, AskRefusal> {
        let mut hosts: Vec<Rule> = Vec::new();
        for rule in plea.hosts {
            if !hosts.contains(&rule) && !allow.covers(&rule) {
                hosts.push(rule);
            }
        }
        if hosts.is_empty() {
            return Ok(Asked::Allowed);
        }
        if let Some(denied) = hosts.iter().find(|rule| self.is_denied(rule)) {
            return Err(AskRefusal::AlreadyDenied(denied.clone()));
        }
        let wanted: BTreeSet<&Rule> = hosts.iter().collect();
        let same = |held: &&mut Request| {
            held.state == State::Waiting && held.hosts.iter().collect::<BTreeSet<_>>() == wanted
        };
        if let Some(held) = self.requests.iter_mut().find(same) {
            if held.tasks.len() == REQUEST_JOINED {
                return Err(AskRefusal::TooManyJoined);
            }
            held.tasks.push(plea.task);
            return Ok(Asked::Joined(held.number));
        }
        self.admit(now)?;
        self.last += 1;
        self.requests.push_back(Request {
            number: self.last,
            hosts,
            reason: plea.reason,
            page: plea.page,
            at: now,
            state: State::Waiting,
            tasks: vec![plea.task],
        });
        self.forget();
        Ok(Asked::New(self.last))
    }

    /// The owner's word.
    ///
    /// # Errors
    /// Where no such question waits.
    pub fn answer(
        &mut self,
        number: u32,
        decision: Decision,
        note: Option<String>,
    ) -> Result<Settled, AnswerError> {
        if number > self.last || number == 0 {
            return Err(AnswerError::NotYet(number));
        }
        let Some(request) = self.requests.iter_mut().find(|held| held.number == number) else {
            return Err(AnswerError::Forgotten(number));
        };
        if let State::Ended { decision, .. } = request.state {
            return Err(AnswerError::Ended { number, decision });
        }
        if decision == Decision::Denied {
            self.denied.extend(request.hosts.iter().cloned());
        }
        Ok(settle(request, decision, note))
    }

    /// Ends the questions that have waited too long.
    pub fn expire(&mut self, now: Duration) -> Vec<Settled> {
        self.end_where(|request| now.saturating_sub(request.at) >= REQUEST_WAIT)
    }

    /// Ends all that wait.
    pub fn expire_all(&mut self) -> Vec<Settled> {
        self.end_where(|_| true)
    }

    /// When the next question expires.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.waiting()
            .map(|request| request.at + REQUEST_WAIT)
            .min()
    }

    /// The requests that wait, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &Request> {
        self.requests
            .iter()
            .filter(|request| request.state == State::Waiting)
    }

    /// All that are remembered, oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }

    /// A denial holds for what it covers and for what covers it: no wider or narrower spelling asks it again.
    fn is_denied(&self, rule: &Rule) -> bool {
        self.denied
            .iter()
            .any(|denied| denied.covers(rule) || rule.covers(denied))
    }

    fn admit(&mut self, now: Duration) -> Result<(), AskRefusal> {
        if self.waiting().count() >= REQUESTS_WAITING {
            return Err(AskRefusal::TooManyWaiting);
        }
        while self
            .asked
            .front()
            .is_some_and(|at| now.saturating_sub(*at) >= REQUEST_WINDOW)
        {
            self.asked.pop_front();
        }
        if let (true, Some(first)) = (self.asked.len() >= REQUESTS_IN_WINDOW, self.asked.front()) {
            return Err(AskRefusal::TooManyLately {
                wait: (*first + REQUEST_WINDOW).saturating_sub(now),
            });
        }
        self.asked.push_back(now);
        Ok(())
    }

    /// Drops the oldest that have ended, beyond what is listed. Those that wait are fewer than that.
    fn forget(&mut self) {
        while self.requests.len() > REQUESTS_LISTED {
            match self
                .requests
                .iter()
                .position(|request| request.state != State::Waiting)
            {
                Some(at) => drop(self.requests.remove(at)),
                None => return,
            }
        }
    }

    fn end_where(&mut self, over: impl Fn(&Request) -> bool) -> Vec<Settled> {
        self.requests
            .iter_mut()
            .filter(|request| request.state == State::Waiting && over(request))
            .map(|request| settle(request, Decision::Expired, None))
            .collect()
    }
}

/// What an agent asks for, its hosts parsed.
#[derive(Debug, Clone)]
pub struct Plea {
    /// The rules.
    pub hosts: Vec<Rule>,
    /// Why.
    pub reason: String,
    /// For which page.
    pub page: Option<String>,
    /// The call that waits.
    pub task: String,
}

fn settle(request: &mut Request, decision: Decision, note: Option<String>) -> Settled {
    request.state = State::Ended { decision, note };
    let tasks = std::mem::take(&mut request.tasks);
    Settled {
        request: request.clone(),
        tasks,
    }
}

#[cfg(test)]
mod tests;
