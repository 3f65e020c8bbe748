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
    answers: Mutex<VecDeque<Kept>>,
    added: Notify,
}

struct Kept {
    task_id: String,
    frame: Frame,
    /// Written to the present connection.
    sent: bool,
}

impl KeptAnswers {
    /// Keeps an answer, in the place of an older one of the same task.
    pub(super) fn add(&self, task_id: &str, frame: Frame) {
        let mut answers = self.lock();
        answers.retain(|kept| kept.task_id != task_id);
        if answers.len() >= limits::KEPT_TASK_ANSWERS {
            answers.pop_front();
        }
        answers.push_back(Kept {
            task_id: task_id.to_owned(),
            frame,
            sent: false,
        });
        drop(answers);
        self.added.notify_one();
    }

    /// A new connection has had none of them.
    pub(super) fn all_again(&self) {
        self.lock().iter_mut().for_each(|kept| kept.sent = false);
    }

    /// A new session knows none of the tasks.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Waits for one that has not been sent. It counts as sent only after [`KeptAnswers::sent`], so that a cancelled
    /// wait loses nothing.
    pub(super) async fn unsent(&self) -> (String, Frame) {
        loop {
            let added = self.added.notified();
            if let Some(kept) = self.lock().iter().find(|kept| !kept.sent) {
                return (kept.task_id.clone(), kept.frame.clone());
            }
            added.await;
        }
    }

    /// Notes that a task's answer was written.
    pub(super) fn sent(&self, task_id: &str) {
        if let Some(kept) = self.lock().iter_mut().find(|kept| kept.task_id == task_id) {
            kept.sent = true;
        }
    }

    /// The list is whole after every step.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
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

    async fn drain(kept: &KeptAnswers) -> Vec<String> {
        let mut ids = Vec::new();
        while let Ok((id, _)) =
            tokio::time::timeout(std::time::Duration::from_millis(1), kept.unsent()).await
        {
            kept.sent(&id);
            ids.push(id);
        }
        ids
    }

    #[tokio::test(start_paused = true)]
    async fn every_answer_is_sent_again_on_a_new_connection() {
        let kept = KeptAnswers::default();
        kept.add("a", frame("a"));
        kept.add("b", frame("b"));
        assert_eq!(drain(&kept).await, ["a", "b"]);
        assert!(drain(&kept).await.is_empty());
        kept.all_again();
        kept.add("a", frame("a"));
        assert_eq!(drain(&kept).await, ["b", "a"]);
        kept.clear();
        kept.all_again();
        assert!(drain(&kept).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_hundred_are_kept() {
        let kept = KeptAnswers::default();
        for number in 0..=limits::KEPT_TASK_ANSWERS {
            kept.add(&number.to_string(), frame("x"));
        }
        let ids = drain(&kept).await;
        assert_eq!(
            (ids.len(), ids[0].as_str()),
            (limits::KEPT_TASK_ANSWERS, "1")
        );
    }
}
