//! Starting at login: off until the user turns it on. How the system stores it is in `platform::login_item`.

use crate::platform::login_item;
use tauri::AppHandle;

pub(crate) fn is_on(app: &AppHandle) -> bool {
    login_item::is_on(app).unwrap_or_else(|error| {
        tracing::warn!(%error, "the login item could not be read");
        false
    })
}

/// # Errors
/// A sentence with the system's reason.
pub(crate) fn set(app: &AppHandle, on: bool) -> Result<(), String> {
    login_item::set(app, on).map_err(|error| {
        format!(
            "Start at Login could not be turned {}: {error}",
            if on { "on" } else { "off" }
        )
    })
}

/// Brings an enabled login item up to date. Call it once at each start.
pub(crate) fn renew(app: &AppHandle) {
    if let Err(error) = login_item::renew(app) {
        tracing::warn!(%error, "the login item could not be brought up to date");
    }
}
