//! The requests that the owner has read. An answer counts only for one of these: what was not on the screen when the line was
//! begun cannot be what was meant.

use std::collections::BTreeMap;
use std::time::Instant;

/// A request that is on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) hosts: Vec<String>,
    pub(super) reason: String,
    pub(super) page: Option<String>,
    /// When it was shown.
    shown: Instant,
}

/// The requests that wait, by number.
#[derive(Debug, Default)]
pub(super) struct Questions(BTreeMap<u32, Question>);

impl Questions {
    /// A request has just been shown.
    pub(super) fn shown(
        &mut self,
        number: u32,
        hosts: &[String],
        reason: &str,
        page: Option<&str>,
    ) {
        let question = Question {
            hosts: hosts.to_vec(),
            reason: reason.to_owned(),
            page: page.map(str::to_owned),
            shown: Instant::now(),
        };
        self.0.insert(number, question);
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, number: u32) {
        self.0.remove(&number);
    }

    /// Those that wait, oldest first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, &Question)> {
        self.0.iter().map(|(number, question)| (*number, question))
    }

    /// The request that a line may answer; `begun` is when its typing began, where that is known.
    ///
    /// # Errors
    /// Says why it may not.
    pub(super) fn answerable(
        &self,
        number: u32,
        begun: Option<Instant>,
    ) -> Result<&Question, String> {
        let Some(question) = self.0.get(&number) else {
            return Err(format!(
                "no request {number} waits; `requests` lists those that do (an answer cannot be given ahead)"
            ));
        };
        if begun.is_some_and(|begun| begun < question.shown) {
            return Err(format!(
                "request {number} came while you were typing; read it, then type the answer again"
            ));
        }
        Ok(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_can_be_answered() {
        let before = Instant::now();
        let mut questions = Questions::default();
        assert!(questions.answerable(1, None).unwrap_err().contains("ahead"));
        questions.shown(1, &["a.example".into()], "r", None);
        assert!(
            questions
                .answerable(1, Some(before))
                .unwrap_err()
                .contains("while you were typing")
        );
        assert!(questions.answerable(1, Some(Instant::now())).is_ok());
        assert!(questions.answerable(1, None).is_ok());
        assert!(questions.answerable(2, None).is_err());
        questions.ended(1);
        assert!(questions.answerable(1, None).is_err());
    }
}
