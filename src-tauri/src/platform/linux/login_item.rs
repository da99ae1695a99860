//! Starting at login through a desktop entry in `~/.config/autostart`.

use tauri::{AppHandle, plugin::TauriPlugin};
use tauri_plugin_autostart::ManagerExt;

pub(super) fn plugin() -> TauriPlugin<tauri::Wry> {
    tauri_plugin_autostart::Builder::new()
        .app_name("Tierbar")
        .arg("--login")
        .build()
}

/// # Errors
/// The system's reason why it is unknown.
pub(crate) fn is_on(app: &AppHandle) -> Result<bool, String> {
    app.autolaunch()
        .is_enabled()
        .map_err(|error| error.to_string())
}

/// # Errors
/// The system's reason.
pub(crate) fn set(app: &AppHandle, on: bool) -> Result<(), String> {
    let item = app.autolaunch();
    let done = if on { item.enable() } else { item.disable() };
    done.map_err(|error| error.to_string())
}

/// Rewrites an enabled entry: it contains the app's path, and the app may have moved since.
///
/// # Errors
/// The system's reason.
pub(crate) fn renew(app: &AppHandle) -> Result<(), String> {
    if is_on(app)? { set(app, true) } else { Ok(()) }
}
