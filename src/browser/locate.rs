//! Finding what an action aims at: the element, a point of it that a click would meet, and what lies there instead.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::command::act::{CallFunctionOn, ReleaseObjectGroup, ResolveNode};
use super::command::{Evaluate, RemoteObject};
use super::page::{Page, PageError};
use super::pipe::CallError;

/// What our own world of a page knows how to do.
const LIBRARY: &str = include_str!("input/page.js");
/// Handles of ours in a page; they are released together.
const GROUP: &str = "gpu-browser";

/// What an action aims at.
#[derive(Debug, Clone, PartialEq)]
pub enum Aim {
    /// A point of the viewport, CSS pixels.
    Viewport(f64, f64),
    /// A point of the document, CSS pixels; it is scrolled to where it is not seen.
    Document(f64, f64),
    /// The first element that a selector matches, in the page or a frame of its origin or an open shadow root.
    Selector(String),
    /// A node by its number, from the accessibility tree.
    Node(i64),
}

/// Where an action will be felt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Spot {
    /// CSS pixels of the viewport.
    pub x: f64,
    /// CSS pixels of the viewport.
    pub y: f64,
    /// The element there, in short: `<button id="go"> "Go"`.
    pub on: Option<String>,
}

/// Why an action would miss.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", tag = "miss")]
pub enum Miss {
    /// A selector matches nothing.
    None,
    /// A selector is no selector.
    Selector {
        /// The parser's words.
        says: String,
    },
    /// The node is not in the page any more.
    Stale,
    /// The element has no size, or is not visible.
    Hidden {
        /// The element.
        on: Option<String>,
    },
    /// The point, or the element, cannot be brought into the viewport.
    Outside {
        /// The element.
        on: Option<String>,
    },
    /// Something else would get the click.
    Covered {
        /// The element.
        on: Option<String>,
        /// What lies over it.
        by: Option<String>,
    },
    /// The element is no list of options.
    NoSelect {
        /// The element.
        on: String,
    },
    /// The list has no such option.
    NoOption {
        /// The element.
        on: String,
        /// The option that was asked for.
        says: String,
        /// The first of those that there are.
        options: Vec<String>,
        /// All of those that there are.
        count: usize,
    },
    /// The element, or the option, is disabled.
    Disabled {
        /// The element.
        on: String,
    },
    /// The list takes one option only.
    OneOnly {
        /// The element.
        on: String,
    },
    /// What was waited for did not come.
    Timeout,
}

/// A finding of our library: what was asked for, or why there is none.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Finding<T> {
    Missed(Miss),
    Found(T),
}

impl<T> Finding<T> {
    pub(super) fn into_result(self) -> Result<T, Miss> {
        match self {
            Self::Found(found) => Ok(found),
            Self::Missed(miss) => Err(miss),
        }
    }
}

impl Page {
    /// Finds what an action aims at and a point of it that a click would meet, scrolled into view; waits for it as long
    /// as `patience`. Where `covered` is allowed, what lies over it does not matter.
    pub async fn locate(
        &self,
        aim: &Aim,
        covered: bool,
        patience: Duration,
        deadline: Instant,
    ) -> Result<Result<Spot, Miss>, PageError> {
        let mut asked = match self.target(aim, deadline).await? {
            Ok(target) => target,
            Err(miss) => return Ok(Err(miss)),
        };
        asked["covered"] = covered.into();
        asked["patience"] = millis(patience);
        let finding: Finding<Spot> = self.library("locate", &asked, deadline).await?;
        Ok(finding.into_result())
    }

    /// The target as our library takes it; a node is handed to it first.
    pub(super) async fn target(
        &self,
        aim: &Aim,
        deadline: Instant,
    ) -> Result<Result<Value, Miss>, PageError> {
        Ok(Ok(match aim {
            Aim::Viewport(x, y) => json!({ "at": [x, y] }),
            Aim::Document(x, y) => json!({ "at": [x, y], "document": true }),
            Aim::Selector(selector) => json!({ "selector": selector }),
            Aim::Node(node) => match self.hand_over(*node, deadline).await? {
                true => json!({ "picked": true }),
                false => return Ok(Err(Miss::Stale)),
            },
        }))
    }

