//! The menu bar while one of the app's windows is in front. It ends nothing: Quit is in the menu of the status item.

use tauri::{
    AppHandle, Manager, Wry,
    menu::{Menu, MenuEvent, MenuItem, PredefinedMenuItem, Submenu},
};

const CLOSE_ALL: &str = "close-all-windows";

pub(super) fn build(app: &AppHandle) -> tauri::Result<Menu<Wry>> {
    let separator = || PredefinedMenuItem::separator(app);
    let close_all = MenuItem::with_id(app, CLOSE_ALL, "Close All Windows", true, Some("Cmd+Q"))?;
    let tierbar = Submenu::with_items(
        app,
        "Tierbar",
        true,
        &[
            &PredefinedMenuItem::about(app, None, None)?,
            &separator()?,
            &PredefinedMenuItem::hide(app, None)?,
            &PredefinedMenuItem::hide_others(app, None)?,
            &PredefinedMenuItem::show_all(app, None)?,
            &separator()?,
            &close_all,
        ],
    )?;
    // A web view copies and pastes only by the items of this menu.
    let edit = Submenu::with_items(
        app,
        "Edit",
        true,
        &[
            &PredefinedMenuItem::undo(app, None)?,
            &PredefinedMenuItem::redo(app, None)?,
            &separator()?,
            &PredefinedMenuItem::cut(app, None)?,
            &PredefinedMenuItem::copy(app, None)?,
            &PredefinedMenuItem::paste(app, None)?,
            &PredefinedMenuItem::select_all(app, None)?,
        ],
    )?;
    let window = Submenu::with_items(
        app,
        "Window",
        true,
        &[
            &PredefinedMenuItem::minimize(app, None)?,
            &PredefinedMenuItem::maximize(app, None)?,
            &PredefinedMenuItem::fullscreen(app, None)?,
            &separator()?,
            &PredefinedMenuItem::close_window(app, None)?,
        ],
    )?;
    Menu::with_items(app, &[&tierbar, &edit, &window])
}

#[expect(clippy::needless_pass_by_value, reason = "Tauri passes it so")]
pub(super) fn clicked(app: &AppHandle, event: MenuEvent) {
    if event.id() != CLOSE_ALL {
        return;
    }
    for window in app.webview_windows().values() {
        if let Err(error) = window.close() {
            tracing::warn!(%error, window = window.label(), "the window could not be closed");
        }
    }
}
