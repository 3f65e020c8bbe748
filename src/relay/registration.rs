//! What an app tells a relay about itself, proven to fit before anything is sent.

use serde_json::Value;

use super::tool::{self, Tool, ToolError};
use super::units::{cut, units};
use super::wire::{Object, quoted};
use crate::policy::limits;

/// Why something is no registration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// Not 1 to 64 of `A-Z a-z 0-9 _ . -`.
    #[error("{0:?} is no app id: 1 to 64 letters, digits, dots, dashes and underscores")]
    AppId(String),
    /// A briefing over the limit.
    #[error("the briefing has {0} characters, {most} at most", most = limits::BRIEFING_UNITS)]
    Briefing(usize),
    /// A tool that no relay takes.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The whole would not fit into one frame.
    #[error("briefing and tools make a frame of {0} characters, too large for the relay")]
    TooLarge(usize),
}

/// A tool as an app describes it.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// The HTTP method, in any case.
    pub method: String,
    /// The path after `$BASE`.
    pub path: String,
    /// What it does, for the agent.
    pub description: String,
    /// A JSON schema of its body, where it has one.
    pub input_schema: Option<Value>,
}

/// App id, description, briefing and tools that together fit into one frame, a resume's additions included.
#[derive(Debug, Clone)]
pub struct Registration {
    app_id: String,
    description: String,
    briefing: String,
    /// The tools as JSON, ready for any frame.
    tools: String,
}

impl Registration {
    /// Checks everything that the relay would check, so that it never has to refuse us.
    ///
    /// # Errors
    /// The first thing that is wrong, in the relay's order.
    pub fn new(
        app_id: &str,
        description: &str,
        briefing: &str,
        tools: &[ToolSpec],
    ) -> Result<Self, RegistrationError> {
        if !is_app_id(app_id) {
            return Err(RegistrationError::AppId(app_id.to_owned()));
        }
        let registration = Self {
            app_id: app_id.to_owned(),
            description: cut(description, limits::DESCRIPTION_UNITS).to_owned(),
            briefing: checked_briefing(briefing)?,
            tools: checked_tools(tools)?,
        };
        registration.fitting()
    }

    /// The same app with other tools and, where given, another briefing.
    ///
    /// # Errors
    /// As [`Registration::new`].
    pub fn with_tools(
        &self,
        tools: &[ToolSpec],
        briefing: Option<&str>,
    ) -> Result<Self, RegistrationError> {
        let briefing = match briefing {
            Some(briefing) => checked_briefing(briefing)?,
            None => self.briefing.clone(),
        };
        let registration = Self {
            briefing,
            tools: checked_tools(tools)?,
            ..self.clone()
        };
        registration.fitting()
    }

    /// The fields of `register` and `resume`.
    pub(super) fn write(&self, frame: Object) -> Object {
        frame
            .text("appId", &self.app_id)
            .text("agentsMd", &self.briefing)
            .text("appDescription", &self.description)
            .json("tools", &self.tools)
    }

    /// The fields of `update_tools`.
    pub(super) fn write_tools(&self, frame: Object) -> Object {
        frame
            .json("tools", &self.tools)
            .text("agentsMd", &self.briefing)
    }

    /// Bytes that [`Registration::write`] takes, roughly.
    pub(super) fn size(&self) -> usize {
        self.briefing.len() + self.tools.len() + self.description.len()
    }

    fn fitting(self) -> Result<Self, RegistrationError> {
        let texts = [&self.app_id, &self.description, &self.briefing];
        let texts: usize = texts.into_iter().map(|text| units(&quoted(text))).sum();
        let size = texts + units(&self.tools) + limits::RESUME_UNITS;
        if size > limits::FRAME_UNITS {
            return Err(RegistrationError::TooLarge(size));
        }
        Ok(self)
    }
}

/// `[A-Za-z0-9_.-]{1,64}`
pub(super) fn is_app_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

fn checked_briefing(briefing: &str) -> Result<String, RegistrationError> {
    match units(briefing) {
        size if size > limits::BRIEFING_UNITS => Err(RegistrationError::Briefing(size)),
        _ => Ok(briefing.to_owned()),
    }
}

fn checked_tools(specs: &[ToolSpec]) -> Result<String, RegistrationError> {
    let mut tools = Vec::with_capacity(specs.len());
    for spec in specs {
        let mut tool = Tool::new(&spec.method, &spec.path, &spec.description)?;
        tool.input_schema = spec
            .input_schema
            .as_ref()
            .map(|schema| schema.to_string().into());
        tools.push(tool);
    }
    tool::refuse_duplicates(&tools)?;
    Ok(tool::list_json(&tools))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(path: &str, description: &str) -> ToolSpec {
        ToolSpec {
            method: "post".into(),
            path: path.into(),
            description: description.into(),
            input_schema: None,
        }
    }

    fn registration(briefing: &str, tools: &[ToolSpec]) -> Result<Registration, RegistrationError> {
        Registration::new("app", "d", briefing, tools)
    }

    #[test]
    fn a_briefing_passes_to_the_last_unit() {
        assert!(registration(&"😀".repeat(32_768), &[]).is_ok());
        let over = registration(&"ä".repeat(65_537), &[]).unwrap_err();
        assert_eq!(over, RegistrationError::Briefing(65_537));
    }

    #[test]
    fn tools_that_would_burst_the_frame_are_refused_here() {
        let large = spec(
            "/a",
            &"x".repeat(limits::FRAME_UNITS - limits::RESUME_UNITS),
        );
        assert!(matches!(
            registration("", &[large]),
            Err(RegistrationError::TooLarge(_))
        ));
        let control = spec("/a", &"\u{1}".repeat(limits::FRAME_UNITS / 6));
        assert!(matches!(
            registration("", &[control]),
            Err(RegistrationError::TooLarge(_))
        ));
        let fitting = spec(
            "/a",
            &"x".repeat(limits::FRAME_UNITS - limits::RESUME_UNITS - 1_000),
        );
        assert!(registration("", &[fitting]).is_ok());
    }

    #[test]
    fn ids_and_tools_are_checked_as_the_relay_does() {
        assert!(matches!(
            Registration::new("", "", "", &[]),
            Err(RegistrationError::AppId(_))
        ));
        assert!(matches!(
            Registration::new("ä", "", "", &[]),
            Err(RegistrationError::AppId(_))
        ));
        let twice = [spec("/a", ""), spec("/a", "")];
        assert!(matches!(
            registration("", &twice),
            Err(RegistrationError::Tool(ToolError::Duplicate(_)))
        ));
    }

    #[test]
    fn an_update_keeps_the_briefing_unless_it_brings_one() {
        let first = registration("one", &[spec("/a", "")]).unwrap();
        assert_eq!(first.with_tools(&[], None).unwrap().briefing, "one");
        assert_eq!(first.with_tools(&[], Some("two")).unwrap().briefing, "two");
    }
}
