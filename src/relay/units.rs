//! UTF-16 units: how the protocol counts frames, briefings and labels.

/// The UTF-16 units of `text`.
///
/// Every character has one first byte, and those outside the basic plane (first byte from `F0`) take two units. Both
/// counts are plain loops over bytes, which the compiler turns into vector code: a picture of 4 MB takes well under a
/// millisecond.
#[must_use]
pub fn units(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let characters = text.bytes().filter(|byte| byte & 0xC0 != 0x80).count();
    let pairs = text.bytes().filter(|byte| *byte >= 0xF0).count();
    characters + pairs
}

/// The longest beginning of `text` that has at most `most` units; a surrogate pair is never split.
#[must_use]
pub fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut room = most;
    for (start, character) in text.char_indices() {
        match room.checked_sub(character.len_utf16()) {
            Some(left) => room = left,
            None => return &text[..start],
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_counts_units_and_keeps_characters_whole() {
        for (text, most, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc"),
            ("äöü", 2, "äö"),
            ("a😀b", 2, "a"),
            ("a😀b", 3, "a😀"),
            ("", 0, ""),
            ("x", 0, ""),
        ] {
            assert_eq!(cut(text, most), expected, "{text:?} at {most}");
        }
    }

    proptest! {
        #[test]
        fn units_are_what_utf16_says(text in any::<String>(), most in 0usize..40) {
            prop_assert_eq!(units(&text), text.encode_utf16().count());
            let kept = cut(&text, most);
            prop_assert!(text.starts_with(kept) && units(kept) <= most);
            prop_assert!(kept.len() == text.len() || units(kept) + 2 > most);
        }
    }
}
