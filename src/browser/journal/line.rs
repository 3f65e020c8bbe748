//! A line of the console, from whichever event it came.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::limits::{CONSOLE_STACK, CONSOLE_TEXT};

/// How grave a line is, from the least.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// `console.debug`.
    #[default]
    Debug,
    /// `console.log` and its like.
    Log,
    /// `console.warn`, and what the browser warns of.
    Warning,
    /// `console.error`, failed assertions, uncaught errors, and what the browser calls an error.
    Error,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// How grave it is.
    pub level: Level,
    /// Its text, cut.
    pub text: String,
    /// `address:line:column`, both from 1.
    pub place: Option<String>,
    /// The frames of its stack, one a line, cut.
    pub stack: Option<String>,
    /// When, milliseconds of the epoch.
    pub time: f64,
}

impl Line {
    /// `Runtime.consoleAPICalled`; nothing for calls that print nothing.
    pub fn called(value: &Value) -> Option<Self> {
        let level = match value["type"].as_str().unwrap_or_default() {
            "clear" | "endGroup" => return None,
            "debug" => Level::Debug,
            "warning" => Level::Warning,
            "error" | "assert" => Level::Error,
            _ => Level::Log,
        };
        let frames = &value["stackTrace"]["callFrames"];
        Some(Self {
            level,
            text: cut(&arguments(&value["args"]), CONSOLE_TEXT),
            place: place(&frames[0]),
            stack: stack(frames),
            time: value["timestamp"].as_f64().unwrap_or_default(),
        })
    }

    /// `Runtime.exceptionThrown`.
    pub fn thrown(value: &Value) -> Self {
        let details = &value["exceptionDetails"];
        let exception = &details["exception"];
        let said = details["text"].as_str().unwrap_or("Uncaught");
        let text = match exception["description"].as_str() {
            // The stack follows the message there, and is kept apart here.
            Some(description) => {
                let message = description
                    .lines()
                    .take_while(|line| !line.trim_start().starts_with("at "));
                format!("{said} {}", message.collect::<Vec<_>>().join("\n"))
            }
            None if exception.is_null() => said.to_owned(),
            None => format!("{said} {}", argument(exception)),
        };
        let frames = &details["stackTrace"]["callFrames"];
        Self {
            level: Level::Error,
            text: cut(&text, CONSOLE_TEXT),
            place: place(&frames[0]).or_else(|| place(details)),
            stack: stack(frames),
            time: value["timestamp"].as_f64().unwrap_or_default(),
        }
    }

    /// `Log.entryAdded`.
    pub fn logged(value: &Value) -> Self {
        let entry = &value["entry"];
        let level = match entry["level"].as_str().unwrap_or_default() {
            "verbose" => Level::Debug,
            "warning" => Level::Warning,
            "error" => Level::Error,
            _ => Level::Log,
        };
        Self {
            level,
            text: cut(entry["text"].as_str().unwrap_or_default(), CONSOLE_TEXT),
            place: place(entry),
            stack: stack(&entry["stackTrace"]["callFrames"]),
            time: entry["timestamp"].as_f64().unwrap_or_default(),
        }
    }

    pub(super) fn is_equal(&self, other: &Self) -> bool {
        self.level == other.level && self.text == other.text && self.place == other.place
    }

    /// Whether its text or its place holds a text that is in lower case.
    pub(super) fn holds(&self, lower: &str) -> bool {
        let place = self.place.as_deref().unwrap_or_default();
        self.text.to_lowercase().contains(lower) || place.to_lowercase().contains(lower)
    }
}

/// The arguments of a console call as the console shows them: `%s` and its like are filled in.
pub fn arguments(arguments: &Value) -> String {
    let arguments = arguments.as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut text, rest) = match arguments {
        [Value::Object(first), rest @ ..] if !rest.is_empty() => {
            match first.get("value").and_then(Value::as_str) {
                Some(format) if format.contains('%') => filled(format, rest),
                _ => (argument(&arguments[0]), rest),
            }
        }
        [first, rest @ ..] => (argument(first), rest),
        [] => return String::new(),
    };
    for value in rest {
        text.push(' ');
        text.push_str(&argument(value));
    }
    text
}

/// Fills a format in; gives the arguments that it did not take.
fn filled<'a>(format: &str, mut rest: &'a [Value]) -> (String, &'a [Value]) {
    let mut text = String::with_capacity(format.len());
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('%', Some('%')) => text.push('%'),
            ('%', Some('s' | 'd' | 'i' | 'f' | 'o' | 'O')) if !rest.is_empty() => {
                text.push_str(&argument(&rest[0]));
                rest = &rest[1..];
            }
            // Styles have no place in a text.
            ('%', Some('c')) if !rest.is_empty() => rest = &rest[1..],
            _ => {
                text.push(letter);
                continue;
            }
        }
        letters.next();
    }
    (text, rest)
}

/// One value, objects by their preview: `{a: 1}`.
fn argument(value: &Value) -> String {
    if let Some(text) = value["unserializableValue"].as_str() {
        return text.to_owned();
    }
    match &value["value"] {
        Value::String(text) => text.clone(),
        Value::Null if value["subtype"] == "null" => "null".to_owned(),
        Value::Null => object(value),
        other => other.to_string(),
    }
}

