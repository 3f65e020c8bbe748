//! Asynchronous calls that have begun: pending, or finished and not yet fetched.

use std::collections::HashMap;

use crate::policy::limits;
use crate::relay::frames::body::Answer;

/// A session's tasks. Finished ones count until they are fetched.
#[derive(Default)]
pub(super) struct Tasks(HashMap<String, Option<Answer>>);

/// What a poll finds.
pub(super) enum Polled {
    Unknown,
    Pending,
    /// Handed out once, and gone.
    Finished(Answer),
}

impl Tasks {
    /// Begins a task; an id that is in use begins again. `false` where there are too many.
    pub(super) fn begin(&mut self, id: &str) -> bool {
        let has_room = self.0.len() < limits::PENDING_TASKS || self.0.contains_key(id);
        if has_room {
            self.0.insert(id.to_owned(), None);
        }
        has_room
    }

    /// Stores the answer of a task that was begun. Whatever is wrong with it drops it in silence.
    pub(super) fn complete(&mut self, id: &str, answer: Answer) {
        let well_formed = answer.status.is_some() && answer.fits_a_task();
        if let Some(task) = self.0.get_mut(id).filter(|_| well_formed) {
            // A slice would keep its whole frame alive for as long as nobody polls.
            *task = Some(answer.detached());
        }
    }

    /// The state of a task; a finished one is taken.
    pub(super) fn poll(&mut self, id: &str) -> Polled {
        match self.0.get_mut(id).map(Option::take) {
            None => Polled::Unknown,
            Some(None) => Polled::Pending,
            Some(Some(answer)) => {
                self.0.remove(id);
                Polled::Finished(answer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::frames::body::AnswerBody;

    fn answer(status: Option<u16>, bytes: usize) -> Answer {
        let json = format!("\"{}\"", "x".repeat(bytes - 2));
        Answer {
            status,
            body: AnswerBody::Json(json.into()),
        }
    }

    #[test]
    fn a_finished_task_is_handed_out_once() {
        let mut tasks = Tasks::default();
        assert!(tasks.begin("t") && matches!(tasks.poll("t"), Polled::Pending));
        tasks.complete("t", answer(Some(200), 9));
        tasks.complete("t", answer(Some(201), 9));
        assert!(matches!(
            tasks.poll("t"),
            Polled::Finished(Answer {
                status: Some(201),
                ..
            })
        ));
        assert!(matches!(tasks.poll("t"), Polled::Unknown));
    }

    #[test]
    fn an_answer_that_is_wrong_leaves_the_task_pending() {
        let mut tasks = Tasks::default();
        assert!(tasks.begin("t"));
        tasks.complete("t", answer(None, 9));
        tasks.complete("t", answer(Some(200), limits::TASK_RESULT + 1));
        tasks.complete("other", answer(Some(200), 9));
        assert!(
            matches!(tasks.poll("t"), Polled::Pending)
                && matches!(tasks.poll("other"), Polled::Unknown)
        );
        tasks.complete("t", answer(Some(200), limits::TASK_RESULT));
        assert!(matches!(tasks.poll("t"), Polled::Finished(_)));
    }

    #[test]
    fn finished_tasks_count_until_they_are_fetched_and_a_live_id_begins_again() {
        let mut tasks = Tasks::default();
        assert!((0..limits::PENDING_TASKS).all(|n| tasks.begin(&n.to_string())));
        tasks.complete("0", answer(Some(200), 9));
        assert!(!tasks.begin("new") && tasks.begin("0"));
        assert!(matches!(tasks.poll("0"), Polled::Pending));
        tasks.complete("0", answer(Some(200), 9));
        assert!(matches!(tasks.poll("0"), Polled::Finished(_)) && tasks.begin("new"));
    }
}
