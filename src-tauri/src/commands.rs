//! The commands that windows may call: only what the HTTP API cannot do. Each window's capability lists its own.

use crate::{
    login_item, platform,
    server::Server,
    tray,
    windows::{self, Page},
};
use serde::{Deserialize, Serialize};
use tauri::{AppHandle, State, async_runtime::spawn_blocking};

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
pub(crate) fn connection(server: State<'_, Server>) -> Result<Connection, String> {
    let running = server
        .running()
        .ok_or_else(|| "it is not running".to_owned())?;
    Ok(Connection {
        url: running.url,
        token: running.token,
    })
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
pub(crate) async fn reveal_models_folder(server: State<'_, Server>) -> Result<(), String> {
    let running = server
        .running()
        .ok_or_else(|| "Tierbar is not running".to_owned())?;
    let folder = running.models_dir().await.map_err(|error| error.message)?;
    if !folder.is_dir() {
        return Err(format!("{} is not a folder", folder.display()));
    }
    let shown = folder.clone();
    let shown = spawn_blocking(move || platform::reveal(&shown)).await;
    shown
        .map_err(|ended| ended.to_string())
        .and_then(|done| done.map_err(|error| error.to_string()))
        .map_err(|error| format!("{} could not be shown: {error}", folder.display()))
}
