//! An app's registration, judged, and ready to be served.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::preamble::served;
use crate::policy::limits;
use crate::relay::frames::app::Claim;
use crate::relay::registration::is_app_id;
use crate::relay::tool::{self, Tool, ToolError};
use crate::relay::units::{cut, units};
use crate::relay::wire::{self, Object};

/// A registration that was refused: the reply's error, and the code that the socket is closed with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) close: u16,
}

/// What an agent can be told about an app without asking it.
pub(super) struct App {
    id: String,
    description: String,
    tools: Vec<Tool>,
    /// `METHOD /path` of each tool.
    routes: HashSet<String>,
    /// `agents.md`, as it is served.
    pub(super) briefing: Bytes,
    /// `tools.json`, as it is served.
    pub(super) tools_json: Bytes,
}

impl App {
    /// In the protocol's order: app id, briefing, tools. A missing briefing counts as too large.
    pub(super) fn judge(claim: &Claim<'_>) -> Result<Self, Rejected> {
        let id = claim
            .app_id
            .as_deref()
            .filter(|id| is_app_id(id))
            .ok_or_else(invalid_app_id)?;
        let briefing = briefing(claim.briefing.as_ref())?;
        let tools = claim.tools.map_or(Ok(Vec::new()), tool::read_tools)?;
        let mut app = Self {
            id: id.to_owned(),
            description: cut(&claim.description, limits::DESCRIPTION_UNITS).to_owned(),
            tools: Vec::new(),
            routes: HashSet::new(),
            briefing,
            tools_json: Bytes::new(),
        };
        app.set_tools(tools);
        Ok(app)
    }

    /// All of an update, or nothing of it. `tools` must be there; a briefing that is there must be a text.
    pub(super) fn update(
        &mut self,
        tools: Option<&RawValue>,
        text: Option<&RawValue>,
    ) -> Result<(), Rejected> {
        let new_briefing = match text {
            Some(raw) => Some(briefing(wire::string(raw).as_ref())?),
            None => None,
        };
        let tools = tools.ok_or(ToolError::Malformed("tools is missing"))?;
        self.set_tools(tool::read_tools(tools)?);
        if let Some(new) = new_briefing {
            self.briefing = new;
        }
        Ok(())
    }

    /// Whether a tool is registered under this method and path.
    pub(super) fn has(&self, method: &str, path: &str) -> bool {
        self.routes.contains(&format!("{method} {path}"))
    }

    fn set_tools(&mut self, tools: Vec<Tool>) {
        self.routes = tools.iter().map(Tool::route).collect();
        self.tools = tools;
        let app = Object::empty()
            .text("id", &self.id)
            .text("name", &self.id)
            .text("description", &self.description)
            .finish();
        let whole = Object::empty()
            .text("version", "1.0")
            .json("app", &app)
            .json("tools", &tool::list_json(&self.tools))
            .finish();
        self.tools_json = whole.into();
    }
}

fn briefing(text: Option<&Cow<'_, str>>) -> Result<Bytes, Rejected> {
    match text {
        Some(text) if units(text) <= limits::BRIEFING_UNITS => Ok(served(text)),
        _ => Err(Rejected {
            code: "agents_md_too_large",
            message: format!(
                "agentsMd is a text of at most {} characters",
                limits::BRIEFING_UNITS
            ),
            close: 4413,
        }),
    }
}

fn invalid_app_id() -> Rejected {
    Rejected {
        code: "invalid_app_id",
        message: "appId is 1 to 64 letters, digits, dots, dashes and underscores".into(),
        close: 4001,
    }
}

impl From<ToolError> for Rejected {
    fn from(error: ToolError) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
            close: 4400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::frames::app::AppFrame;
    use tokio_tungstenite::tungstenite::Utf8Bytes;

    fn judge(fields: &str) -> Result<App, Rejected> {
        let frame = Utf8Bytes::from(format!(r#"{{"type":"register",{fields}}}"#));
        match AppFrame::parse(&frame) {
            AppFrame::Register(claim) => App::judge(&claim),
            _ => panic!("no register: {fields}"),
        }
    }

    #[test]
    fn a_registration_is_judged_in_order() {
        let large = "x".repeat(limits::BRIEFING_UNITS + 1);
        for (fields, code, close) in [
            (
                r#""agentsMd":7,"tools":7"#.to_owned(),
                "invalid_app_id",
                4001,
            ),
            (r#""appId":"ä""#.to_owned(), "invalid_app_id", 4001),
            (
                r#""appId":"a","tools":7"#.to_owned(),
                "agents_md_too_large",
                4413,
            ),
            (
                format!(r#""appId":"a","agentsMd":"{large}""#),
                "agents_md_too_large",
                4413,
            ),
            (
                r#""appId":"a","agentsMd":"","tools":7"#.to_owned(),
                "protocol_error",
                4400,
            ),
            (
                r#""appId":"a","agentsMd":"","tools":[{"path":"/_as_x"}]"#.to_owned(),
                "reserved_path",
                4400,
            ),
        ] {
            let rejected = judge(&fields).err().unwrap();
            assert_eq!((rejected.code, rejected.close), (code, close));
        }
        assert!(judge(r#""appId":"a","agentsMd":"""#).is_ok());
        assert!(judge(r#""appId":"a","agentsMd":"","tools":null"#).is_ok());
    }

    #[test]
    fn tools_json_has_the_protocols_order_of_keys() {
        let app = judge(r#""tools":[{"path":"/b"},{"path":"/a","method":"get"}],"appDescription":"d","agentsMd":"","appId":"a""#).unwrap();
        assert_eq!(
            app.tools_json,
            r#"{"version":"1.0","app":{"id":"a","name":"a","description":"d"},"tools":[{"method":"POST","path":"/b","description":""},{"method":"GET","path":"/a","description":""}]}"#
        );
        assert!(app.has("GET", "/a") && !app.has("HEAD", "/a") && !app.has("GET", "/b"));
    }

    #[test]
    fn an_update_is_all_or_nothing() {
        let mut app =
            judge(r#""appId":"a","agentsMd":"tools.json one","tools":[{"path":"/a"}]"#).unwrap();
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let (tools, null, two) = (
            raw(r#"[{"path":"/b"}]"#),
            raw("null"),
            raw(r#""tools.json two""#),
        );
        assert_eq!(
            app.update(None, Some(&two)).unwrap_err().code,
            "protocol_error"
        );
        assert_eq!(
            app.update(Some(&tools), Some(&null)).unwrap_err().code,
            "agents_md_too_large"
        );
        assert_eq!(
            app.update(Some(&null), Some(&two)).unwrap_err().code,
            "protocol_error"
        );
        assert!(app.has("POST", "/a") && app.briefing == "tools.json one");
        app.update(Some(&tools), None).unwrap();
        assert!(
            app.has("POST", "/b") && !app.has("POST", "/a") && app.briefing == "tools.json one"
        );
        app.update(Some(&tools), Some(&two)).unwrap();
        assert_eq!(app.briefing, "tools.json two");
    }
}
