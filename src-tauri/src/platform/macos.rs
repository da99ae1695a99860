//! macOS: the app is in the menu bar only.

/// Always succeeds: a session that can start an app has a display.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn display() -> Result<(), String> {
    Ok(())
}

/// Removes the app from the Dock and the app switcher, even when it runs outside its bundle, without `LSUIElement`.
pub(crate) fn leave_dock(app: &mut tauri::App) {
    app.set_activation_policy(tauri::ActivationPolicy::Accessory);
}
