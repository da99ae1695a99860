//! Shows the host's notifications as the system's.

use crate::view::window_units;
use tauri::AppHandle;
use tauri_plugin_notification::NotificationExt;
use tierbar_core::notification::Notification;

pub(crate) fn show(app: &AppHandle, notification: &Notification) {
    let shown = app
        .notification()
        .builder()
        .title(&notification.title)
        .body(sentence(&notification.body))
        .show();
    if let Err(error) = shown {
        tracing::warn!("a notification could not be shown: {error}");
    }
}

/// Writes a sentence of the event log as the window does.
fn sentence(text: &str) -> String {
    let text = window_units(text);
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .map(char::to_uppercase)
        .into_iter()
        .flatten()
        .collect();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_windows_units_and_a_full_stop() {
        assert_eq!(
            sentence("unloaded fast on quit, freed 68 MiB"),
            "Unloaded fast on quit, freed 68 MB."
        );
    }
}
