//! A tool as both ends of the protocol see it: a method, a path, and words about it.

use serde_json::value::RawValue;

use super::wire::{self, Fields, Object};

/// Why a list of tools is refused. The relay sends [`ToolError::code`] and closes with 4400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Not `/` and then letters, digits, `_`, `-`, `/` and `.`.
    #[error("invalid path: {0:?}")]
    Path(String),
    /// A path that the relay answers itself.
    #[error("path is reserved: {0}")]
    Reserved(String),
    /// The same method and path twice.
    #[error("duplicate tool: {0}")]
    Duplicate(String),
    /// Not a list of objects with texts.
    #[error("{0}")]
    Malformed(&'static str),
}

impl ToolError {
    /// The stable code on the wire.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Path(_) | Self::Reserved(_) => "reserved_path",
            Self::Duplicate(_) | Self::Malformed(_) => "protocol_error",
        }
    }
}

/// One tool, with a method in upper case and a path that no other use claims.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) description: String,
    /// JSON text, kept as it came: `null` stays, absent stays absent.
    pub(super) input_schema: Option<Box<str>>,
}

impl Tool {
    /// Checks a path and folds a method.
    pub(super) fn new(method: &str, path: &str, description: &str) -> Result<Self, ToolError> {
        if !is_path(path) {
            return Err(ToolError::Path(path.to_owned()));
        }
        if is_reserved(path) {
            return Err(ToolError::Reserved(path.to_owned()));
        }
        Ok(Self {
            method: method.to_uppercase(),
            path: path.to_owned(),
            description: description.to_owned(),
            input_schema: None,
        })
    }

    /// What a call must name to reach it.
    pub(super) fn route(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// As in a registration and in `tools.json`, in the order of keys that the protocol has.
    pub(super) fn json(&self) -> String {
        Object::empty()
            .text("method", &self.method)
            .text("path", &self.path)
            .text("description", &self.description)
            .json_if("input_schema", self.input_schema.as_deref())
            .finish()
    }

    fn read(raw: &RawValue) -> Result<Self, ToolError> {
        let tool = Fields::of(raw).ok_or(ToolError::Malformed("a tool is an object"))?;
        let method = match tool.raw("method").map(RawValue::get) {
            None | Some("null") => "POST".into(),
            Some(_) => tool
                .text("method")
                .ok_or(ToolError::Malformed("a method is a text"))?,
        };
        let path = tool
            .text("path")
            .ok_or_else(|| ToolError::Path(String::new()))?;
        let description = tool.text("description").unwrap_or_default();
        let mut read = Self::new(&method, &path, &description)?;
        read.input_schema = tool.raw("input_schema").map(|schema| schema.get().into());
        Ok(read)
    }
}

/// Reads the `tools` of a frame, in the order of registration.
pub(super) fn read_tools(raw: &RawValue) -> Result<Vec<Tool>, ToolError> {
    let list: Vec<&RawValue> = serde_json::from_str(raw.get())
        .map_err(|_| ToolError::Malformed("tools is a list of objects"))?;
    let tools = list
        .into_iter()
        .map(Tool::read)
        .collect::<Result<Vec<_>, _>>()?;
    refuse_duplicates(&tools)?;
    Ok(tools)
}

/// The same method and path may be registered once.
pub(super) fn refuse_duplicates(tools: &[Tool]) -> Result<(), ToolError> {
    let mut seen = std::collections::HashSet::new();
    match tools
        .iter()
        .find(|tool| !seen.insert((&tool.method, &tool.path)))
    {
        Some(tool) => Err(ToolError::Duplicate(tool.route())),
        None => Ok(()),
    }
}

/// The tools as a JSON list.
pub(super) fn list_json(tools: &[Tool]) -> String {
    wire::array(tools.iter().map(Tool::json))
}

/// `^/[a-zA-Z0-9_\-/.]+$`
fn is_path(path: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'.');
    path.strip_prefix('/')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(allowed))
}

fn is_reserved(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let under = |name: &str| {
        lower
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    path.starts_with("/_as_") || under("/agents.md") || under("/tools.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Vec<Tool>, ToolError> {
        read_tools(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn paths_are_judged_by_the_rule() {
        for good in [
            "/a",
            "/A-b_c.d/e",
            "//",
            "/.",
            "/agents.mdx",
            "/tools.jsonx",
            "/x/agents.md",
            "/_AS_x",
        ] {
            assert!(Tool::new("GET", good, "").is_ok(), "{good}");
        }
        for bad in ["", "/", "a", "/a b", "/ä", "/a?b", "/a%20", "/a\n"] {
            assert_eq!(
                Tool::new("GET", bad, "").unwrap_err(),
                ToolError::Path(bad.into())
            );
        }
        for reserved in [
            "/agents.md",
            "/AGENTS.md",
            "/agents.md/x",
            "/Tools.JSON",
            "/tools.json/",
            "/_as_",
            "/_as_tasks/x",
        ] {
            assert_eq!(
                Tool::new("GET", reserved, "").unwrap_err(),
                ToolError::Reserved(reserved.into())
            );
        }
    }

    #[test]
    fn a_list_keeps_its_order_its_keys_and_its_schemas_as_they_came() {
        let tools = read(
            r#"[{"path":"/b","input_schema":{"z":1,"a":[ ]}},{"method":"get","path":"/a","description":"x","input_schema":null}]"#,
        )
        .unwrap();
        assert_eq!(
            list_json(&tools),
            r#"[{"method":"POST","path":"/b","description":"","input_schema":{"z":1,"a":[ ]}},{"method":"GET","path":"/a","description":"x","input_schema":null}]"#
        );
    }

    #[test]
    fn bad_lists_are_told_apart() {
        for (json, code) in [
            ("7", "protocol_error"),
            ("[7]", "protocol_error"),
            (r#"[{"path":"/a","method":7}]"#, "protocol_error"),
            (
                r#"[{"path":"/a"},{"path":"/a","method":"post"}]"#,
                "protocol_error",
            ),
            ("[{}]", "reserved_path"),
            (r#"[{"path":7}]"#, "reserved_path"),
            (r#"[{"path":"/tools.json"}]"#, "reserved_path"),
        ] {
            assert_eq!(read(json).unwrap_err().code(), code, "{json}");
        }
        assert!(read("[]").unwrap().is_empty());
    }
}
