//! The menu-bar app. A thin shell: it starts the host in its own process or finds one, shows it as a tray icon with a menu, opens
//! windows, and gives a window the address and the token of the host's API.

// First, for its macro.
#[macro_use]
mod words;

#[cfg(test)]
mod bundle_tests;
mod command_line;
mod commands;
mod dropped;
mod host_text;
mod login_item;
mod menu;
mod platform;
mod popover;
mod server;
mod shortcut;
mod startup;
mod tray;
mod view;
mod windows;

use clap::Parser;
use std::{
    process::ExitCode,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tauri::AppHandle;

fn main() -> ExitCode {
    startup::run(&startup::Arguments::parse())
}

/// Locks a state that no panic leaves half changed.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something on the main thread, soon; nothing once the event loop has ended. Callable from any thread.
fn on_main_thread(app: &AppHandle, act: impl FnOnce(&AppHandle) + Send + 'static) {
    let shell = app.clone();
    let _ended = app.run_on_main_thread(move || act(&shell));
}
