//! Byte ranges (RFC 9110, 14): one range is served; several, or a unit or form that is unknown, are as if none was asked for.

use std::ops::Range;

/// What a `Range` header asks for, of so many bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// Everything.
    Whole,
    /// These bytes, at least one.
    Part(Range<usize>),
    /// Bytes that are not there: 416.
    Unsatisfiable,
}

/// Reads a `Range` header.
pub(super) fn parse(header: &str, length: usize) -> Asked {
    let Some(set) = header.trim().strip_prefix("bytes=") else {
        return Asked::Whole;
    };
    let Some((first, last)) = set.trim().split_once('-') else {
        return Asked::Whole;
    };
    match (number(first), number(last)) {
        (Some(Some(first)), Some(last)) => span(first, last, length),
        (Some(None), Some(Some(suffix))) => {
            if suffix == 0 || length == 0 {
                Asked::Unsatisfiable
            } else {
                Asked::Part(length.saturating_sub(suffix)..length)
            }
        }
        _ => Asked::Whole,
    }
}

fn span(first: usize, last: Option<usize>, length: usize) -> Asked {
    match last {
        Some(last) if last < first => Asked::Whole,
        _ if first >= length => Asked::Unsatisfiable,
        Some(last) => Asked::Part(first..last.saturating_add(1).min(length)),
        None => Asked::Part(first..length),
    }
}

/// A number, nothing where there is none, or no number at all. One too large for us is larger than any file.
fn number(text: &str) -> Option<Option<usize>> {
    let text = text.trim();
    match (text.is_empty(), text.bytes().all(|b| b.is_ascii_digit())) {
        (true, _) => Some(None),
        (false, true) => Some(Some(text.parse().unwrap_or(usize::MAX))),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_its_table_says() {
        for (header, asked) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-", Asked::Part(2..10)),
            ("bytes=2-4", Asked::Part(2..5)),
            ("bytes=2-99", Asked::Part(2..10)),
            ("bytes=9-18446744073709551616", Asked::Part(9..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-99", Asked::Part(0..10)),
            ("bytes=10-", Asked::Unsatisfiable),
            ("bytes=99999999999999999999-", Asked::Unsatisfiable),
            ("bytes=-0", Asked::Unsatisfiable),
            ("bytes=4-2", Asked::Whole),
            ("bytes=0-1,3-4", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("items=0-1", Asked::Whole),
            ("bytes", Asked::Whole),
        ] {
            assert_eq!(parse(header, 10), asked, "{header}");
        }
        assert_eq!(parse("bytes=-1", 0), Asked::Unsatisfiable);
    }
}
