use proptest::prelude::*;

use super::*;

fn stroke(text: &str) -> (String, String, u32, u32, Option<String>) {
    let stroke = Stroke::parse(text).unwrap();
    let bits = stroke.modifiers.bits();
    (
        stroke.key,
        stroke.code,
        stroke.virtual_key,
        bits,
        stroke.text,
    )
}

#[test]
fn spellings_become_the_keys_of_the_w3c() {
    for (text, key, code, number, modifiers, written) in [
        ("a", "a", "KeyA", 65, 0, Some("a")),
        ("A", "A", "KeyA", 65, 8, Some("A")),
        ("shift+a", "A", "KeyA", 65, 8, Some("A")),
        ("ctrl+a", "a", "KeyA", 65, 2, None),
        ("Ctrl+A", "a", "KeyA", 65, 2, None),
        ("Control+Shift+K", "K", "KeyK", 75, 10, None),
        ("cmd+c", "c", "KeyC", 67, 4, None),
        ("Option+ArrowLeft", "ArrowLeft", "ArrowLeft", 37, 1, None),
        ("Return", "Enter", "Enter", 13, 0, Some("\r")),
        ("esc", "Escape", "Escape", 27, 0, None),
        ("page_down", "PageDown", "PageDown", 34, 0, None),
        ("Page Down", "PageDown", "PageDown", 34, 0, None),
        ("PgDn", "PageDown", "PageDown", 34, 0, None),
        ("UP", "ArrowUp", "ArrowUp", 38, 0, None),
        ("space", " ", "Space", 32, 0, Some(" ")),
        (" ", " ", "Space", 32, 0, Some(" ")),
        ("f11", "F11", "F11", 122, 0, None),
        ("+", "+", "Equal", 187, 8, Some("+")),
        ("ctrl++", "+", "Equal", 187, 10, None),
        ("ctrl+plus", "+", "Equal", 187, 10, None),
        ("ctrl+-", "-", "Minus", 189, 2, None),
        ("!", "!", "Digit1", 49, 8, Some("!")),
        ("shift+1", "!", "Digit1", 49, 8, Some("!")),
        ("ctrl", "Control", "ControlLeft", 17, 0, None),
        ("é", "é", "", 0, 0, Some("é")),
    ] {
        let expected = (
            key.to_owned(),
            code.to_owned(),
            number,
            modifiers,
            written.map(str::to_owned),
        );
        assert_eq!(stroke(text), expected, "{text}");
    }
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_nearest() {
    for (text, name, nearest) in [
        ("Entr", "Entr", Some("Enter")),
        ("retrun", "retrun", Some("Enter")),
        ("ArowLeft", "ArowLeft", Some("ArrowLeft")),
        ("contrl+a", "contrl", Some("Control")),
        ("ctrl+", "", None),
        ("", "", None),
        ("qqqqqq", "qqqqqq", None),
    ] {
        let unknown = Stroke::parse(text).unwrap_err();
        assert_eq!(
            (unknown.name.as_str(), unknown.nearest),
            (name, nearest),
            "{text}"
        );
    }
    assert_eq!(
        Stroke::parse("Entr").unwrap_err().to_string(),
        "there is no key \"Entr\"; did you mean \"Enter\"?"
    );
}

#[test]
fn each_character_of_ascii_has_a_key() {
    for character in (' '..='~').chain(['\n', '\t']) {
        let stroke = Stroke::character(character, Modifiers::default());
        assert!(!stroke.code.is_empty(), "{character:?}");
        assert!(Stroke::is_on_keyboard(character));
    }
    assert!(!Stroke::is_on_keyboard('é') && !Stroke::is_on_keyboard('\u{7f}'));
}

proptest! {
    #[test]
    fn parsing_never_panics_and_its_error_stays_short(text in "\\PC*", plus in "[a-z+ ]{0,12}") {
        for text in [text, plus] {
            if let Err(unknown) = Stroke::parse(&text) {
                prop_assert!(unknown.name.chars().count() <= PAGE_TEXT);
            }
        }
    }
}
