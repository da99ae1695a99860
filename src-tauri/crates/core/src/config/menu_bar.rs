//! The app's icon in the menu bar.

use super::Shortcut;
use serde::{Deserialize, Serialize};

/// The icon in the menu bar, or in the system tray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct MenuBarConfig {
    /// The text beside the icon.
    pub text: MenuBarText,
    /// What a click on the icon opens. On Linux it is always the menu.
    pub click: MenuBarClick,
    /// The keys that open and close the popover from any app. No effect on Wayland.
    pub shortcut: Shortcut,
}

/// The text beside the icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MenuBarText {
    #[default]
    None,
    /// The tokens per second of the last answer.
    Speed,
    /// The percentage of RAM in use.
    Memory,
}

/// What a click on the icon opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MenuBarClick {
    #[default]
    Menu,
    /// A small window with memory, speed and tiers. A secondary click opens the menu.
    Popover,
}
