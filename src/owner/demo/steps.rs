//! The demo's steps, each told with its time.

use std::time::Instant;

use super::agent::AgentError;
use crate::owner::screen::Screen;
use crate::owner::{Failure, shown};

/// Why a step did not lead to the next.
#[derive(Debug, thiserror::Error)]
pub(super) enum Halt {
    /// Nobody reads the steps.
    #[error(transparent)]
    Output(#[from] Failure),
    /// A call failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The picture could not be kept.
    #[error("cannot write it: {0}")]
    Write(std::io::Error),
    /// It is not as it must be.
    #[error("{0}")]
    Wrong(String),
}

impl Halt {
    /// What is not proven for this reason; a screen that is gone ends the demo instead.
    pub(super) fn unproven(self) -> Result<String, Failure> {
        match self {
            Self::Output(failure) => Err(failure),
            other => Ok(shown::text(&other.to_string())),
        }
    }
}

/// Tells steps.
pub(super) struct Steps<'a> {
    screen: &'a mut Screen,
}

impl<'a> Steps<'a> {
    /// On a screen.
    pub(super) fn new(screen: &'a mut Screen) -> Self {
        Self { screen }
    }

    /// One line.
    pub(super) async fn say(&mut self, line: &str) -> Result<(), Failure> {
        self.screen.line(line).await
    }

    /// Does a step and tells what it was, how long it took, and whether it failed.
    pub(super) async fn step<T, E>(
        &mut self,
        what: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Halt>
    where
        Halt: From<E>,
    {
        let began = Instant::now();
        let outcome = work.await;
        let failed = if outcome.is_err() { "FAILED: " } else { "" };
        let ms = began.elapsed().as_millis();
        self.say(&format!("{ms:>6} ms  {failed}{what}")).await?;
        Ok(outcome?)
    }
}
