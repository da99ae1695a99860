//! macOS: the app lives in the menu bar alone.

/// A session that can start an app has a display.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn display() -> Result<(), String> {
    Ok(())
}

/// No Dock icon and no place in the app switcher, also when it runs outside its bundle and thus without `LSUIElement`.
pub(crate) fn leave_dock(app: &mut tauri::App) {
    app.set_activation_policy(tauri::ActivationPolicy::Accessory);
}
