//! The agent's own scripts in a page.
//!
//! | what the agent sends | how it runs |
//! |---|---|
//! | an expression, a function, an object literal | `(async args => { const v = (…); … })(args)`; a function is called with `args` |
//! | statements with `return` | as the body of an `async` function of `args` |
//! | statements without | as the console runs them: top-level `await`, the last statement's value |
//!
//! Which of the three it is, V8's parser decides, before anything runs.

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::command::{
    CompileScript, Evaluate, Evaluated, ExceptionDetails, RemoteObject, TerminateExecution,
};
use super::page::{Page, PageError};
use super::pipe::CallError;

/// UTF-16 units that a text value is cut to inside the page, so that a huge one never crosses the wire: above the most
/// that an agent can ask for.
const TEXT_UNITS: usize = 4 * 1024 * 1024;

/// What a script came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A value; `kind` is JavaScript's `typeof`.
    Value {
        /// The value as JSON.
        value: Value,
        /// `undefined`, `number`, `object`, …
        kind: String,
        /// Characters of a text that was cut inside the page.
        cut_from: Option<u64>,
    },
    /// It threw: the message.
    Threw(String),
    /// It does not parse.
    Syntax {
        /// The parser's message.
        message: String,
        /// The line of the agent's script, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
    },
    /// The value has no JSON: a cycle, or nested too deeply.
    NotSerializable(String),
    /// The value is larger than what the wire carries.
    TooLarge,
    /// Its time was over; the script was stopped.
    TimedOut,
}

impl Page {
    /// Runs a script of the agent's in the page's own world.
    pub async fn evaluate(
        &self,
        js: &str,
        args: &Value,
        deadline: Instant,
    ) -> Result<Outcome, PageError> {
        match timeout_at(deadline, self.run(js, args)).await {
            Ok(outcome) => outcome.map_err(PageError::from),
            Err(_) => {
                // Frees a page that loops; the next call finds it well.
                self.connection
                    .tell(Some(&self.session), &TerminateExecution {});
                Ok(Outcome::TimedOut)
            }
        }
    }

    async fn run(&self, js: &str, args: &Value) -> Result<Outcome, CallError> {
        let as_expression = expression(js, args);
        if self.syntax_error(&as_expression).await?.is_none() {
            return self.take(&as_expression, false).await;
        }
        match self.syntax_error(js).await? {
            Some(error) if returns_or_awaits(&error) => {
                let as_body = body(js, args);
                match self.syntax_error(&as_body).await? {
                    // Both `return` and something that no function may hold: the plain script's error says more.
                    Some(_) if !says(&error, "Illegal return") => self.take(js, true).await,
                    Some(_) => Ok(syntax(&error)),
                    None if says(&error, "Illegal return") => self.take(&as_body, false).await,
                    None => self.take_awaiting(js, &as_body).await,
                }
            }
            Some(error) => Ok(syntax(&error)),
            None if *args != Value::Null => self.take(&body(js, args), false).await,
            None => self.take(js, true).await,
        }
    }

    async fn syntax_error(&self, script: &str) -> Result<Option<ExceptionDetails>, CallError> {
        let compile = CompileScript {
            expression: script,
            source_url: "",
            persist_script: false,
        };
        Ok(self
            .connection
            .start(Some(&self.session), &compile)
            .await?
            .exception_details)
    }

    /// Runs a script with a top-level `await`. Behind it the parser does not get as far as a `return`; where there is
    /// one, the console refuses the script before anything of it has run, and it runs as a body.
    async fn take_awaiting(&self, js: &str, as_body: &str) -> Result<Outcome, CallError> {
        match self.send(js, true).await {
            Ok(evaluated) if is_refused_return(&evaluated) => self.take(as_body, false).await,
            sent => received(sent),
        }
    }

    async fn take(&self, script: &str, repl_mode: bool) -> Result<Outcome, CallError> {
        received(self.send(script, repl_mode).await)
    }

    async fn send(&self, script: &str, repl_mode: bool) -> Result<Evaluated, CallError> {
        let evaluate = Evaluate {
            expression: script,
            context_id: None,
            return_by_value: true,
            await_promise: true,
            repl_mode,
            user_gesture: true,
        };
        self.connection.start(Some(&self.session), &evaluate).await
    }
}

