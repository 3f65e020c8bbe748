//! `POST /eval`: a script of the agent's in a page.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::browser::evaluate::Outcome as Evaluated;
use crate::browser::fold::short;
use crate::policy::limits::{EVAL_TIMEOUT, EVAL_VALUE, EVAL_VALUE_MOST, LONGEST_TIMEOUT};
use crate::server::answer::{Answer, Code, Refused};
use crate::server::arguments::parse;
use crate::server::pages::Opened;
use crate::server::session::{Outcome, Session};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    page: String,
    js: String,
    #[serde(default)]
    args: Value,
    timeout_ms: Option<u64>,
    max_bytes: Option<usize>,
}

/// Runs the script and hands its value out, cut where it is too large.
pub(super) async fn post(session: &Session, body: &str) -> Outcome {
    let Arguments {
        page,
        js,
        args,
        timeout_ms,
        max_bytes,
    } = parse(body)?;
    let within = time("timeout_ms", timeout_ms, EVAL_TIMEOUT)?;
    let most = max_bytes.unwrap_or(EVAL_VALUE);
    if !(1..=EVAL_VALUE_MOST).contains(&most) {
        return Err(Refused::new(
            Code::BadArguments,
            format!("`max_bytes` is {most}"),
            format!("ask for 1 to {EVAL_VALUE_MOST}"),
        ));
    }
    let opened = session.pages.alive(&page)?;
    let began = Instant::now();
    let evaluated = opened
        .page
        .evaluate(&js, &args, tokio::time::Instant::now() + within)
        .await;
    let evaluated = evaluated.map_err(|error| session.pages.refused(&page, error))?;
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    match evaluated {
        Evaluated::Value {
            value,
            kind,
            cut_from,
        } => Ok(Answer::Json(receipt(value, &kind, cut_from, most, ms))),
        Evaluated::Threw(message) => Err(Refused::new(
            Code::EvalThrew,
            short(&message),
            "mend the script",
        )),
        Evaluated::Syntax {
            message,
            line,
            column,
        } => {
            let refused = Refused::new(
                Code::EvalThrew,
                short(&message),
                "the script does not parse: mend it at `line` and `column`",
            );
            Err(refused.with("line", line).with("column", column))
        }
        Evaluated::NotSerializable(why) => Err(Refused::new(
            Code::EvalThrew,
            why,
            "return plain data: numbers, texts, lists, objects",
        )),
        Evaluated::TooLarge => Err(Refused::new(
            Code::EvalThrew,
            "the value is too large",
            "return less, or put it together in parts",
        )),
        Evaluated::TimedOut => Err(timed_out(session, &opened, within).await),
    }
}

/// A time that an agent asks for.
pub(super) fn time(
    field: &str,
    asked: Option<u64>,
    default: Duration,
) -> Result<Duration, Refused> {
    let most = u64::try_from(LONGEST_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    match asked {
        None => Ok(default),
        Some(ms) if (1..=most).contains(&ms) => Ok(Duration::from_millis(ms)),
        Some(ms) => Err(Refused::new(
            Code::BadArguments,
            format!("`{field}` is {ms}"),
            format!("ask for 1 to {most} milliseconds"),
        )),
    }
}

/// A page whose scripts hang is killed; one that only took long is not.
pub(super) async fn timed_out(session: &Session, opened: &Opened, within: Duration) -> Refused {
    if opened.page.is_responsive().await {
        let message = format!(
            "it was not done after {} ms, and was stopped",
            within.as_millis()
        );
        return Refused::new(
            Code::TimedOut,
            message,
            "raise `timeout_ms`, or do less at once",
        );
    }
    hung(session, opened).await
}

/// Kills a page that hangs, and says so.
pub(super) async fn hung(session: &Session, opened: &Opened) -> Refused {
    opened.page.kill().await;
    session.pages.close(opened).await;
    let message = format!(
        "the scripts of {} ran without an end; it was killed",
        opened.id
    );
    Refused::new(
        Code::PageHung,
        message,
        "mend the loop, then open the page again with `POST /page`",
    )
}

/// Small values come as they are; a larger one as the beginning of its text, with its size.
fn receipt(value: Value, kind: &str, cut_from: Option<u64>, most: usize, ms: u64) -> Value {
    let size = value.to_string().len();
    let mut reply = if size <= most && cut_from.is_none() {
        json!({ "value": value, "ms": ms })
    } else {
        let text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let cut = &text[..text.floor_char_boundary(most.min(text.len()))];
        json!({ "value": cut, "truncated": true, "bytes": cut_from.unwrap_or(size as u64), "ms": ms })
    };
    if matches!(kind, "undefined" | "bigint" | "symbol" | "function") {
        reply["type"] = kind.into();
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_value_is_cut_between_characters_and_says_so() {
        let reply = receipt(Value::from("ü".repeat(100)), "string", None, 11, 1);
        assert_eq!(
            reply,
            json!({"value": "üüüüü", "truncated": true, "bytes": 202, "ms": 1})
        );
        let reply = receipt(json!([1, 2, 3]), "object", None, 4, 1);
        assert_eq!(
            reply,
            json!({"value": "[1,2", "truncated": true, "bytes": 7, "ms": 1})
        );
        assert_eq!(
            receipt(Value::Null, "undefined", None, 9, 0),
            json!({"value": null, "ms": 0, "type": "undefined"})
        );
    }
}
