//! A time that the owner types: a while ago, or a time of the calendar.

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// From when on lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// This long before now.
    Ago(Duration),
    /// At this time.
    At(OffsetDateTime),
}

/// No time; the message says how to write one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time; write a while ago, like 90s, 10m, 2h or 3d, or a time like 2026-12-01T10:00:00Z or 2026-12-01"
)]
pub struct SinceError(String);

impl Since {
    /// Reads what was typed.
    ///
    /// # Errors
    /// Names the forms that work.
    pub fn parse(text: &str) -> Result<Self, SinceError> {
        let at = |text: &str| OffsetDateTime::parse(text, &Rfc3339).map(Self::At).ok();
        ago(text)
            .map(Self::Ago)
            .or_else(|| at(text))
            .or_else(|| at(&format!("{text}T00:00:00Z")))
            .ok_or_else(|| SinceError(text.chars().take(80).collect()))
    }

    /// The time it means now. What is before all time is its beginning.
    pub(super) fn at(self, now: OffsetDateTime) -> OffsetDateTime {
        match self {
            Self::At(time) => time,
            Self::Ago(length) => now
                .checked_sub(length)
                .unwrap_or(OffsetDateTime::UNIX_EPOCH),
        }
    }
}

fn ago(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let number: u32 = digits.parse().ok()?;
    Some(Duration::seconds(i64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_while_ago_and_a_time_are_understood() {
        let now = OffsetDateTime::parse("2026-12-01T10:00:00Z", &Rfc3339).unwrap();
        for (text, time) in [
            ("90s", "2026-12-01T09:58:30Z"),
            ("10m", "2026-12-01T09:50:00Z"),
            ("2h", "2026-12-01T08:00:00Z"),
            ("3d", "2026-11-28T10:00:00Z"),
            ("0s", "2026-12-01T10:00:00Z"),
            ("2026-11-30T23:00:00+01:00", "2026-11-30T22:00:00Z"),
            ("2026-11-30", "2026-11-30T00:00:00Z"),
        ] {
            let since = Since::parse(text).unwrap().at(now);
            assert_eq!(
                since,
                OffsetDateTime::parse(time, &Rfc3339).unwrap(),
                "{text}"
            );
        }
        Since::parse("4294967295d").unwrap().at(now);
    }

    #[test]
    fn what_is_no_time_names_the_forms() {
        for text in [
            "",
            "m",
            "10",
            "10 m",
            "-10m",
            "yesterday",
            "2026-13-01",
            "99999999999d",
            "10w",
            "ü",
        ] {
            let error = Since::parse(text).unwrap_err().to_string();
            assert!(
                error.contains("10m") && error.contains("2026-12-01T10:00:00Z"),
                "{error}"
            );
        }
    }
}
