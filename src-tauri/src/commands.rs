//! The commands that windows may call: only what the HTTP API cannot do. Each window's capability lists its own.

use crate::{
    command_line::{self, CommandLine},
    dropped::{self, DroppedPaths},
    login_item, platform, popover,
    server::Server,
    shortcut,
    windows::{self, Page},
};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tauri::{AppHandle, Manager, State, async_runtime::spawn_blocking, ipc::Response};
use tierbar_core::config::Shortcut;
use tierbar_host::RunningHost;

/// The API's address and the owner's token.
#[derive(Serialize)]
pub(crate) struct Connection {
    url: String,
    token: String,
}

/// The sections of the settings.
const SECTIONS: [&str; 8] = [
    "general",
    "models",
    "documents",
    "tiers",
    "servers",
    "connect",
    "access",
    "monitor",
];

#[tauri::command]
pub(crate) fn connection(server: State<'_, Server>) -> Result<Connection, String> {
    match server.running() {
        Some(RunningHost { url, token, .. }) => Ok(Connection { url, token }),
        None => Err(server.failure().unwrap_or("it is not running".to_owned())),
    }
}

#[tauri::command]
pub(crate) fn open_chat(app: AppHandle, chat: Option<String>) -> Result<(), String> {
    let Some(chat) = chat else {
        windows::open(&app, Page::Chat);
        return Ok(());
    };
    windows::open_chat(&app, &chat)
}

#[tauri::command]
pub(crate) fn close_popover(app: AppHandle) {
    popover::close(&app);
}

#[tauri::command]
pub(crate) fn open_settings(app: AppHandle, section: Option<String>) -> Result<(), String> {
    // It becomes part of a script.
    if let Some(unknown) = section
        .as_ref()
        .filter(|name| !SECTIONS.contains(&name.as_str()))
    {
        return Err(format!("the settings have no section \"{unknown}\""));
    }
    windows::open_at(&app, Page::Settings, section);
    Ok(())
}

#[tauri::command]
pub(crate) async fn login_item(app: AppHandle) -> Result<bool, String> {
    login_item::read(&app).await
}

#[tauri::command]
pub(crate) async fn set_login_item(app: AppHandle, on: bool) -> Result<bool, String> {
    login_item::set(&app, on).await
}

#[tauri::command]
pub(crate) fn check_shortcut(app: AppHandle, keys: String) -> Result<(), String> {
    shortcut::check(&app, Shortcut::try_from(keys)?)
}

/// Returns whether the system shows notifications of the app, in the words of a browser. `ask`: the user is asked, if that was never
/// answered.
#[tauri::command]
pub(crate) async fn notification_permission(ask: bool) -> Result<&'static str, String> {
    blocking(move || {
        Ok(match platform::notification_permission(ask) {
            Some(true) => "granted",
            Some(false) => "denied",
            None => "default",
        })
    })
    .await
}

#[tauri::command]
pub(crate) async fn command_line() -> Result<CommandLine, String> {
    blocking(command_line::state).await
}

#[tauri::command]
pub(crate) async fn set_command_line(installed: bool) -> Result<CommandLine, String> {
    blocking(move || command_line::set(installed)).await
}

#[tauri::command]
pub(crate) async fn reveal_models_folder(server: State<'_, Server>) -> Result<(), String> {
    let folder = server.expect_running()?.models_dir().await;
    let folder = folder.map_err(|error| error.message)?;
    if !folder.is_dir() {
        return Err(format!("{} is not a folder", folder.display()));
    }
    blocking(move || {
        platform::reveal(&folder)
            .map_err(|error| format!("{} could not be shown: {error}", folder.display()))
    })
    .await
}

/// Opens the document that a passage is from. The host names the file, so that a page cannot have any other one opened.
#[tauri::command]
pub(crate) async fn open_document(server: State<'_, Server>, passage: u64) -> Result<(), String> {
    let document = server.expect_running()?.document_of(passage).await;
    let document = document.map_err(|error| error.message)?;
    if !document.is_file() {
        return Err(format!("{} no longer exists", document.display()));
    }
    blocking(move || {
        platform::open_document(&document, is_program(&document))
            .map_err(|error| format!("{} could not be opened: {error}", document.display()))
    })
    .await
}

/// The folders among what was dropped onto the chat window last.
#[tauri::command]
pub(crate) async fn dropped_folders(app: AppHandle) -> Result<Vec<PathBuf>, String> {
    blocking(move || Ok(app.state::<DroppedPaths>().folders())).await
}

/// Reads a file that was dropped onto the chat window last.
#[tauri::command]
pub(crate) async fn read_dropped(app: AppHandle, path: PathBuf) -> Result<Response, String> {
    let dropped = app.state::<DroppedPaths>().find(&path);
    let dropped = dropped.ok_or_else(|| format!("{} was not dropped here", path.display()))?;
    let data = blocking(move || dropped::read(&dropped)).await?;
    Ok(Response::new(data))
}

/// Whether the system may run a document instead of showing it: every kind that is not known to be shown.
fn is_program(document: &Path) -> bool {
    const SHOWN: [&str; 16] = [
        "pdf", "docx", "pptx", "eml", "html", "htm", "xhtml", "md", "markdown", "txt", "text",
        "csv", "rst", "org", "tex", "log",
    ];
    let extension = document.extension().unwrap_or_default();
    let extension = extension.to_string_lossy().to_ascii_lowercase();
    !SHOWN.contains(&extension.as_str())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work)
        .await
        .unwrap_or_else(|ended| Err(ended.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_kinds_are_opened_by_their_own_program() {
        for shown in ["/d/Lease.PDF", "/d/a.b/notes.md"] {
            assert!(!is_program(Path::new(shown)), "{shown}");
        }
        for program in ["/d/run.command", "/d/a.sh", "/d/Lease", "/d/.pdf"] {
            assert!(is_program(Path::new(program)), "{program}");
        }
    }
}
