//! A Linux desktop: a display is not a given.

/// Reaches the display, or says why there is none. The window library would panic instead.
pub(crate) fn display() -> Result<(), String> {
    gtk::init().map_err(|_| "no display can be reached (DISPLAY, WAYLAND_DISPLAY)".to_owned())
}

/// A tray icon has no place in a task bar to begin with.
pub(crate) fn leave_dock(_: &mut tauri::App) {}