    /// Makes a node known to our library; `false` where it is not there any more.
    async fn hand_over(&self, node: i64, deadline: Instant) -> Result<bool, PageError> {
        let Some(handle) = self.handle(node, deadline).await? else {
            return Ok(false);
        };
        self.library::<Value>("ready", &Value::Null, deadline)
            .await?;
        let pick = CallFunctionOn {
            function_declaration: "function () { $gb.picked = this }",
            object_id: &handle,
            return_by_value: true,
        };
        let picked = self.connection.start(Some(&self.session), &pick);
        let picked = timeout_at(deadline, picked)
            .await
            .map_err(|_| PageError::Timeout)?;
        self.release();
        Ok(picked?.exception_details.is_none())
    }

    /// A handle to a node in our world; `None` where it is not there any more.
    pub(super) async fn handle(
        &self,
        node: i64,
        deadline: Instant,
    ) -> Result<Option<String>, PageError> {
        let resolve = ResolveNode {
            backend_node_id: node,
            execution_context_id: self.world().await?,
            object_group: GROUP,
        };
        let resolved = self.connection.start(Some(&self.session), &resolve);
        match timeout_at(deadline, resolved)
            .await
            .map_err(|_| PageError::Timeout)?
        {
            Ok(resolved) => Ok(resolved.object.object_id),
            Err(CallError::Refused { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A handle to what an action aims at, seen or not.
    pub(super) async fn element(
        &self,
        aim: &Aim,
        deadline: Instant,
    ) -> Result<Result<String, Miss>, PageError> {
        let selector = match aim {
            Aim::Selector(selector) => selector,
            Aim::Node(node) => {
                return Ok(self.handle(*node, deadline).await?.ok_or(Miss::Stale));
            }
            Aim::Viewport(..) | Aim::Document(..) => return Ok(Err(Miss::None)),
        };
        let finding: Finding<Value> = self
            .library("exists", &json!({ "selector": selector }), deadline)
            .await?;
        if let Err(miss) = finding.into_result() {
            return Ok(Err(miss));
        }
        let evaluate = Evaluate {
            expression: "$gb.found",
            context_id: Some(self.world().await?),
            return_by_value: false,
            await_promise: false,
            repl_mode: false,
            user_gesture: false,
        };
        let found = self.connection.start(Some(&self.session), &evaluate);
        let RemoteObject { object_id, .. } = timeout_at(deadline, found)
            .await
            .map_err(|_| PageError::Timeout)??
            .result;
        Ok(object_id.ok_or(Miss::None))
    }

    /// Lets go of all handles.
    pub(super) fn release(&self) {
        let release = ReleaseObjectGroup {
            object_group: GROUP,
        };
        self.connection.tell(Some(&self.session), &release);
    }

    /// Calls a function of our library in the document that is shown. A document that goes away under the call is
    /// followed by the next one, where it is called again.
    pub(super) async fn library<T: DeserializeOwned>(
        &self,
        function: &str,
        argument: &Value,
        deadline: Instant,
    ) -> Result<T, PageError> {
        let script = format!("(globalThis.$gb ??= {LIBRARY}).{function}({argument})");
        let value = loop {
            match self.ask(&script, deadline).await {
                Err(PageError::Call(CallError::Refused { .. })) if Instant::now() < deadline => {
                    tokio::task::yield_now().await;
                }
                other => break other?,
            }
        };
        serde_json::from_value(value).map_err(|error| {
            tracing::debug!(function, %error, "the library of a page answered something else");
            let method = "Runtime.evaluate";
            CallError::Malformed { method }.into()
        })
    }
}

/// A time as our library takes it.
pub(super) fn millis(time: Duration) -> Value {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}
