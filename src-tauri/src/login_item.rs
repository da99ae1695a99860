//! Starting at login: off until the user turns it on. The only place that knows how the system stores it.

use tauri::{AppHandle, plugin::TauriPlugin};
use tauri_plugin_autostart::ManagerExt;

pub(crate) fn plugin() -> TauriPlugin<tauri::Wry> {
    tauri_plugin_autostart::Builder::new()
        .app_name("Tierbar")
        .arg("--login")
        .build()
}

pub(crate) fn is_on(app: &AppHandle) -> bool {
    app.autolaunch().is_enabled().unwrap_or_else(|error| {
        tracing::warn!(%error, "the login item could not be read");
        false
    })
}

/// # Errors
/// A sentence with the system's reason.
pub(crate) fn set(app: &AppHandle, on: bool) -> Result<(), String> {
    let item = app.autolaunch();
    let done = if on { item.enable() } else { item.disable() };
    done.map_err(|error| {
        format!(
            "Start at Login could not be turned {}: {error}",
            if on { "on" } else { "off" }
        )
    })
}

/// Rewrites an enabled login item: it contains the app's path, and the app may have moved since.
pub(crate) fn renew(app: &AppHandle) {
    if is_on(app)
        && let Err(error) = set(app, true)
    {
        tracing::warn!(%error);
    }
}
