//! The answers of tasks, kept until the relay has surely had them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::policy::limits;
use crate::relay::frames::Frame;

/// The last answers. A relay confirms none of them, and takes each twice without harm: so all are sent again after every
/// reconnect, and the oldest goes when there are too many.
#[derive(Default)]
pub(super) struct KeptAnswers {
    answers: Mutex<Answers>,
    added: Notify,
}

#[derive(Default)]
struct Answers {
    kept: VecDeque<Kept>,
    /// Counts what was added, so that a newer answer of a task is not taken for an older one that was sent.
    added: u64,
}

struct Kept {
    serial: u64,
    task_id: String,
    frame: Frame,
    /// Written to the present connection.
    sent: bool,
}

impl KeptAnswers {
    /// Keeps an answer, in the place of an older one of the same task.
    pub(super) fn add(&self, task_id: &str, frame: Frame) {
        let mut answers = self.lock();
        answers.added += 1;
        let serial = answers.added;
        let kept = &mut answers.kept;
        kept.retain(|kept| kept.task_id != task_id);
        if kept.len() >= limits::KEPT_TASK_ANSWERS {
            kept.pop_front();
        }
        kept.push_back(Kept {
            serial,
            task_id: task_id.to_owned(),
            frame,
            sent: false,
        });
        drop(answers);
        self.added.notify_one();
    }

    /// A new connection has had none of them.
    pub(super) fn all_again(&self) {
        self.lock()
            .kept
            .iter_mut()
            .for_each(|kept| kept.sent = false);
    }

    /// A new session knows none of the tasks.
    pub(super) fn clear(&self) {
        self.lock().kept.clear();
    }

    /// Waits for one that has not been sent. It counts as sent only after [`KeptAnswers::sent`] with its serial number,
    /// so that a cancelled wait loses nothing.
    pub(super) async fn unsent(&self) -> (u64, Frame) {
        loop {
            let added = self.added.notified();
            if let Some(kept) = self.lock().kept.iter().find(|kept| !kept.sent) {
                return (kept.serial, kept.frame.clone());
            }
            added.await;
        }
    }

    /// Notes that an answer was written.
    pub(super) fn sent(&self, serial: u64) {
        let mut answers = self.lock();
        if let Some(kept) = answers.kept.iter_mut().find(|kept| kept.serial == serial) {
            kept.sent = true;
        }
    }

    /// The list is whole after every step.
    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::frames::app;
    use crate::relay::frames::body::{Body, TaskAnswer};

    fn frame(task_id: &str) -> Frame {
        app::task_complete(&TaskAnswer {
            task_id: task_id.into(),
            status: 200,
            body: Body::None,
        })
        .unwrap()
    }

    /// The serial numbers of all that is unsent.
    async fn drain(kept: &KeptAnswers) -> Vec<u64> {
        let mut serials = Vec::new();
        let moment = std::time::Duration::from_millis(1);
        while let Ok((serial, _)) = tokio::time::timeout(moment, kept.unsent()).await {
            kept.sent(serial);
            serials.push(serial);
        }
        serials
    }

    #[tokio::test(start_paused = true)]
    async fn every_answer_is_sent_again_on_a_new_connection() {
        let kept = KeptAnswers::default();
        kept.add("a", frame("a"));
        kept.add("b", frame("b"));
        assert_eq!(drain(&kept).await, [1, 2]);
        assert!(drain(&kept).await.is_empty());
        kept.all_again();
        kept.add("a", frame("a"));
        assert_eq!(drain(&kept).await, [2, 3]);
        kept.clear();
        kept.all_again();
        assert!(drain(&kept).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_while_an_older_one_was_sent_is_sent_too() {
        let kept = KeptAnswers::default();
        kept.add("a", frame("a"));
        let (older, _) = kept.unsent().await;
        kept.add("a", frame("a"));
        kept.sent(older);
        assert_eq!(drain(&kept).await, [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_hundred_are_kept() {
        let kept = KeptAnswers::default();
        for number in 0..=limits::KEPT_TASK_ANSWERS {
            kept.add(&number.to_string(), frame("x"));
        }
        let serials = drain(&kept).await;
        assert_eq!((serials.len(), serials[0]), (limits::KEPT_TASK_ANSWERS, 2));
    }
}
