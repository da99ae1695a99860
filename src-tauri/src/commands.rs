//! The commands that windows may call: only what the HTTP API cannot do. Each window's capability lists its own.

use crate::{
    login_item, tray,
    windows::{self, Page},
};
use serde::{Deserialize, Serialize};
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
    open::that_detached(&folder)
        .map_err(|error| format!("{} could not be opened: {error}", folder.display()))
}