fn received(sent: Result<Evaluated, CallError>) -> Result<Outcome, CallError> {
    match sent {
        Ok(evaluated) => Ok(outcome(evaluated)),
        Err(CallError::TooLarge { .. }) => Ok(Outcome::TooLarge),
        Err(CallError::Refused { message, .. }) if message.contains("reference chain") => {
            Ok(Outcome::NotSerializable(
                "the value refers to itself, or is nested too deeply".to_owned(),
            ))
        }
        Err(CallError::Refused { message, .. }) if message.contains("could not be") => {
            Ok(Outcome::NotSerializable(message))
        }
        Err(error) => Err(error),
    }
}

/// Whether the parser refused a `return`. An error that a script threw itself, with the same words, has a stack.
fn is_refused_return(evaluated: &Evaluated) -> bool {
    let details = evaluated.exception_details.as_ref();
    let thrown = details.and_then(|details| details.exception.as_ref()?.description.as_deref());
    thrown == Some("SyntaxError: Illegal return statement")
}

/// What stands before the agent's script in each form, on a line of its own; its columns are not the agent's.
const EXPRESSION_FRONT: &str = "(async args => { const $evaluated = await (\n";
const BODY_FRONT: &str = "(async args => {\n";

/// A text that is cut carries its length in front, behind a NUL that no JSON text of ours begins with.
fn finish() -> String {
    format!(
        "typeof value === 'string' && value.length > {TEXT_UNITS} ? \
         {{'\\0cut': value.length, text: value.slice(0, {TEXT_UNITS})}} : value"
    )
}

fn expression(js: &str, args: &Value) -> String {
    let js = js.trim_end().trim_end_matches(';');
    let finish = finish();
    format!(
        "{EXPRESSION_FRONT}{js}\n); \
         return (value => {finish})(typeof $evaluated === 'function' ? await $evaluated(args) : $evaluated) }})({args})"
    )
}

fn body(js: &str, args: &Value) -> String {
    format!("{BODY_FRONT}{js}\n}})({args}).then(value => {})", finish())
}

fn says(error: &ExceptionDetails, words: &str) -> bool {
    let description = error
        .exception
        .as_ref()
        .and_then(|thrown| thrown.description.as_deref());
    description.unwrap_or(&error.text).contains(words)
}

fn returns_or_awaits(error: &ExceptionDetails) -> bool {
    says(error, "Illegal return") || says(error, "await is only valid")
}

fn outcome(evaluated: Evaluated) -> Outcome {
    match evaluated.exception_details {
        Some(details) => Outcome::Threw(thrown(&details)),
        None => value_of(evaluated.result),
    }
}

fn syntax(details: &ExceptionDetails) -> Outcome {
    let message = thrown(details);
    Outcome::Syntax {
        message,
        line: details.line_number + 1,
        column: details.column_number + 1,
    }
}

fn value_of(result: RemoteObject) -> Outcome {
    if let Some(Value::Object(members)) = &result.value
        && let (Some(length), Some(text)) = (
            members.get("\0cut").and_then(Value::as_u64),
            members.get("text"),
        )
    {
        return Outcome::Value {
            value: text.clone(),
            kind: "string".to_owned(),
            cut_from: Some(length),
        };
    }
    let value = match result.unserializable_value {
        // NaN, Infinity, -0 and big integers have no JSON; their text has.
        Some(text) => Value::from(text),
        None => result.value.unwrap_or_default(),
    };
    Outcome::Value {
        value,
        kind: result.kind,
        cut_from: None,
    }
}

/// What was thrown, without its stack: the stack's lines count what stands around the agent's script.
fn thrown(details: &ExceptionDetails) -> String {
    match &details.exception {
        Some(RemoteObject {
            description: Some(description),
            ..
        }) => {
            let message = description
                .lines()
                .take_while(|line| !line.trim_start().starts_with("at "));
            message.collect::<Vec<_>>().join("\n")
        }
        Some(RemoteObject {
            value: Some(value), ..
        }) => format!("{} {value}", details.text),
        Some(RemoteObject { kind, .. }) => format!("{} {kind}", details.text),
        None => details.text.clone(),
    }
}
