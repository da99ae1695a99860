//! The menu bar while one of the app's windows is in front. It ends nothing: Quit is in the menu of the status item.

use tauri::{
    AppHandle, Manager, Wry,
    menu::{Menu, MenuEvent, MenuItem, PredefinedMenuItem, Submenu},
};

const CLOSE_ALL: &str = "close-all-windows";

words! {
    /// A text of this menu.
    MenuWord {
        About: "About Tierbar", "Über Tierbar", "À propos de Tierbar";
        Hide: "Hide Tierbar", "Tierbar ausblenden", "Masquer Tierbar";
        HideOthers: "Hide Others", "Andere ausblenden", "Masquer les autres";
        ShowAll: "Show All", "Alle einblenden", "Tout afficher";
        CloseAll: "Close All Windows", "Alle Fenster schließen", "Fermer toutes les fenêtres";
        Edit: "Edit", "Bearbeiten", "Édition";
        Undo: "Undo", "Widerrufen", "Annuler";
        Redo: "Redo", "Wiederholen", "Rétablir";
        Cut: "Cut", "Ausschneiden", "Couper";
        Copy: "Copy", "Kopieren", "Copier";
        Paste: "Paste", "Einsetzen", "Coller";
        SelectAll: "Select All", "Alles auswählen", "Tout sélectionner";
        Window: "Window", "Fenster", "Fenêtre";
        Minimize: "Minimize", "Im Dock ablegen", "Placer dans le Dock";
        Zoom: "Zoom", "Zoomen", "Réduire/agrandir";
        FullScreen: "Enter Full Screen", "Vollbild", "Plein écran";
        Close: "Close Window", "Fenster schließen", "Fermer la fenêtre";
    }
}

pub(super) fn build(app: &AppHandle) -> tauri::Result<Menu<Wry>> {
    let separator = || PredefinedMenuItem::separator(app);
    let close_all = MenuItem::with_id(
        app,
        CLOSE_ALL,
        MenuWord::CloseAll.text(),
        true,
        Some("Cmd+Q"),
    )?;
    let named = |word: MenuWord| Some(word.text());
    let tierbar = Submenu::with_items(
        app,
        "Tierbar",
        true,
        &[
            &PredefinedMenuItem::about(app, named(MenuWord::About), None)?,
            &separator()?,
            &PredefinedMenuItem::hide(app, named(MenuWord::Hide))?,
            &PredefinedMenuItem::hide_others(app, named(MenuWord::HideOthers))?,
            &PredefinedMenuItem::show_all(app, named(MenuWord::ShowAll))?,
            &separator()?,
            &close_all,
        ],
    )?;
    // A web view copies and pastes only by the items of this menu.
    let edit = Submenu::with_items(
        app,
        MenuWord::Edit.text(),
        true,
        &[
            &PredefinedMenuItem::undo(app, named(MenuWord::Undo))?,
            &PredefinedMenuItem::redo(app, named(MenuWord::Redo))?,
            &separator()?,
            &PredefinedMenuItem::cut(app, named(MenuWord::Cut))?,
            &PredefinedMenuItem::copy(app, named(MenuWord::Copy))?,
            &PredefinedMenuItem::paste(app, named(MenuWord::Paste))?,
            &PredefinedMenuItem::select_all(app, named(MenuWord::SelectAll))?,
        ],
    )?;
    let window = Submenu::with_items(
        app,
        MenuWord::Window.text(),
        true,
        &[
            &PredefinedMenuItem::minimize(app, named(MenuWord::Minimize))?,
            &PredefinedMenuItem::maximize(app, named(MenuWord::Zoom))?,
            &PredefinedMenuItem::fullscreen(app, named(MenuWord::FullScreen))?,
            &separator()?,
            &PredefinedMenuItem::close_window(app, named(MenuWord::Close))?,
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

#[cfg(test)]
mod tests {
    use super::MenuWord;

    #[test]
    fn each_text_is_there_in_each_language() {
        for word in MenuWord::all() {
            assert!(word.texts().iter().all(|text| !text.is_empty()), "{word:?}");
        }
    }
}
