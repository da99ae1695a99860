//! The menu-bar app. A thin shell: it starts the host in its own process or finds one, shows it as a tray icon with a menu, opens
//! windows, and gives a window the address and the token of the host's API.

// First, for its macro.
#[macro_use]
mod words;

#[cfg(test)]
mod bundle;
mod command_line;
mod commands;
mod dropped;
mod host_text;
mod login_item;
mod menu;
mod notifications;
mod platform;
mod popover;
mod server;
mod shortcut;
mod startup;
mod tray;
mod view;
mod windows;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    startup::run(&startup::Arguments::parse())
}
