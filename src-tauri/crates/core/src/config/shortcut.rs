//! A keyboard shortcut that works in every app.

use serde::{Deserialize, Serialize};
use std::fmt;

/// `"Alt+Space"`: one or more of Ctrl, Alt, Shift and Cmd, then a key; `""` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct Shortcut(Option<Keys>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Keys {
    /// In the order of [`MODIFIERS`].
    modifiers: [bool; 4],
    key: Key,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    /// A letter, in upper case, or a digit.
    Letter(char),
    /// F1 to F20, which type nothing by themselves.
    Function(u8),
    Named(&'static str),
}

/// The modifiers in Apple's order, each by its name here and its other names.
const MODIFIERS: [(&str, &[&str]); 4] = [
    ("Ctrl", &["Control"]),
    ("Alt", &["Option"]),
    ("Shift", &[]),
    ("Cmd", &["Command", "Super", "Meta"]),
];

impl Shortcut {
    /// Keys besides letters, digits and F1 to F20, as `KeyboardEvent.code` names them
    /// (<https://www.w3.org/TR/uievents-code/>).
    #[rustfmt::skip]
    pub const NAMED_KEYS: [&str; 24] = [
        "Space", "Enter", "Tab", "Backspace", "Delete", "Home", "End", "PageUp", "PageDown", "ArrowUp", "ArrowDown",
        "ArrowLeft", "ArrowRight", "Comma", "Period", "Slash", "Semicolon", "Quote", "BracketLeft", "BracketRight",
        "Backslash", "Minus", "Equal", "Backquote",
    ];

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.0.is_none()
    }
}

impl Key {
    fn parse(word: &str) -> Option<Self> {
        let mut letters = word.chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && letter.is_ascii_alphanumeric()
        {
            return Some(Self::Letter(letter.to_ascii_uppercase()));
        }
        if let Some(number) = word.strip_prefix(['F', 'f'])
            && let Ok(number @ 1..=20) = number.parse()
        {
            return Some(Self::Function(number));
        }
        let mut named = Shortcut::NAMED_KEYS.into_iter();
        named
            .find(|name| name.eq_ignore_ascii_case(word))
            .map(Self::Named)
    }
}

fn modifier(word: &str) -> Option<usize> {
    MODIFIERS.iter().position(|(name, others)| {
        name.eq_ignore_ascii_case(word)
            || others.iter().any(|other| other.eq_ignore_ascii_case(word))
    })
}

impl TryFrom<String> for Shortcut {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let wrong = || {
            format!(
                "\"{text}\" is not a shortcut: write one or more of Ctrl, Alt, Shift and Cmd, then a key, such as \"Alt+Space\""
            )
        };
        let mut modifiers = [false; MODIFIERS.len()];
        let mut words: Vec<_> = text.split('+').map(str::trim).collect();
        let key = words.pop().ok_or_else(wrong)?;
        for word in words {
            modifiers[modifier(word).ok_or_else(wrong)?] = true;
        }
        if key.is_empty() || modifier(key).is_some() {
            return Err(wrong());
        }
        let key = Key::parse(key).ok_or_else(|| {
            format!(
                "a shortcut cannot have the key \"{key}\": use a letter, a digit, F1 to F20, Space, or a key such as ArrowUp or Comma"
            )
        })?;
        let [ctrl, alt, _, cmd] = modifiers;
        if !(ctrl || alt || cmd || matches!(key, Key::Function(_))) {
            return Err(format!(
                "\"{text}\" would take a key from every app: add Ctrl, Alt or Cmd"
            ));
        }
        Ok(Self(Some(Keys { modifiers, key })))
    }
}

impl fmt::Display for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Keys { modifiers, key }) = self.0 else {
            return Ok(());
        };
        for ((name, _), held) in MODIFIERS.iter().zip(modifiers) {
            if held {
                write!(f, "{name}+")?;
            }
        }
        match key {
            Key::Letter(letter) => write!(f, "{letter}"),
            Key::Function(number) => write!(f, "F{number}"),
            Key::Named(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortcut(text: &str) -> Result<Shortcut, String> {
        Shortcut::try_from(text.to_owned())
    }

    #[test]
    fn a_shortcut_is_written_in_one_way() {
        for (text, written) in [
            ("", ""),
            ("Alt+Space", "Alt+Space"),
            ("option + space", "Alt+Space"),
            ("Command+Shift+Control+k", "Ctrl+Shift+Cmd+K"),
            ("Super+1", "Cmd+1"),
            ("F5", "F5"),
            ("Shift+f20", "Shift+F20"),
            ("ctrl+arrowup", "Ctrl+ArrowUp"),
        ] {
            let read = shortcut(text).unwrap();
            assert_eq!(read.to_string(), written, "{text}");
            assert_eq!(read.is_none(), written.is_empty(), "{text}");
            assert_eq!(shortcut(written), Ok(read));
        }
    }

    #[test]
    fn what_is_no_shortcut_is_refused_with_the_reason() {
        for (text, reason) in [
            (" ", "is not a shortcut"),
            ("Alt", "is not a shortcut"),
            ("Alt+", "is not a shortcut"),
            ("Space+Alt", "is not a shortcut"),
            ("Alt+A+B", "is not a shortcut"),
            ("Alt+Spcae", "cannot have the key \"Spcae\""),
            ("Alt+é", "cannot have the key \"é\""),
            ("Alt+Escape", "cannot have the key"),
            ("K", "would take a key from every app"),
            ("Shift+Space", "would take a key from every app"),
        ] {
            let error = shortcut(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
