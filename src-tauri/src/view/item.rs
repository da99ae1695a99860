//! The items of the menu, as values.

use super::command::Command;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// Text that cannot be clicked.
    Text {
        key: String,
        text: String,
    },
    Action {
        command: Command,
        text: String,
    },
    Check {
        command: Command,
        text: String,
        checked: bool,
    },
    Submenu {
        key: String,
        text: String,
        items: Vec<Self>,
    },
    Separator {
        key: String,
    },
}

impl Item {
    pub(crate) fn text(key: &str, text: impl Into<String>) -> Self {
        Self::Text {
            key: format!("text:{key}"),
            text: text.into(),
        }
    }

    pub(crate) fn action(command: Command, text: impl Into<String>) -> Self {
        Self::Action {
            command,
            text: text.into(),
        }
    }

    pub(crate) fn check(command: Command, text: impl Into<String>, checked: bool) -> Self {
        Self::Check {
            command,
            text: text.into(),
            checked,
        }
    }

    /// A line above what has this name.
    pub(crate) fn separator(name: &str) -> Self {
        Self::Separator {
            key: format!("separator:{name}"),
        }
    }

    /// What stays the same while the item changes; unique in the menu.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Text { key, .. } | Self::Submenu { key, .. } | Self::Separator { key } => {
                key.clone()
            }
            Self::Action { command, .. } | Self::Check { command, .. } => command.id(),
        }
    }
}
