//! A list of actions as an agent writes it: all of it is parsed, and all of it is right, before any of it is done.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::eval::time;
use super::super::screenshot;
use super::target::{Target, bad};
use crate::browser::input::Button;
use crate::browser::input::keys::{Modifiers, Stroke};
use crate::browser::wait::Sign;
use crate::policy::limits::{ACT_TIMEOUT, ACTIONS};
use crate::proxy::uploads::UploadStore;
use crate::proxy::uploads::store::UploadPath;
use crate::server::answer::{Code, Refused};
use crate::server::arguments::{nearest, parse};

/// A whole call, ready to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) page: String,
    pub(super) steps: Vec<Step>,
    pub(super) within: Duration,
}

/// One action, and its fields as they came, for the log.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) action: Action,
    pub(super) fields: Map<String, Value>,
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum Action {
    Click {
        target: Target,
        button: Button,
        count: u32,
        modifiers: Modifiers,
        patience: Duration,
    },
    Hover {
        target: Target,
        modifiers: Modifiers,
        patience: Duration,
    },
    Drag {
        from: Target,
        to: Target,
        steps: u32,
        button: Button,
        modifiers: Modifiers,
        patience: Duration,
    },
    Scroll {
        target: Option<Target>,
        by: Option<[f64; 2]>,
        norm: bool,
        modifiers: Modifiers,
        patience: Duration,
    },
    Type {
        target: Option<Target>,
        text: String,
        clear: bool,
        patience: Duration,
    },
    Key {
        target: Option<Target>,
        stroke: Stroke,
        count: u32,
        hold: Duration,
        patience: Duration,
    },
    Select {
        target: Target,
        wanted: Vec<Value>,
        patience: Duration,
    },
    Upload {
        target: Target,
        paths: Vec<UploadPath>,
    },
    Wait {
        condition: Condition,
        within: Duration,
    },
    Screenshot(Box<screenshot::Asked>),
}

/// What a `wait` waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Time(Duration),
    Sign(Sign),
    True(String),
    Quiet,
}

/// The actions in the order in which the schema lists them.
pub(in crate::server::tools) const NAMES: &[&str] = &[
    "click",
    "hover",
    "drag",
    "scroll",
    "type",
    "key",
    "select",
    "upload",
    "wait",
    "screenshot",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    page: String,
    actions: Vec<Map<String, Value>>,
    timeout_ms: Option<u64>,
}

impl Plan {
    /// Parses the whole list.
    pub(super) fn parse(uploads: &UploadStore, body: &str) -> Result<Self, Refused> {
        let body: Body = parse(body)?;
        let within = time("timeout_ms", body.timeout_ms, ACT_TIMEOUT)?;
        if !(1..=ACTIONS).contains(&body.actions.len()) {
            let message = format!("`actions` has {} entries", body.actions.len());
            let fix = format!("give 1 to {ACTIONS} actions");
            return Err(Refused::new(Code::BadArguments, message, fix));
        }
        let steps = body.actions.into_iter().enumerate();
        let steps = steps.map(|(index, fields)| {
            let place = format!("actions[{index}]");
            Step::parse(uploads, &body.page, &place, fields)
        });
        Ok(Self {
            steps: steps.collect::<Result<_, _>>()?,
            page: body.page,
            within,
        })
    }
}

impl Step {
    fn parse(
        uploads: &UploadStore,
        page: &str,
        place: &str,
        mut fields: Map<String, Value>,
    ) -> Result<Self, Refused> {
        let shown = fields.clone();
        let known = || format!("actions: {}", NAMES.join(", "));
        let Some(Value::String(asked)) = fields.remove("action") else {
            return Err(bad(place, "it has no `action`", &known()));
        };
        let Some(name) = NAMES.iter().find(|name| **name == asked) else {
            let likely = nearest(&asked, NAMES).map(|name| format!("did you mean {name:?}? "));
            let message = format!(
                "there is no action {:?}",
                crate::browser::fold::short(&asked)
            );
            return Err(bad(
                place,
                &message,
                &(likely.unwrap_or_default() + &known()),
            ));
        };
        let action = match *name {
            "screenshot" => {
                if fields.insert("page".to_owned(), page.into()).is_some() {
                    return Err(bad(
                        place,
                        "a screenshot is of the call's page",
                        "leave `page` out",
                    ));
                }
                let asked = screenshot::Asked::parse(place, Value::Object(fields))?;
                Action::Screenshot(Box::new(asked))
            }
            name => Action::from_fields(uploads, place, name, Value::Object(fields))?,
        };
        Ok(Self {
            name,
            action,
            fields: shown,
        })
    }
}

#[cfg(test)]
mod tests;
