//! Keys by their W3C names (`KeyboardEvent.key`), on a US layout; spellings that people use become those names.

use crate::policy::limits::PAGE_TEXT;

/// The modifier keys that are held, as bits of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modifiers(u32);

impl Modifiers {
    /// `Alt`.
    pub const ALT: Self = Self(1);
    /// `Control`.
    pub const CONTROL: Self = Self(2);
    /// `Meta`: the command key of a Mac, the Windows key elsewhere.
    pub const META: Self = Self(4);
    /// `Shift`.
    pub const SHIFT: Self = Self(8);

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one of these is held.
    pub fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// The modifier of a name, however it is spelt.
    pub fn named(name: &str) -> Option<Self> {
        Some(match normal(name).as_str() {
            "alt" | "option" | "opt" => Self::ALT,
            "control" | "ctrl" | "ctl" => Self::CONTROL,
            "meta" | "cmd" | "command" | "super" | "win" | "windows" => Self::META,
            "shift" => Self::SHIFT,
            "mod" | "controlormeta" | "cmdorctrl" | "ctrlorcmd" => {
                if cfg!(target_os = "macos") {
                    Self::META
                } else {
                    Self::CONTROL
                }
            }
            _ => return None,
        })
    }

    /// The keys that are held, in the order in which they are pressed.
    pub(super) fn keys(self) -> impl DoubleEndedIterator<Item = (Self, &'static Named)> {
        const ORDER: [(Modifiers, &str); 4] = [
            (Modifiers::CONTROL, "control"),
            (Modifiers::ALT, "alt"),
            (Modifiers::SHIFT, "shift"),
            (Modifiers::META, "meta"),
        ];
        ORDER
            .into_iter()
            .filter(move |(modifier, _)| self.any(*modifier))
            .filter_map(|(modifier, name)| Some((modifier, named(name)?)))
    }
}

/// One stroke of a key: what its events say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stroke {
    /// The modifiers that are held.
    pub modifiers: Modifiers,
    /// `KeyboardEvent.key`.
    pub key: String,
    /// `KeyboardEvent.code`; empty where the layout has no such key.
    pub code: String,
    /// `KeyboardEvent.keyCode`.
    pub virtual_key: u32,
    /// `KeyboardEvent.location`.
    pub location: u32,
    /// What it writes.
    pub text: Option<String>,
}

/// A key that there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no key {name:?}{}", nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest:?}?")))]
pub struct UnknownKey {
    /// As it was written, cut.
    pub name: String,
    /// The name that is most like it.
    pub nearest: Option<&'static str>,
}

/// A key that has a name and not a character.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) key: &'static str,
    pub(super) code: &'static str,
    pub(super) virtual_key: u32,
    pub(super) location: u32,
    text: Option<&'static str>,
}

const fn key(key: &'static str, code: &'static str, virtual_key: u32) -> Named {
    Named {
        key,
        code,
        virtual_key,
        location: 0,
        text: None,
    }
}

/// A modifier is the one on the left.
const fn left(key: &'static str, code: &'static str, virtual_key: u32) -> Named {
    Named {
        key,
        code,
        virtual_key,
        location: 1,
        text: None,
    }
}

const NAMED: &[Named] = &[
    left("Alt", "AltLeft", 18),
    left("Control", "ControlLeft", 17),
    left("Meta", "MetaLeft", 91),
    left("Shift", "ShiftLeft", 16),
    Named {
        text: Some("\r"),
        ..key("Enter", "Enter", 13)
    },
    Named {
        text: Some(" "),
        ..key(" ", "Space", 32)
    },
    key("Tab", "Tab", 9),
    key("Escape", "Escape", 27),
    key("Backspace", "Backspace", 8),
    key("Delete", "Delete", 46),
    key("Insert", "Insert", 45),
    key("Home", "Home", 36),
    key("End", "End", 35),
    key("PageUp", "PageUp", 33),
    key("PageDown", "PageDown", 34),
    key("ArrowLeft", "ArrowLeft", 37),
    key("ArrowUp", "ArrowUp", 38),
    key("ArrowRight", "ArrowRight", 39),
    key("ArrowDown", "ArrowDown", 40),
    key("CapsLock", "CapsLock", 20),
    key("NumLock", "NumLock", 144),
    key("ScrollLock", "ScrollLock", 145),
    key("Pause", "Pause", 19),
    key("PrintScreen", "PrintScreen", 44),
    key("ContextMenu", "ContextMenu", 93),
    key("F1", "F1", 112),
    key("F2", "F2", 113),
    key("F3", "F3", 114),
    key("F4", "F4", 115),
    key("F5", "F5", 116),
    key("F6", "F6", 117),
    key("F7", "F7", 118),
    key("F8", "F8", 119),
    key("F9", "F9", 120),
    key("F10", "F10", 121),
    key("F11", "F11", 122),
    key("F12", "F12", 123),
];

