//! What proves that an action was felt: its events at the element, a change of the document, the text in the field.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::command::act::{CallFunctionOn, SetFileInputFiles};
use super::super::locate::{Aim, Finding, Miss, millis};
use super::super::page::{Page, PageError};
use super::super::pipe::CallError;

/// What our world saw of an action.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Testimony {
    /// Trusted events of the action that reached its element.
    pub received: u32,
    /// Whether anything in the document changed since: an element, a value, the focus, a scroll position.
    pub changed: bool,
    /// The address.
    pub url: String,
    /// The title.
    pub title: String,
}

/// The field that has the focus, after a text was typed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Held {
    /// The element.
    pub on: Option<String>,
    /// What stands in it, cut; `None` where it is no field.
    pub value: Option<String>,
    /// Whether the typed text is in it.
    #[serde(default)]
    pub holds: bool,
}

/// What a turn of the wheel moved.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Scrolled {
    /// CSS pixels.
    pub by: (f64, f64),
    /// Where it is now, CSS pixels.
    pub to: (f64, f64),
    /// What was scrolled.
    pub of: Option<String>,
}

/// The options that are selected.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Chosen {
    /// The list.
    pub on: String,
    /// The options.
    pub selected: Value,
}

impl Page {
    /// Listens for events of these kinds at the element that was located last, or anywhere where none was aimed at.
    pub async fn watch(
        &self,
        kinds: &[&str],
        aimed: bool,
        deadline: Instant,
    ) -> Result<(), PageError> {
        let asked = json!({ "kinds": kinds, "aimed": aimed });
        self.library::<bool>("watch", &asked, deadline)
            .await
            .map(drop)
    }

    /// The address of the document that is shown.
    pub async fn address(&self, deadline: Instant) -> Result<String, PageError> {
        self.library("ready", &Value::Null, deadline).await
    }

    /// What was seen since [`watch`](Self::watch); a document that came since has seen nothing.
    pub async fn testimony(&self, deadline: Instant) -> Result<Testimony, PageError> {
        self.library("testify", &Value::Null, deadline).await
    }

    /// Whether the page has begun a drag and drop since [`watch`](Self::watch).
    pub(super) async fn is_dragging(&self, deadline: Instant) -> Result<bool, PageError> {
        self.library("dragging", &Value::Null, deadline).await
    }

    /// Gives the focus to the element that was located last, the caret at the end of its text, or all of it selected.
    /// `false` where it takes none.
    pub async fn focus(&self, select_all: bool, deadline: Instant) -> Result<bool, PageError> {
        self.library("focus", &select_all.into(), deadline).await
    }

    /// What stands in the field that has the focus.
    pub async fn held(&self, text: &str, deadline: Instant) -> Result<Held, PageError> {
        self.library("holds", &text.into(), deadline).await
    }

    /// Turns the wheel and says what it moved, once that has come to rest.
    pub async fn scroll(
        &self,
        at: (f64, f64),
        by: (f64, f64),
        modifiers: super::keys::Modifiers,
        deadline: Instant,
    ) -> Result<Option<Scrolled>, PageError> {
        self.library::<bool>("scrollers", &json!(at), deadline)
            .await?;
        self.wheel(at, by, modifiers, deadline).await?;
        self.library("scrolled", &Value::Null, deadline).await
    }

    /// Selects options of a list by value, label or number.
    pub async fn choose(
        &self,
        aim: &Aim,
        wanted: &[Value],
        patience: std::time::Duration,
        deadline: Instant,
    ) -> Result<Result<Chosen, Miss>, PageError> {
        let mut asked = match self.target(aim, deadline).await? {
            Ok(asked) => asked,
            Err(miss) => return Ok(Err(miss)),
        };
        asked["wanted"] = json!(wanted);
        asked["patience"] = millis(patience);
        let finding: Finding<Chosen> = self.library("choose", &asked, deadline).await?;
        Ok(finding.into_result())
    }

    /// Picks files in a file input; the names that it then holds.
    pub async fn pick_files(
        &self,
        aim: &Aim,
        paths: &[String],
        deadline: Instant,
    ) -> Result<Result<Vec<String>, Unpicked>, PageError> {
        let handle = match self.element(aim, deadline).await? {
            Ok(handle) => handle,
            Err(miss) => return Ok(Err(Unpicked::Missed(miss))),
        };
        let input: Input = self
            .call_on(&handle, "function () { return {file: this.type === 'file', many: this.multiple, disabled: this.disabled} }")
            .await?;
        match input {
            Input { file: false, .. } => return Ok(Err(Unpicked::NoFileInput)),
            Input { disabled: true, .. } => return Ok(Err(Unpicked::Disabled)),
            Input { many: false, .. } if paths.len() > 1 => return Ok(Err(Unpicked::OneOnly)),
            Input { .. } => {}
        }
        let set = SetFileInputFiles {
            files: paths.iter().map(String::as_str).collect(),
            object_id: &handle,
        };
        self.burst(&[set], deadline).await?;
        let names = self
            .call_on(
                &handle,
                "function () { return Array.from(this.files, file => file.name) }",
            )
            .await?;
        self.release();
        Ok(Ok(names))
    }

    async fn call_on<T: serde::de::DeserializeOwned>(
        &self,
        object_id: &str,
        function_declaration: &str,
    ) -> Result<T, PageError> {
        let call = CallFunctionOn {
            function_declaration,
            object_id,
            return_by_value: true,
        };
        let evaluated = self.connection.start(Some(&self.session), &call).await?;
        let value = evaluated.result.value.unwrap_or_default();
        let method = "Runtime.callFunctionOn";
        serde_json::from_value(value).map_err(|_| CallError::Malformed { method }.into())
    }
}

/// Why a file was not picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unpicked {
    /// There is no such element.
    Missed(Miss),
    /// It takes no files.
    NoFileInput,
    /// It is disabled.
    Disabled,
    /// It takes one file only.
    OneOnly,
}

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    file: bool,
    #[serde(default)]
    many: bool,
    #[serde(default)]
    disabled: bool,
}
