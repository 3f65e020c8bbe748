//! JSON as it travels: frames read shallowly, frames written by hand.
//!
//! A reply may carry a picture of 3.6 MB as one string. Reading a frame only finds where its known fields begin and end,
//! so that such a body is handed on as a slice of the frame it came in; writing one looks once whether a text needs
//! escapes and otherwise copies it whole.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Every field that some frame has. Others are skipped, so that a frame cannot make us keep more than these.
const FIELDS: [&str; 28] = [
    "type",
    "id",
    "appId",
    "agentsMd",
    "appDescription",
    "tools",
    "sessionId",
    "secret",
    "resumeSecret",
    "resumed",
    "revokeTokens",
    "ok",
    "error",
    "code",
    "message",
    "label",
    "token",
    "tokens",
    "method",
    "path",
    "headers",
    "content-type",
    "body",
    "status",
    "taskId",
    "mintedAt",
    "description",
    "input_schema",
];

/// What a frame's text turned out to be.
pub(super) enum Parsed<'a> {
    /// A JSON object: a frame.
    Object(Fields<'a>),
    /// A JSON array: no frame, but a sign of life.
    Array,
    /// Anything else: not even a sign of life.
    Nothing,
}

/// The known fields of a JSON object, each still as its own JSON text.
#[derive(Default)]
pub(super) struct Fields<'a>(Vec<(&'static str, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads a frame's text.
    pub(super) fn parse(text: &'a str) -> Parsed<'a> {
        if let Ok(fields) = serde_json::from_str(text) {
            return Parsed::Object(fields);
        }
        let is_array = text.trim_ascii_start().starts_with('[');
        if is_array && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            return Parsed::Array;
        }
        Parsed::Nothing
    }

    /// The fields of a value that is an object.
    pub(super) fn of(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// A field's JSON text, `null` included.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, raw)| *raw)
    }

    /// A field that is a string.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.raw(name)?)
    }

    /// Whether a field is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw.get() == "true")
    }

    /// A field that is a number without a fraction, however it is written (`200`, `200.0`, `2e2`).
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        let number: f64 = serde_json::from_str(self.raw(name)?.get()).ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and small"
        )]
        (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    /// As in JavaScript, the last of two fields with one name counts.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<LossyText>()? {
            let Some(known) = FIELDS.iter().find(|known| **known == name.0) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            fields.0.retain(|(name, _)| name != known);
            fields.0.push((known, map.next_value()?));
        }
        Ok(fields)
    }
}

/// A JSON string's text, borrowed where it has no escapes. `None` where the value is no string.
pub(super) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let text: LossyText = serde_json::from_str(raw.get()).ok()?;
    Some(Cow::Owned(text.0))
}

/// A string in which lone surrogates, which JavaScript may send as escapes, have become U+FFFD.
struct LossyText(String);

impl<'de> Deserialize<'de> for LossyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(LossyVisitor)
    }
}

struct LossyVisitor;

impl Visitor<'_> for LossyVisitor {
    type Value = LossyText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    /// The bytes are UTF-8 but for lone surrogates, each of which is `ED` and two more bytes.
    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<LossyText, E> {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if chunk.invalid().first() == Some(&0xED) {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Ok(LossyText(text))
    }
}

/// Appends `text` as a JSON string.
pub(super) fn quote(out: &mut String, text: &str) {
    if needs_escapes(text) {
        // Writing into a string cannot fail, and text is always JSON.
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

/// In chunks without an early exit inside, which the compiler turns into vector code.
fn needs_escapes(text: &str) -> bool {
    text.as_bytes().chunks(4_096).any(|chunk| {
        chunk.iter().fold(false, |found, byte| {
            found | (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\')
        })
    })
}

/// A JSON object that is written field by field.
pub(super) struct Object(String);

impl Object {
    /// A frame of the given type, with room for `size` bytes more.
    pub(super) fn frame(kind: &str, size: usize) -> Self {
        let mut text = String::with_capacity(size + 128);
        text.push('{');
        Self(text).text("type", kind)
    }

    /// An object without fields.
    pub(super) fn empty() -> Self {
        Self("{".to_owned())
    }

    /// A string.
    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        quote(&mut self.0, value);
        self
    }

    /// A value that is JSON already.
    pub(super) fn json(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        self.0.push_str(value);
        self
    }

    /// A value that is JSON already, where there is one.
    pub(super) fn json_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.json(name, value),
            None => self,
        }
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(&mut self.0, name);
        self.0.push(':');
    }
}

/// A JSON array of texts that are JSON already.
pub(super) fn array<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut text = "[".to_owned();
    for item in items {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(item.as_ref());
    }
    text.push(']');
    text
}

/// `text` as a JSON string of its own.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(text: &str) -> Fields<'_> {
        match Fields::parse(text) {
            Parsed::Object(fields) => fields,
            _ => panic!("no object: {text}"),
        }
    }

    #[test]
    fn a_text_without_escapes_is_borrowed_from_its_frame() {
        let frame = r#"{"body":"iVBORw0KGgo=","label":"a\nb"}"#;
        assert!(matches!(
            fields(frame).text("body"),
            Some(Cow::Borrowed("iVBORw0KGgo="))
        ));
        assert_eq!(fields(frame).text("label").as_deref(), Some("a\nb"));
    }

    #[test]
    fn lone_surrogates_become_one_replacement_character_each() {
        let frame = r#"{"label":"a\ud83db\udc00","body":"\ud83d\ude00"}"#;
        assert_eq!(
            fields(frame).text("label").as_deref(),
            Some("a\u{fffd}b\u{fffd}")
        );
        assert_eq!(fields(frame).text("body").as_deref(), Some("😀"));
    }

    #[test]
    fn the_last_of_two_fields_counts_and_null_is_a_value() {
        let frame = r#"{"id":1,"x":{"id":9},"id":null}"#;
        assert_eq!(fields(frame).raw("id").map(RawValue::get), Some("null"));
        assert!(fields(frame).raw("x").is_none() && fields(frame).text("id").is_none());
    }

    #[test]
    fn integers_are_numbers_without_a_fraction() {
        for (text, expected) in [
            ("200", Some(200)),
            ("200.0", Some(200)),
            ("2e2", Some(200)),
            ("-1", Some(-1)),
            ("200.5", None),
            ("\"200\"", None),
            ("null", None),
            ("1e300", None),
        ] {
            let frame = format!(r#"{{"status":{text}}}"#);
            assert_eq!(fields(&frame).integer("status"), expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_read_without_recursion() {
        let deep = format!(
            r#"{{"id":"1","body":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(fields(&deep).text("id").as_deref(), Some("1"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(text in any::<String>()) {
            let frame = Object::frame("ping", 0).text("body", &text).json("status", "7").finish();
            let read = fields(&frame);
            prop_assert_eq!(read.text("body").unwrap(), text.as_str());
            prop_assert_eq!(read.integer("status"), Some(7));
        }

        #[test]
        fn reading_never_panics(text in any::<String>()) {
            let _ = Fields::parse(&text);
        }
    }
}