/// Spellings that people use, and the W3C name.
const SPELLINGS: &[(&str, &str)] = &[
    ("return", "enter"),
    ("esc", "escape"),
    ("del", "delete"),
    ("ins", "insert"),
    ("bksp", "backspace"),
    ("back", "backspace"),
    ("pgup", "pageup"),
    ("pgdn", "pagedown"),
    ("pgdown", "pagedown"),
    ("left", "arrowleft"),
    ("up", "arrowup"),
    ("right", "arrowright"),
    ("down", "arrowdown"),
    ("leftarrow", "arrowleft"),
    ("uparrow", "arrowup"),
    ("rightarrow", "arrowright"),
    ("downarrow", "arrowdown"),
    ("space", " "),
    ("spacebar", " "),
    ("menu", "contextmenu"),
    ("prtsc", "printscreen"),
];

/// Characters of the US layout that are no letters: the key, its number, without and with Shift.
const CHARACTERS: &[(&str, u32, char, char)] = &[
    ("Digit1", 49, '1', '!'),
    ("Digit2", 50, '2', '@'),
    ("Digit3", 51, '3', '#'),
    ("Digit4", 52, '4', '$'),
    ("Digit5", 53, '5', '%'),
    ("Digit6", 54, '6', '^'),
    ("Digit7", 55, '7', '&'),
    ("Digit8", 56, '8', '*'),
    ("Digit9", 57, '9', '('),
    ("Digit0", 48, '0', ')'),
    ("Minus", 189, '-', '_'),
    ("Equal", 187, '=', '+'),
    ("BracketLeft", 219, '[', '{'),
    ("BracketRight", 221, ']', '}'),
    ("Backslash", 220, '\\', '|'),
    ("Semicolon", 186, ';', ':'),
    ("Quote", 222, '\'', '"'),
    ("Backquote", 192, '`', '~'),
    ("Comma", 188, ',', '<'),
    ("Period", 190, '.', '>'),
    ("Slash", 191, '/', '?'),
];

/// What a shortcut does where the system's menus would do it.
const MAC_COMMANDS: &[(&str, &str)] = &[
    ("a", "selectAll"),
    ("c", "copy"),
    ("v", "paste"),
    ("x", "cut"),
    ("z", "undo"),
];

impl Stroke {
    /// A key with its modifiers: `a`, `Enter`, `Control+Shift+K`, `ctrl+a`, `cmd++`.
    pub fn parse(text: &str) -> Result<Self, UnknownKey> {
        let (front, last) = match text.strip_suffix("++") {
            Some(front) => (Some(front), "+"),
            None if text == "+" => (None, "+"),
            None => match text.rsplit_once('+') {
                Some((front, last)) => (Some(front), last),
                None => (None, text),
            },
        };
        let mut modifiers = Modifiers::default();
        for name in front.into_iter().flat_map(|front| front.split('+')) {
            modifiers = modifiers.and(Modifiers::named(name).ok_or_else(|| unknown(name))?);
        }
        Self::of(last, modifiers)
    }

    fn of(name: &str, modifiers: Modifiers) -> Result<Self, UnknownKey> {
        let mut characters = name.chars();
        if let (Some(one), None) = (characters.next(), characters.next()) {
            return Ok(Self::character(one, modifiers));
        }
        if let Some(modifier) = Modifiers::named(name)
            && let Some((_, named)) = modifier.keys().next()
        {
            return Ok(Self::named(named, modifiers));
        }
        match normal(name).as_str() {
            "plus" => Ok(Self::character('+', modifiers)),
            "minus" => Ok(Self::character('-', modifiers)),
            other => named(other)
                .map(|named| Self::named(named, modifiers))
                .ok_or_else(|| unknown(name)),
        }
    }

