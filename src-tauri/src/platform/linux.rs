//! A Linux desktop, which may lack a display.

pub(crate) mod login_item;

use std::{io, path::Path};
use tauri::{AppHandle, Builder, RunEvent, Wry};

/// Connects to the display, or returns why there is none. The window library would panic instead.
pub(crate) fn display() -> Result<(), String> {
    gtk::init().map_err(|_| "no display is available (DISPLAY, WAYLAND_DISPLAY)".to_owned())
}

pub(crate) fn configure(builder: Builder<Wry>) -> Builder<Wry> {
    builder.plugin(login_item::plugin())
}

/// Does nothing: on Linux an app without windows is not in the task bar.
pub(crate) fn leave_dock(_: &mut tauri::App) {}

/// Does nothing: each window has its own place in the task bar.
pub(crate) fn show_in_dock(_: &AppHandle, _: bool) {}

/// Always false: a second start asks the running host to open its window.
pub(crate) fn is_reopen(_: &RunEvent) -> bool {
    false
}

/// Shows a folder in the file manager.
pub(crate) fn reveal(folder: &Path) -> io::Result<()> {
    open::that_detached(folder)
}
