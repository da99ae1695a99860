//! The commands that windows may call: only what the HTTP API cannot do. Each window's capability lists its own.

use crate::{
    login_item, tray,
    windows::{self, Page},
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tauri::{AppHandle, Manager, State};
use tierbar_host::Host;

/// The API's address and the owner's token.
#[derive(Serialize)]
pub(crate) struct Connection {
    url: String,
    token: String,
}

/// A section of the settings that can be opened.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Section {
    Models,
}

#[tauri::command]
pub(crate) fn connection(host: State<'_, Host>) -> Connection {
    Connection {
        url: host.url().to_owned(),
        token: host.token().to_owned(),
    }
}

#[tauri::command]
pub(crate) fn open_chat(app: AppHandle) {
    windows::open(&app, Page::Chat);
}

#[tauri::command]
pub(crate) fn open_settings(app: AppHandle, section: Option<Section>) {
    let page = match section {
        Some(Section::Models) => Page::Models,
        None => Page::Settings,
    };
    windows::open(&app, page);
}

#[tauri::command]
pub(crate) fn login_item(app: AppHandle) -> bool {
    login_item::is_on(&app)
}

#[tauri::command]
pub(crate) fn set_login_item(app: AppHandle, on: bool) -> Result<bool, String> {
    let set = login_item::set(&app, on);
    tray::refresh(&app);
    set.map(|()| login_item::is_on(&app))
}

#[tauri::command]
pub(crate) fn reveal_models_folder(app: AppHandle) -> Result<(), String> {
    let folder = app.state::<Host>().models_dir();
    if !is_plain_folder(&folder) {
        return Err(format!("{} is not a folder", folder.display()));
    }
    open::that_detached(&folder)
        .map_err(|error| format!("{} could not be opened: {error}", folder.display()))
}

/// Whether opening it shows its files. A bundle, such as an app, would be launched.
fn is_plain_folder(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    let is_app = real
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("app"));
    real.is_dir() && !is_app && !real.join("Contents").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn an_app_is_not_opened_as_the_models_folder() {
        let root = std::env::temp_dir().join(format!("tierbar-folders-{}", std::process::id()));
        let at = |name: &str| root.join(name);
        for folder in [
            "models",
            "models.v2",
            "Evil.app",
            "Evil.APP",
            "flow/Contents",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("file"), "").unwrap();
        symlink(at("Evil.app"), at("link")).unwrap();
        for (name, plain) in [
            ("models", true),
            ("models.v2", true),
            ("Evil.app", false),
            ("Evil.APP", false),
            ("link", false),
            ("flow", false),
            ("file", false),
            ("missing", false),
        ] {
            assert_eq!(is_plain_folder(&at(name)), plain, "{name}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
