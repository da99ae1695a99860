//! Shows the host's notifications as the system's.

use crate::{host_text, platform};
use tauri::async_runtime::spawn_blocking;
use tierbar_core::notification::Notification;

pub(crate) fn show(notification: &Notification) {
    let title = notification.title.clone();
    let body = host_text::sentence(&notification.body);
    // The system may take its time to answer.
    spawn_blocking(move || {
        if let Err(error) = platform::notify(&title, &body) {
            tracing::warn!("a notification could not be shown: {error}");
        }
    });
}
