//! Waiting for something of a page.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::evaluate::Outcome;
use super::fold::Life;
use super::locate::{Finding, Miss, millis};
use super::page::{Page, PageError};
use super::pipe::CallError;
use crate::policy::limits::{COMMIT, QUIET};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What is waited for in the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// A selector matches something.
    Selector(String),
    /// A text is to be read.
    Text(String),
    /// A selector matches nothing that is seen.
    Gone(String),
}

/// What became of a navigation that a page began by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved {
    /// The page is where it was, or moved inside its document.
    Stayed,
    /// It shows another document.
    Arrived,
    /// It has asked for this address, which has not answered yet.
    UnderWay(String),
}

impl Page {
    /// Waits for a sign in the document that is shown, or in the next one; `false` where the deadline came first.
    pub async fn until_sign(
        &self,
        sign: &Sign,
        deadline: Instant,
    ) -> Result<Result<(), Miss>, PageError> {
        let (name, wanted) = match sign {
            Sign::Selector(selector) => ("selector", selector),
            Sign::Text(text) => ("text", text),
            Sign::Gone(selector) => ("gone", selector),
        };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let asked = json!({ name: wanted, "patience": millis(left) });
            // Our library gives up at the deadline by itself; a page that does not answer even then is hung.
            let late = deadline + Duration::from_millis(500);
            match self.library::<Finding<Value>>("until", &asked, late).await {
                Err(PageError::Call(CallError::Refused { .. })) if Instant::now() < deadline => {}
                other => return Ok(other?.into_result().map(drop)),
            }
        }
    }

    /// Waits until a script of the agent's gives something true; the last thing that it gave instead, where it did not.
    pub async fn until_true(
        &self,
        js: &str,
        deadline: Instant,
    ) -> Result<Result<(), Outcome>, PageError> {
        loop {
            let outcome = self.evaluate(js, &Value::Null, deadline).await;
            let outcome = match outcome {
                // The document went away under the script.
                Err(PageError::Call(CallError::Refused { .. })) if Instant::now() < deadline => {
                    Outcome::TimedOut
                }
                other => other?,
            };
            match &outcome {
                Outcome::Value { value, .. } if is_true(value) => return Ok(Ok(())),
                Outcome::Syntax { .. } => return Ok(Err(outcome)),
                _ => {}
            }
            if timeout_at(deadline, sleep(LOOK)).await.is_err() || Instant::now() >= deadline {
                return Ok(Err(outcome));
            }
        }
    }

    /// Waits until no request has been under way for [`QUIET`]; `false` where the deadline came first.
    pub async fn until_quiet(&self, deadline: Instant) -> Result<bool, PageError> {
        while !self.observed.activity.is_quiet(QUIET) {
            match self.life() {
                Life::Alive => {}
                Life::Crashed => return Err(CallError::Crashed.into()),
                Life::Closed => return Err(CallError::Detached.into()),
            }
            if timeout_at(deadline, sleep(LOOK)).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits briefly for the document that the page has asked to go to since it showed `loader`, and for its beginning.
    pub async fn until_arrived(&self, loader: &str, deadline: Instant) -> Moved {
        let until = deadline.min(Instant::now() + COMMIT);
        let _ = timeout_at(until, self.observed.navigated()).await;
        let now = self.observed.document().loader;
        match self.observed.activity.navigation() {
            Some(url) => Moved::UnderWay(url),
            None if now == loader => Moved::Stayed,
            None => {
                let parsed = self.observed.reached(&now, "DOMContentLoaded");
                let _ = timeout_at(until, parsed).await;
                Moved::Arrived
            }
        }
    }
}

/// What JavaScript takes for true, of a value in JSON. Numbers without JSON come as text.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(text.as_str(), "" | "NaN" | "-0" | "0n"),
        Value::Array(_) | Value::Object(_) => true,
    }
}
