//! Text from outside, made harmless for a terminal and for whoever reads it: what is invisible, moves the cursor or turns
//! the direction of writing is spelled out.

use crate::policy::limits::PAGE_TEXT;

/// A text that pages, agents, relays or the browser made, on one line, at most [`PAGE_TEXT`] characters of it.
pub(super) fn text(from_outside: &str) -> String {
    let mut shown = whole(from_outside, PAGE_TEXT);
    if from_outside.chars().nth(PAGE_TEXT).is_some() {
        shown.push('…');
    }
    shown
}

/// A message of several lines that quotes such texts.
pub(super) fn lines(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(text).collect();
    lines.join("\n")
}

/// A link, which is of no use when it is cut.
pub(super) fn link(from_outside: &str) -> String {
    whole(from_outside, usize::MAX)
}

/// A JSON text whose strings mean the same, written without the characters that [`text`] spells out.
pub(super) fn json(value: &serde_json::Value) -> String {
    let plain = value.to_string();
    let mut shown = String::with_capacity(plain.len());
    for character in plain.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

fn whole(from_outside: &str, most: usize) -> String {
    let mut shown = String::with_capacity(from_outside.len().min(4 * PAGE_TEXT));
    for character in from_outside.chars().take(most) {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            hidden if is_hidden(hidden) => shown.extend(hidden.escape_unicode()),
            visible => shown.push(visible),
        }
    }
    shown
}

/// Controls, marks of direction, and what takes no width.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_or_hides_is_spelled_out() {
        for (raw, expected) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("safe\u{202e}gpj.exe", "safe\\u{202e}gpj.exe"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}"),
            ("über 日本 😀", "über 日本 😀"),
        ] {
            assert_eq!(text(raw), expected);
        }
    }

    #[test]
    fn a_long_text_is_cut_and_a_link_is_not() {
        let long = "ä".repeat(PAGE_TEXT + 1);
        assert_eq!(text(&long).chars().count(), PAGE_TEXT + 1);
        assert!(text(&long).ends_with('…'));
        assert_eq!(text(&long[..2 * PAGE_TEXT]), long[..2 * PAGE_TEXT]);
        assert_eq!(link(&long), long);
    }

    #[test]
    fn json_means_the_same_and_hides_nothing() {
        let value = serde_json::json!({"url": "a\u{202e}\u{9b}\u{e0041}\n😀"});
        let written = json(&value);
        assert!(!written.chars().any(is_hidden), "{written}");
        assert!(written.contains('😀'));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&written).unwrap(),
            value
        );
    }
}
