//! A Linux desktop, which may lack a display.

/// Connects to the display, or returns why there is none. The window library would panic instead.
pub(crate) fn display() -> Result<(), String> {
    gtk::init().map_err(|_| "no display is available (DISPLAY, WAYLAND_DISPLAY)".to_owned())
}

/// Does nothing: on Linux an app without windows is not in the task bar.
pub(crate) fn leave_dock(_: &mut tauri::App) {}
