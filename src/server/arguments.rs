//! A tool's arguments: the body becomes the tool's own type once, or a refusal that says where it is wrong.
//!
//! The types use `#[serde(deny_unknown_fields)]`, so that a misspelt field is an error and not a silent default.

use serde::de::DeserializeOwned;

use super::answer::{Code, Refused};
use crate::policy::limits::PAGE_TEXT;

/// How alike two names must be before one is offered for the other; Jaro-Winkler, 1 is equal.
const ALIKE: f64 = 0.7;

/// Parses a body; an empty one is `{}`.
pub fn parse<T: DeserializeOwned>(body: &str) -> Result<T, Refused> {
    let text = match body.trim() {
        "" => "{}",
        text => text,
    };
    // Serde would take an array for a struct, its fields by position.
    if !text.starts_with('{') {
        return Err(Refused::new(
            Code::BadArguments,
            "the body is not a JSON object",
            "send a JSON object, like {\"page\":\"p1\"}, as the request's body",
        ));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| refuse(&error.path().to_string(), error.inner()))?;
    json.end().map_err(|error| refuse(".", &error))?;
    Ok(parsed)
}

/// Parses a value that lies at a place of a body, as in `actions[2]`.
pub fn parse_at<T: DeserializeOwned>(place: &str, value: serde_json::Value) -> Result<T, Refused> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match error.path().to_string().as_str() {
            "." => place.to_owned(),
            inner => format!("{place}.{inner}"),
        };
        refuse(&path, error.inner())
    })
}

/// The name of a list that is most like this one.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let alike = |known: &&&str| strsim::jaro_winkler(name, known);
    let close = known.iter().filter(|known| alike(known) >= ALIKE);
    close
        .max_by(|one, other| alike(one).total_cmp(&alike(other)))
        .copied()
}

/// The refusal for what serde says; `path` is `.` where it is the body itself.
fn refuse(path: &str, error: &serde_json::Error) -> Refused {
    if !error.is_data() {
        return Refused::new(
            Code::BadArguments,
            format!("the body is not JSON: {}", shown(&error.to_string())),
            "check quotes, commas and escapes; build the body with a JSON tool where you can",
        );
    }
    let text = error.to_string();
    let said = text.split(" at line ").next().unwrap_or(&text);
    if let Some(unknown) = Unknown::parse(said) {
        return unknown.refuse(path);
    }
    let place = if path == "." { "the body" } else { path };
    Refused::new(
        Code::BadArguments,
        format!("{}: {}", shown(place), shown(said)),
        "see the input_schema of this tool in $BASE/tools.json",
    )
}

/// Serde's complaint about a field that a type does not have.
struct Unknown<'a> {
    field: &'a str,
    known: Vec<&'a str>,
}

impl<'a> Unknown<'a> {
    /// Reads "unknown field `x`, expected `a`", "…, expected one of `a`, `b`" and "…, there are no fields".
    fn parse(said: &'a str) -> Option<Self> {
        let rest = said.strip_prefix("unknown field `")?;
        // From the right: the field is the agent's own text, and may itself hold what stands between.
        let (field, known) = rest
            .rsplit_once("`, expected ")
            .or_else(|| rest.rsplit_once("`, there are no fields"))?;
        let known = known.split('`').skip(1).step_by(2).collect();
        Some(Self { field, known })
    }

    fn refuse(&self, path: &str) -> Refused {
        let nearest = nearest(self.field, &self.known);
        let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        let within = if parent.is_empty() {
            String::new()
        } else {
            format!(" in {}", shown(parent))
        };
        let fix = match nearest {
            Some(name) => format!("did you mean {name:?}? "),
            None => String::new(),
        };
        let known = match self.known.as_slice() {
            [] => "this tool takes no fields".to_owned(),
            known => format!("known fields: {}", known.join(", ")),
        };
        Refused::new(
            Code::BadArguments,
            format!("unknown field {:?}{within}", shown(self.field)),
            fix + &known,
        )
    }
}

/// The agent's own text in a message: at most [`PAGE_TEXT`] characters of it.
fn shown(text: &str) -> String {
    match text.char_indices().nth(PAGE_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Shot {
        width: Option<u32>,
        clip: Option<Clip>,
        full_page: bool,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Clip {
        x: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    #[test]
    fn an_empty_body_is_an_empty_object() {
        for body in ["", "  \n", "{}", " { } "] {
            assert_eq!(parse::<Shot>(body), Ok(Shot::default()), "{body:?}");
        }
        let shot: Shot = parse(r#"{"width":640,"clip":{"x":1}}"#).unwrap();
        assert_eq!((shot.width, shot.clip), (Some(640), Some(Clip { x: 1.0 })));
    }

    #[test]
    fn a_wrong_body_is_refused_with_its_place_and_a_fix() {
        let rows = [
            ("[1]", "not a JSON object", "JSON object"),
            ("null", "not a JSON object", "JSON object"),
            ("{\"width\":", "the body is not JSON: EOF", "quotes"),
            ("{} x", "the body is not JSON: trailing", "quotes"),
            ("{\"a\":\"\\ud800\"}", "unknown field \"a\"", "known fields"),
            (
                r#"{"width":"640"}"#,
                "width: invalid type: string \"640\", expected u32",
                "input_schema",
            ),
            (
                r#"{"width":-1}"#,
                "width: invalid value: integer `-1`, expected u32",
                "input_schema",
            ),
            (
                r#"{"clip":{"x":[]}}"#,
                "clip.x: invalid type: sequence",
                "input_schema",
            ),
            (r#"{"clip":{}}"#, "clip: missing field `x`", "input_schema"),
            (
                r#"{"witdh":640}"#,
                "unknown field \"witdh\"",
                "did you mean \"width\"? known fields: width, clip",
            ),
            (
                r#"{"fullPage":true}"#,
                "unknown field \"fullPage\"",
                "did you mean \"full_page\"?",
            ),
            (
                r#"{"zzz":1}"#,
                "unknown field \"zzz\"",
                "known fields: width",
            ),
            (
                r#"{"clip":{"x":1,"xx":2}}"#,
                "unknown field \"xx\" in clip",
                "did you mean \"x\"?",
            ),
            (
                r#"{"`, expected ":1}"#,
                "unknown field \"`, expected \"",
                "known fields: width",
            ),
        ];
        for (body, message, fix) in rows {
            let refused = parse::<Shot>(body).unwrap_err();
            assert_eq!(
                (refused.status, refused.code),
                (400, "bad_arguments"),
                "{body}"
            );
            assert!(
                refused.message.contains(message),
                "{body}: {}",
                refused.message
            );
            assert!(refused.fix.contains(fix), "{body}: {}", refused.fix);
        }
        let refused = parse::<Nothing>(r#"{"page":"p1"}"#).unwrap_err();
        assert_eq!(refused.fix, "this tool takes no fields");
    }

    #[test]
    fn a_refusal_stays_small_whatever_the_body_holds() {
        let long = "ä".repeat(1 << 20);
        for body in [
            format!(r#"{{"width":"{long}"}}"#),
            format!(r#"{{"{long}":1}}"#),
            "[".repeat(1 << 20),
            format!(r#"{{"clip":{}"#, "[".repeat(1 << 20)),
        ] {
            let refused = parse::<Shot>(&body).unwrap_err();
            assert!(refused.body().to_string().len() < 2_048);
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(body in "\\PC*", name in "[a-z`,. ]{0,40}") {
            let _ = parse::<Shot>(&body);
            let _ = parse::<Shot>(&format!("{{\"{name}\":1}}"));
        }
    }
}
