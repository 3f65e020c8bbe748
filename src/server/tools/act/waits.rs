//! The waits of a list of actions.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Hand;
use super::arguments::Condition;
use super::perform::Proof;
use super::target::missed;
use crate::browser::evaluate::Outcome as Evaluated;
use crate::browser::fold::short;
use crate::browser::locate::Miss;
use crate::browser::wait::Sign;
use crate::server::answer::{Code, Refused};

impl Hand<'_> {
    /// Waits for what is asked, up to its own time and the call's.
    pub(super) async fn wait(
        &self,
        condition: &Condition,
        within: Duration,
    ) -> Result<Proof, Refused> {
        let deadline = self.deadline.min(Instant::now() + within);
        let page = &self.opened.page;
        let late = |what: &str| missed(what, Miss::Timeout);
        match condition {
            Condition::Time(pause) => {
                let until = Instant::now() + *pause;
                sleep_until(until.min(self.deadline)).await;
                if until > self.deadline {
                    return Err(late("the end of the wait"));
                }
            }
            Condition::Sign(sign) => {
                let (Sign::Selector(what) | Sign::Text(what) | Sign::Gone(what)) = sign;
                let come = self.ok(page.until_sign(sign, deadline).await).await?;
                come.map_err(|miss| missed(&format!("{:?}", short(what)), miss))?;
            }
            Condition::True(js) => {
                if let Err(last) = self.ok(page.until_true(js, deadline).await).await? {
                    return Err(self.untrue(last, within).await);
                }
            }
            Condition::Quiet => {
                if !self.ok(page.until_quiet(deadline).await).await? {
                    return Err(late("a quiet network"));
                }
            }
        }
        Ok(Proof::Own)
    }

    /// Why a condition in JavaScript did not become true.
    async fn untrue(&self, last: Evaluated, within: Duration) -> Refused {
        let late = |said: String| {
            Refused::new(
                Code::TimedOut,
                format!("the condition did not become true in time; {said}"),
                "look at the page, then mend the condition or raise `timeout_ms`",
            )
        };
        match last {
            Evaluated::Syntax { message, .. } => Refused::new(
                Code::EvalThrew,
                short(&message),
                "the condition does not parse: mend it",
            ),
            Evaluated::TimedOut => self.overdue(within).await,
            Evaluated::Threw(message) => late(format!("it last threw {:?}", short(&message))),
            Evaluated::Value { value, .. } => {
                late(format!("it was last {}", short(&value.to_string())))
            }
            Evaluated::NotSerializable(_) | Evaluated::TooLarge => {
                late("its value has no JSON; give true or false".to_owned())
            }
        }
    }
}