    fn named(named: &Named, modifiers: Modifiers) -> Self {
        let text = named.text.filter(|_| !silent(modifiers));
        Self {
            modifiers,
            key: named.key.to_owned(),
            code: named.code.to_owned(),
            virtual_key: named.virtual_key,
            location: named.location,
            text: text.map(str::to_owned),
        }
    }

    /// The stroke that writes a character. Shift is held for one that needs it; but `Ctrl+A` means the key, and is
    /// `Control` with `a`.
    pub fn character(character: char, modifiers: Modifiers) -> Self {
        match character {
            '\n' | '\r' => return Self::from_name("enter", modifiers),
            '\t' => return Self::from_name("tab", modifiers),
            ' ' => return Self::from_name(" ", modifiers),
            _ => {}
        }
        let upper = character.is_ascii_uppercase() && !silent(modifiers);
        let letter = character.is_ascii_alphabetic();
        let found = CHARACTERS
            .iter()
            .find(|(.., plain, shifted)| [*plain, *shifted].contains(&character));
        let (code, virtual_key, plain, shifted) = match found {
            Some((code, number, plain, shifted)) => ((*code).to_owned(), *number, *plain, *shifted),
            None if letter => {
                let capital = character.to_ascii_uppercase();
                let small = character.to_ascii_lowercase();
                (format!("Key{capital}"), u32::from(capital), small, capital)
            }
            None => (String::new(), 0, character, character),
        };
        let shift = upper || (!letter && character == shifted && plain != shifted);
        let modifiers = if shift {
            modifiers.and(Modifiers::SHIFT)
        } else {
            modifiers
        };
        let written = if modifiers.any(Modifiers::SHIFT) {
            shifted
        } else {
            plain
        };
        Self {
            modifiers,
            key: written.to_string(),
            code,
            virtual_key,
            location: 0,
            text: (!silent(modifiers)).then(|| written.to_string()),
        }
    }

    fn from_name(name: &str, modifiers: Modifiers) -> Self {
        // The three names that this is called with are in the table.
        named(name).map_or_else(
            || Self::character('?', modifiers),
            |named| Self::named(named, modifiers),
        )
    }

    /// Whether a key of the layout writes it; anything else is inserted as an input method does.
    pub fn is_on_keyboard(character: char) -> bool {
        character == ' ' || character == '\n' || character == '\t' || character.is_ascii_graphic()
    }

    /// What macOS does at this shortcut.
    pub(super) fn commands(&self) -> Vec<&'static str> {
        let shortcut = cfg!(target_os = "macos") && self.modifiers == Modifiers::META;
        MAC_COMMANDS
            .iter()
            .filter(|(key, _)| shortcut && *key == self.key)
            .map(|(_, command)| *command)
            .collect()
    }
}

/// Whether keys write nothing under these modifiers.
fn silent(modifiers: Modifiers) -> bool {
    modifiers.any(Modifiers::ALT.and(Modifiers::CONTROL).and(Modifiers::META))
}

/// A name without what people spell differently.
fn normal(name: &str) -> String {
    if name == " " {
        return name.to_owned();
    }
    name.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

fn named(normal: &str) -> Option<&'static Named> {
    let spelling = SPELLINGS.iter().find(|(spelling, _)| *spelling == normal);
    let name = spelling.map_or(normal, |(_, name)| name);
    NAMED
        .iter()
        .find(|named| named.key.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> UnknownKey {
    let wanted = normal(name);
    let alike = |key: &&str| strsim::jaro_winkler(&wanted, &key.to_lowercase());
    let spellings = SPELLINGS.iter().filter_map(|(spelling, key)| {
        let likeness = strsim::jaro_winkler(&wanted, spelling);
        Some((likeness, named(key)?.key))
    });
    let nearest = NAMED
        .iter()
        .map(|named| (alike(&named.key), named.key))
        .chain(spellings)
        .filter(|(likeness, _)| *likeness >= 0.7)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, key)| key);
    UnknownKey {
        name: name.chars().take(PAGE_TEXT).collect(),
        nearest,
    }
}

#[cfg(test)]
mod tests;
