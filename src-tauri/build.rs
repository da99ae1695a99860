//! Embeds the window's pages and makes every command subject to the capabilities: without the list below each of
//! them could be called from any window.

fn main() {
    let commands = &[
        "connection",
        "login_item",
        "open_chat",
        "open_settings",
        "reveal_models_folder",
        "set_login_item",
    ];
    let manifest = tauri_build::AppManifest::new().commands(commands);
    tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest))
        .expect("the app's configuration");
}
