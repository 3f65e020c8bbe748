//! What a line of the log says. The names are promises to programs that read it. A link is never in it: it is a credential.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::policy::limits::{LOG_LIST, LOG_TEXT};

/// A line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// When; written to the millisecond.
    pub t: OffsetDateTime,
    /// What.
    pub record: Record,
}

/// Something that the log keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Record {
    /// A session's link works.
    Started {
        /// Our own version.
        version: String,
        /// The relay's address.
        relay: String,
        /// `hardware` or `software`.
        gpu: String,
        /// Chromium's version.
        browser: String,
        /// Whether Chromium's own sandbox is on.
        sandbox: bool,
        /// Whether the browser has a network of its own.
        network_namespace: bool,
        /// The rules of the allowlist.
        hosts: Vec<String>,
    },
    /// A session ended.
    Ended {
        /// Why.
        reason: String,
    },
    /// A call was answered.
    Call {
        /// Method and path.
        tool: String,
        /// The page it named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<String>,
        /// The status of the answer.
        status: u16,
        /// How long it took.
        ms: u64,
    },
    /// A page was opened, closed or lost.
    Page {
        /// Its name.
        page: String,
        /// `opened`, `closed`, `lost`, `frozen` or `killed`.
        state: String,
        /// What it shows, as [`place_of`] writes it.
        url: String,
        /// Why, where it was frozen or killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A link was made, or is dead and replaced.
    Link {
        /// What the owner calls it.
        label: String,
        /// Why.
        reason: String,
    },
    /// The browser was lost, is back, or is given up.
    Browser {
        /// `lost`, `restarted` or `failed`.
        state: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The relay is away, or back.
    Relay {
        /// `away` or `back`.
        state: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An agent asked for more hosts.
    Request {
        /// What an answer names.
        number: u32,
        /// The hosts.
        hosts: Vec<String>,
        /// The agent's reason.
        reason: String,
        /// The page that wants them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<String>,
    },
    /// A request has ended.
    Answered {
        /// The request.
        number: u32,
        /// `allowed`, `denied` or `expired`.
        decision: String,
        /// `owner`, or `nobody` where it expired.
        by: String,
        /// The hosts.
        hosts: Vec<String>,
        /// What the owner said beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A request of the browser was refused, or failed on its way.
    Refused {
        /// The target as it was asked for.
        host: String,
        /// The stable word.
        reason: String,
        /// The page that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<String>,
    },
    /// A connection to a site was made.
    Connected {
        /// The host.
        host: String,
        /// The address that was dialled.
        address: String,
        /// 80 or 443.
        port: u16,
        /// The page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<String>,
    },
    /// That connection ended.
    Disconnected {
        /// The host.
        host: String,
        /// The address that was dialled.
        address: String,
        /// 80 or 443.
        port: u16,
        /// Bytes from the browser to the site.
        sent: u64,
        /// Bytes from the site to the browser.
        received: u64,
        /// How long it was open.
        ms: u64,
        /// The stable word for why it ended.
        reason: String,
        /// The page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<String>,
    },
    /// Lines that were not written, because more came than a disk took.
    Dropped {
        /// How many.
        count: u64,
    },
}

/// The form of a line on disk.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(with = "time_text")]
    t: OffsetDateTime,
    #[serde(flatten)]
    record: Record,
}

/// Why a line is none of ours.
#[derive(Debug, thiserror::Error)]
#[error("no line of the log: {0}")]
pub struct BadLine(#[from] serde_json::Error);

impl Line {
    /// The line as JSON, its texts cut to [`LOG_TEXT`]. All of it is ASCII, so that not even `cat` can be fooled by what an
    /// agent made up.
    pub fn to_json(&self) -> String {
        let written = Written {
            t: self.t,
            record: self.record.clone(),
        };
        // Numbers, texts and lists of texts: nothing that JSON could not hold.
        let mut value = serde_json::to_value(written).unwrap_or_default();
        cut(&mut value);
        ascii(&value.to_string())
    }

    /// Reads a line back.
    ///
    /// # Errors
    /// Where it is not whole, or of another program.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let Written { t, record } = serde_json::from_str(text)?;
        Ok(Self { t, record })
    }
}

/// An address without what could hold content or secrets: user, query and fragment, and everything of a `data:` or `blob:`
/// address but its scheme.
pub fn place_of(url: &str) -> String {
    let Ok(mut url) = url::Url::parse(url) else {
        return String::new();
    };
    if url.cannot_be_a_base() && url.scheme() != "about" {
        return format!("{}:", url.scheme());
    }
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(LOG_TEXT) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(list) => {
            list.truncate(LOG_LIST);
            list.iter_mut().for_each(cut);
        }
        Value::Object(fields) => fields.values_mut().for_each(cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same JSON in ASCII. Outside of texts JSON has nothing else.
fn ascii(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            plain.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                plain.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    plain
}

mod time_text {
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{OffsetDateTime, Rfc3339};

    pub(super) fn serialize<S: Serializer>(t: &OffsetDateTime, to: S) -> Result<S::Ok, S::Error> {
        let t = t.replace_nanosecond(t.nanosecond() / 1_000_000 * 1_000_000);
        let text = t.map_err(S::Error::custom)?.format(&Rfc3339);
        to.serialize_str(&text.map_err(S::Error::custom)?)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<OffsetDateTime, D::Error> {
        let text = String::deserialize(from)?;
        OffsetDateTime::parse(&text, &Rfc3339).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::limits::LOG_LINE;

    fn line(record: Record) -> Line {
        let t = OffsetDateTime::UNIX_EPOCH + time::Duration::milliseconds(1_500);
        Line { t, record }
    }

    #[test]
    fn a_line_has_its_time_first_and_reads_back() {
        let call = line(Record::Call {
            tool: "POST /eval".into(),
            page: Some("p1".into()),
            status: 200,
            ms: 7,
        });
        let json = call.to_json();
        assert_eq!(
            json,
            r#"{"t":"1970-01-01T00:00:01.5Z","event":"call","tool":"POST /eval","page":"p1","status":200,"ms":7}"#
        );
        assert_eq!(Line::parse(&json).unwrap(), call);
        assert!(Line::parse(r#"{"t":"yesterday","event":"dropped","count":1}"#).is_err());
    }

    #[test]
    fn an_address_is_kept_without_what_may_be_content() {
        for (url, kept) in [
            (
                "https://a.example/x.html?token=1#part",
                "https://a.example/x.html",
            ),
            ("https://me:secret@a.example/", "https://a.example/"),
            ("data:text/html,<b>secret</b>", "data:"),
            ("blob:https://a.example/uuid", "blob:"),
            ("javascript:steal()", "javascript:"),
            ("about:blank", "about:blank"),
            ("no address", ""),
        ] {
            assert_eq!(place_of(url), kept);
        }
    }

    proptest! {
        #[test]
        fn whatever_an_agent_says_a_line_is_one_short_line_of_ascii(
            reason in "\\PC{0,400}|[\u{0}-\u{9f}\u{202e}]{0,400}",
            hosts in prop::collection::vec("[\u{80}-\u{10ffff}]{0,400}", 0..80),
        ) {
            let json = line(Record::Request { number: 1, hosts, reason, page: None }).to_json();
            prop_assert!(json.len() <= LOG_LINE);
            prop_assert!(json.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            let again = Line::parse(&json).unwrap();
            prop_assert_eq!(again.to_json(), json);
        }
    }
}
