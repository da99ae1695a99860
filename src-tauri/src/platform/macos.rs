//! macOS: the app is in the menu bar, and in the Dock while it has a window.

pub(crate) mod login_item;
mod menu;

use objc2::MainThreadMarker;
use objc2_app_kit::NSApplication;
use std::{io, path::Path, process::Command};
use tauri::{ActivationPolicy, App, AppHandle, Builder, RunEvent, Wry};

/// Always succeeds: a session that can start an app has a display.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn display() -> Result<(), String> {
    Ok(())
}

/// Tauri's own menu has an item that ends the app on ⌘Q without asking the app, and with it the server.
pub(crate) fn configure(builder: Builder<Wry>) -> Builder<Wry> {
    builder
        .activate_ignoring_other_apps(false)
        .enable_macos_default_menu(false)
        .menu(menu::build)
        .on_menu_event(menu::clicked)
}

/// Keeps the app out of the Dock and the app switcher until it has a window, even outside its bundle, without
/// `LSUIElement`. It also keeps macOS from opening the app again at login because it was open at logout.
pub(crate) fn leave_dock(app: &mut App) {
    app.set_activation_policy(ActivationPolicy::Accessory);
    if let Some(main) = MainThreadMarker::new() {
        NSApplication::sharedApplication(main).disableRelaunchOnLogin();
    }
}

/// With an icon in the Dock, a window behind others can be found again.
pub(crate) fn show_in_dock(app: &AppHandle, shown: bool) {
    let policy = if shown {
        ActivationPolicy::Regular
    } else {
        ActivationPolicy::Accessory
    };
    if let Err(error) = app.set_activation_policy(policy) {
        tracing::warn!(%error, "the Dock icon could not be changed");
    }
}

/// Whether the user opened the app again, in the Finder, with Spotlight or in the Dock. macOS starts no second copy.
pub(crate) fn is_reopen(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Reopen { .. })
}

/// Shows a folder in the Finder, selected in the folder around it. Opening it would start it if it were an app.
pub(crate) fn reveal(folder: &Path) -> io::Result<()> {
    let done = Command::new("/usr/bin/open")
        .arg("-R")
        .arg(folder)
        .status()?;
    if done.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("`open -R` ended with {done}")))
    }
}
