//! What the tools that read a page's journal have in common: the shape of their arguments and of their lists.

use serde_json::{Map, Value, json};

use crate::browser::journal::ring::Picked;
use crate::policy::limits::JOURNAL_LIST;
use crate::proxy::uploads::ORIGIN;
use crate::server::answer::{Code, Refused};

/// How many entries are wanted.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, Refused> {
    let (usual, most) = JOURNAL_LIST;
    match asked.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        limit => Err(Refused::new(
            Code::BadArguments,
            format!("`limit` is {limit}"),
            format!("ask for 1 to {most}"),
        )),
    }
}

/// A text to look for, as the journal wants it.
pub(super) fn found_text(find: Option<&str>) -> Option<String> {
    find.filter(|text| !text.is_empty()).map(str::to_lowercase)
}

/// An address, without the origin where it is the uploads' own: what is left is the path that the agent gave.
pub(super) fn near(url: &str) -> &str {
    let path = url.strip_prefix(ORIGIN);
    path.and_then(|path| path.strip_prefix('/')).unwrap_or(url)
}

/// Whole milliseconds from one time to another.
pub(super) fn since(time: f64, began: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
    let ms = (time - began).round() as i64;
    ms
}

/// The reply: the entries, where the next question goes on, and what is missing.
pub(super) fn listed<T>(
    name: &str,
    entries: Vec<Value>,
    picked: &Picked<'_, T>,
    dropped: u64,
) -> Value {
    let mut reply = Map::new();
    reply.insert(name.to_owned(), entries.into());
    reply.insert("cursor".to_owned(), json!(picked.cursor));
    for (name, count) in [("left_out", picked.left_out as u64), ("dropped", dropped)] {
        if count > 0 {
            reply.insert(name.to_owned(), count.into());
        }
    }
    Value::Object(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_named_by_its_path_and_everything_else_whole() {
        for (url, shown) in [
            (format!("{ORIGIN}/js/app.js:1:2"), "js/app.js:1:2"),
            (
                format!("{ORIGIN}.evil.example/x"),
                "https://uploads.gpu-browser.internal.evil.example/x",
            ),
            ("https://a.example/x".to_owned(), "https://a.example/x"),
        ] {
            assert_eq!(near(&url), shown);
        }
    }

    #[test]
    fn a_limit_out_of_bounds_is_refused() {
        assert_eq!(limit(None).unwrap(), JOURNAL_LIST.0);
        for wrong in [0, JOURNAL_LIST.1 + 1] {
            assert_eq!(limit(Some(wrong)).unwrap_err().code, "bad_arguments");
        }
    }
}
