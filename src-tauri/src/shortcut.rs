//! The keyboard shortcut that opens and closes the popover from any app.

use crate::{lock, on_main_thread, platform, popover, tray};
use global_hotkey::{Error, GlobalHotKeyEvent, GlobalHotKeyManager, HotKeyState, hotkey::HotKey};
use std::sync::Mutex;
use tauri::{AppHandle, Manager};
use tierbar_core::config::Shortcut;

/// What is registered with the system; locked on the main thread only, where macOS wants it.
#[derive(Default)]
pub(crate) struct Shortcuts(Mutex<Registration>);

#[derive(Default)]
struct Registration {
    /// Made for the first shortcut: on Linux it looks for keys 20 times a second.
    manager: Option<GlobalHotKeyManager>,
    hotkey: Option<HotKey>,
    /// The configured one, whether or not the system has taken it.
    configured: Shortcut,
}

/// Begins to listen. Call it once.
pub(crate) fn listen(app: &AppHandle) {
    app.manage(Shortcuts::default());
    let app = app.clone();
    GlobalHotKeyEvent::set_event_handler(Some(move |event: GlobalHotKeyEvent| {
        if event.state() == HotKeyState::Pressed {
            on_main_thread(&app, |app| popover::toggle(app, tray::icon_rect(app)));
        }
    }));
}

/// Registers the configured shortcut in place of the one before; the menu says why that failed. Callable from any thread.
pub(crate) fn apply(app: &AppHandle, shortcut: Shortcut) {
    on_main_thread(app, move |app| {
        if let Err(reason) = lock(&app.state::<Shortcuts>().0).apply(shortcut) {
            let note = format!("The overview's shortcut is off: {reason}");
            tracing::warn!("{note}");
            tray::set_note(app, Some(note));
        }
    });
}

/// Tries whether the system takes the shortcut. Call it on the main thread.
pub(crate) fn check(app: &AppHandle, shortcut: Shortcut) -> Result<(), String> {
    lock(&app.state::<Shortcuts>().0).check(shortcut)
}

impl Registration {
    fn apply(&mut self, shortcut: Shortcut) -> Result<(), String> {
        if shortcut == self.configured {
            return Ok(());
        }
        self.configured = shortcut;
        if let Some(before) = self.hotkey.take() {
            self.unregister(before);
        }
        if let Some(hotkey) = hotkey(shortcut)? {
            self.register(shortcut, hotkey)?;
            self.hotkey = Some(hotkey);
        }
        Ok(())
    }

    fn check(&mut self, shortcut: Shortcut) -> Result<(), String> {
        let wanted = hotkey(shortcut)?.filter(|wanted| self.hotkey != Some(*wanted));
        if let Some(hotkey) = wanted {
            self.register(shortcut, hotkey)?;
            self.unregister(hotkey);
        }
        Ok(())
    }

    fn register(&mut self, shortcut: Shortcut, hotkey: HotKey) -> Result<(), String> {
        platform::takes_shortcuts()?;
        let refused = |error: &Error| format!("the keys {shortcut} cannot be used: {error}");
        let manager = match self.manager.take() {
            Some(manager) => manager,
            None => GlobalHotKeyManager::new().map_err(|error| refused(&error))?,
        };
        let registered = manager.register(hotkey);
        self.manager = Some(manager);
        registered.map_err(|error| match error {
            Error::AlreadyRegistered(_) => {
                format!("another app has the keys {shortcut}; choose others")
            }
            error => refused(&error),
        })
    }

    fn unregister(&self, hotkey: HotKey) {
        let manager = self.manager.as_ref();
        if let Some(Err(error)) = manager.map(|manager| manager.unregister(hotkey)) {
            tracing::warn!(%error, "a keyboard shortcut could not be given back");
        }
    }
}

/// Returns the shortcut as the system's library has it; `None` for none.
fn hotkey(shortcut: Shortcut) -> Result<Option<HotKey>, String> {
    if shortcut.is_none() {
        return Ok(None);
    }
    let hotkey = shortcut.to_string().parse::<HotKey>();
    hotkey.map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use global_hotkey::hotkey::{Code, Modifiers};

    #[test]
    fn the_library_knows_every_key_of_the_configuration() {
        let letters = ('A'..='Z').chain('0'..='9').map(String::from);
        let function_keys = (1..=20).map(|number| format!("F{number}"));
        let named = Shortcut::NAMED_KEYS.map(str::to_owned);
        for key in letters.chain(function_keys).chain(named) {
            let shortcut = Shortcut::try_from(format!("Ctrl+{key}")).unwrap();
            assert!(hotkey(shortcut).unwrap().is_some(), "{key}");
        }
        let all = Shortcut::try_from("Ctrl+Alt+Shift+Cmd+Space".to_owned()).unwrap();
        let modifiers = Modifiers::CONTROL | Modifiers::ALT | Modifiers::SHIFT | Modifiers::META;
        let expected = HotKey::new(Some(modifiers), Code::Space);
        assert_eq!(hotkey(all), Ok(Some(expected)));
        assert_eq!(hotkey(Shortcut::default()), Ok(None));
    }
}