fn object(value: &Value) -> String {
    let description = value["description"].as_str();
    let preview = &value["preview"];
    let known = preview["properties"].as_array().filter(|_| {
        matches!(
            value["subtype"].as_str(),
            None | Some("array" | "typedarray")
        ) && value["type"] == "object"
    });
    let Some(properties) = known else {
        return description
            .or(value["type"].as_str())
            .unwrap_or_default()
            .to_owned();
    };
    let list = value["subtype"].is_string();
    let members = properties.iter().map(|property| {
        let shown = property["value"].as_str().unwrap_or_default();
        match (list, property["name"].as_str()) {
            (false, Some(name)) => format!("{name}: {shown}"),
            _ => shown.to_owned(),
        }
    });
    let mut members = members.collect::<Vec<_>>().join(", ");
    if preview["overflow"] == true {
        members.push_str(", …");
    }
    match (list, description) {
        (true, _) => format!("[{members}]"),
        (false, Some("Object") | None) => format!("{{{members}}}"),
        (false, Some(class)) => format!("{class} {{{members}}}"),
    }
}

/// `address:line:column` of a frame, or of anything that has the same fields.
fn place(frame: &Value) -> Option<String> {
    let url = frame["url"].as_str().filter(|url| !url.is_empty())?;
    let line = frame["lineNumber"].as_u64()? + 1;
    let place = format!("{}:{line}", cut(url, CONSOLE_TEXT / 4));
    Some(match frame["columnNumber"].as_u64() {
        Some(column) => format!("{place}:{}", column + 1),
        None => place,
    })
}

fn stack(frames: &Value) -> Option<String> {
    let frames = frames.as_array().filter(|frames| !frames.is_empty())?;
    let mut text = String::new();
    for frame in frames {
        if text.len() > CONSOLE_STACK {
            break;
        }
        let name = frame["functionName"].as_str().unwrap_or_default();
        let name = if name.is_empty() { "(anonymous)" } else { name };
        let _ = writeln!(text, "{name} {}", place(frame).unwrap_or_default());
    }
    Some(cut(text.trim_end(), CONSOLE_STACK))
}

/// A text of at most so many bytes, cut between characters; the mark of the cut comes on top.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_read_as_the_console_shows_them() {
        let object = json!({"type": "object", "description": "Object",
            "preview": {"overflow": true, "properties": [{"name": "a", "value": "1"}]}});
        let list = json!({"type": "object", "subtype": "array", "description": "Array(2)",
            "preview": {"properties": [{"name": "0", "value": "1"}, {"name": "1", "value": "x"}]}});
        let error = json!({"type": "object", "subtype": "error", "description": "Error: no\n    at x:1:1",
            "preview": {"properties": [{"name": "stack", "value": "…"}]}});
        for (arguments_, text) in [
            (
                json!([{"value": "a"}, {"value": 1}, {"value": true}]),
                "a 1 true",
            ),
            (
                json!([{"type": "undefined"}, {"type": "object", "subtype": "null", "value": null}]),
                "undefined null",
            ),
            (
                json!([{"type": "number", "unserializableValue": "NaN"}]),
                "NaN",
            ),
            (json!([object, list]), "{a: 1, …} [1, x]"),
            (json!([error]), "Error: no\n    at x:1:1"),
            (
                json!([{"value": "%s is %d%% %c%x"}, {"value": "it"}, {"value": 3}, {"value": "color:red"}, {"value": "!"}]),
                "it is 3% %x !",
            ),
            (json!([{"value": "100%"}, {"value": 5}]), "100% 5"),
            (json!([{"value": "%s"}]), "%s"),
            (json!([]), ""),
            (json!(null), ""),
        ] {
            assert_eq!(arguments(&arguments_), text, "{arguments_}");
        }
    }

    #[test]
    fn an_uncaught_error_has_its_message_its_place_and_its_stack_apart() {
        let value = json!({"timestamp": 5.0, "exceptionDetails": {"text": "Uncaught (in promise)", "url": "https://a/b.js",
            "lineNumber": 11, "columnNumber": 4, "exception": {"description": "TypeError: no\n    at x"},
            "stackTrace": {"callFrames": [{"functionName": "", "url": "https://a/b.js", "lineNumber": 1, "columnNumber": 2}]}}});
        let line = Line::thrown(&value);
        assert_eq!(line.text, "Uncaught (in promise) TypeError: no");
        assert_eq!(line.place.as_deref(), Some("https://a/b.js:2:3"));
        assert_eq!(
            line.stack.as_deref(),
            Some("(anonymous) https://a/b.js:2:3")
        );
    }

    #[test]
    fn texts_and_stacks_are_cut_between_characters() {
        let frame =
            json!({"functionName": "ü".repeat(5_000), "url": "https://a/", "lineNumber": 0});
        let value = json!({"type": "log", "args": [{"value": "ü".repeat(CONSOLE_TEXT)}],
            "stackTrace": {"callFrames": vec![frame; 100]}});
        let line = Line::called(&value).unwrap();
        assert!(line.text.len() <= CONSOLE_TEXT + 3 && line.text.ends_with('…'));
        assert!(line.stack.unwrap().len() <= CONSOLE_STACK + 3);
        assert!(Line::called(&json!({"type": "clear", "args": []})).is_none());
    }
}
