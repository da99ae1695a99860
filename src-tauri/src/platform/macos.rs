//! macOS: the app is in the menu bar, and in the Dock while it has a window.

pub(crate) mod login_item;
mod menu;
mod notifications;

pub(crate) use login_item::is_temporary;
pub(crate) use notifications::{notification_permission, notify};

use super::Confirmation;
use objc2::MainThreadMarker;
use objc2_app_kit::{NSAlert, NSAlertFirstButtonReturn, NSApplication, NSPasteboard};
use objc2_foundation::{NSLocale, NSString};
use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
};
use tauri::{
    ActivationPolicy, App, AppHandle, Builder, RunEvent, WebviewWindowBuilder, Wry,
    window::{Effect, EffectsBuilder},
};

/// Whether a submenu that is shown takes another title.
pub(crate) const RENAMES_SUBMENUS: bool = true;

/// Always succeeds: a session that can start an app has a display.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn display() -> Result<(), String> {
    Ok(())
}

/// Returns the user's languages, such as `de-AT`, in their order: the system's, or those chosen for this app.
pub(crate) fn languages() -> Vec<String> {
    let preferred = NSLocale::preferredLanguages().to_vec();
    preferred.iter().map(|tag| tag.to_string()).collect()
}

/// Always true: every Mac has a menu bar.
pub(crate) fn has_tray() -> bool {
    true
}

/// Does nothing: the system shows every icon, or says why not.
pub(crate) fn when_icon_is_lost(_rebuild: impl FnOnce() + 'static) {}

/// Always succeeds.
///
/// # Errors
/// Never; its twin can fail.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn takes_shortcuts() -> Result<(), String> {
    Ok(())
}

/// Puts a text on the clipboard. Call it on the main thread.
pub(crate) fn copy(text: &str) -> io::Result<()> {
    let pasteboard = NSPasteboard::generalPasteboard();
    pasteboard.clearContents();
    // `NSPasteboardTypeString`, which is unsafe to read.
    let kind = NSString::from_str("public.utf8-plain-text");
    if pasteboard.setString_forType(&NSString::from_str(text), &kind) {
        Ok(())
    } else {
        Err(io::Error::other("the pasteboard belongs to another app"))
    }
}

/// Asks in a window of its own. Call it on the main thread, which waits for the answer.
pub(crate) fn ask(question: &Confirmation, answer: impl FnOnce(bool) + 'static) {
    let Some(main) = MainThreadMarker::new() else {
        return;
    };
    let alert = NSAlert::new(main);
    alert.setMessageText(&NSString::from_str(&question.title));
    alert.setInformativeText(&NSString::from_str(&question.detail));
    alert.addButtonWithTitle(&NSString::from_str(question.confirm));
    alert.addButtonWithTitle(&NSString::from_str(question.cancel));
    #[expect(deprecated, reason = "`activate` needs macOS 14")]
    NSApplication::sharedApplication(main).activateIgnoringOtherApps(true);
    answer(alert.runModal() == NSAlertFirstButtonReturn);
}

/// Tauri's own menu has an item that ends the app on ⌘Q without asking the app, and with it the server.
pub(crate) fn configure(builder: Builder<Wry>) -> Builder<Wry> {
    notifications::show_in_front();
    builder
        .plugin(login_item::agents())
        .activate_ignoring_other_apps(false)
        .enable_macos_default_menu(false)
        .menu(menu::build)
        .on_menu_event(menu::clicked)
}

/// Keeps the app out of the Dock and the app switcher until it has a window, even outside its bundle, without
/// `LSUIElement`. It also keeps macOS from opening the app again at login because it was open at logout.
pub(crate) fn leave_dock(app: &mut App) {
    app.set_activation_policy(ActivationPolicy::Accessory);
    if let Some(main) = MainThreadMarker::new() {
        NSApplication::sharedApplication(main).disableRelaunchOnLogin();
    }
}

/// With an icon in the Dock, a window behind others can be found again.
pub(crate) fn show_in_dock(app: &AppHandle, shown: bool) {
    let policy = if shown {
        ActivationPolicy::Regular
    } else {
        ActivationPolicy::Accessory
    };
    if let Err(error) = app.set_activation_policy(policy) {
        tracing::warn!(%error, "the Dock icon could not be changed");
    }
}

/// Whether the user opened the app again, in the Finder, with Spotlight or in the Dock. macOS starts no second copy.
pub(crate) fn is_reopen(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Reopen { .. })
}

/// Puts the material of sidebars behind the page, which shows it through its own (`ui/src/app.css`). With Reduce Transparency, the
/// system draws it plain.
pub(crate) fn with_material(
    window: WebviewWindowBuilder<'_, Wry, AppHandle>,
) -> WebviewWindowBuilder<'_, Wry, AppHandle> {
    window
        .transparent(true)
        .effects(EffectsBuilder::new().effect(Effect::Sidebar).build())
        .initialization_script("document.documentElement.dataset.material = 'sidebar'")
}

/// Shows a folder in the Finder, selected in the folder around it. Opening it would start it if it were an app.
pub(crate) fn reveal(folder: &Path) -> io::Result<()> {
    open(&["-R"], folder)
}

/// Opens a document with the program that the user has chosen for its kind. What may be a program is opened as text: Terminal would
/// run it.
pub(crate) fn open_document(document: &Path, is_program: bool) -> io::Result<()> {
    let options: &[&str] = if is_program { &["-t"] } else { &[] };
    open(options, document)
}

fn open(options: &[&str], path: &Path) -> io::Result<()> {
    let mut open = Command::new("/usr/bin/open");
    let done = open.args(options).arg(path).status()?;
    if done.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("`open` ended with {done}")))
}

/// Where the link to the command line belongs: in the `PATH` of every terminal (`/etc/paths`). Then where Homebrew may have made
/// one.
///
/// # Errors
/// Never; its twin can fail.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn command_links() -> Result<Vec<PathBuf>, String> {
    Ok(vec![
        "/usr/local/bin/tierbar".into(),
        "/opt/homebrew/bin/tierbar".into(),
    ])
}

/// Always true, see [`command_links`].
pub(crate) fn is_in_path(_: &Path) -> bool {
    true
}

/// The folder belongs to the administrator, and does not exist on a new Mac. The system's own dialog asks for the password.
const CHANGE_LINK: &str = include_str!("macos/change-link.applescript");

/// Adds the link to the program, or removes it.
///
/// # Errors
/// The user has refused, or the system's reason.
pub(crate) fn change_link_as_administrator(
    program: Option<&PathBuf>,
    link: &Path,
) -> Result<(), String> {
    let folder = link.parent().unwrap_or(Path::new("/"));
    let done = Command::new("/usr/bin/osascript")
        .args(["-e", CHANGE_LINK])
        .arg(folder)
        .arg(link)
        .arg(program.map_or(Path::new(""), PathBuf::as_path))
        .output()
        .map_err(|error| format!("osascript could not be run: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&done.stderr);
    // errAEUserCanceled
    Err(if reason.contains("(-128)") {
        "canceled: an administrator's password is required".to_owned()
    } else {
        format!("{} cannot be changed: {}", link.display(), reason.trim())
    })
}
