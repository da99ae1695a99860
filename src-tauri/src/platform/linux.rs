//! A Linux desktop, which may lack a display.

pub(crate) mod login_item;

use super::Confirmation;
use crate::words::Word;
use gtk::{
    ButtonsType, Clipboard, DialogFlags, MessageDialog, MessageType, ResponseType, Window, gdk,
    gio,
    glib::{self, Variant, markup_escape_text},
    prelude::*,
};
use std::{
    cell::Cell,
    collections::HashMap,
    env, io,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};
use tauri::{AppHandle, Builder, RunEvent, WebviewWindowBuilder, Wry};

/// How long another program on the session bus may take to answer.
const MOST_MS: i32 = 5000;
/// The part of the desktop that shows icons of apps.
const WATCHER: &str = "org.kde.StatusNotifierWatcher";
/// The part of the desktop that shows notifications, and its object.
const NOTIFICATIONS: (&str, &str) = (
    "org.freedesktop.Notifications",
    "/org/freedesktop/Notifications",
);

/// Whether a submenu that is shown takes another title. Trays here go on to show the first one.
pub(crate) const RENAMES_SUBMENUS: bool = false;

/// Connects to the display, or returns why there is none. The window library would panic instead.
pub(crate) fn display() -> Result<(), String> {
    /// Milliseconds: half an hour each way, and still within WebKitGTK's integers of microseconds.
    const STEADY: i32 = 4_000_000;
    gtk::init().map_err(|_| "no display is available (DISPLAY, WAYLAND_DISPLAY)".to_owned())?;
    // Without a GPU, each blink paints the whole window, which takes 3 % of a core for as long as a field has the focus. WebKitGTK
    // does not stop after ten seconds, as GTK's own fields do, and takes as much with `gtk-cursor-blink` off.
    if let Some(settings) = gtk::Settings::default() {
        settings.set_gtk_cursor_blink_time(STEADY);
    }
    Ok(())
}

/// Returns the user's language, such as `de_DE.UTF-8`, as the variables of the locale have it; none of them set, nothing.
pub(crate) fn languages() -> Vec<String> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    ["LC_ALL", "LC_MESSAGES", "LANG"]
        .into_iter()
        .find_map(set)
        .into_iter()
        .collect()
}

/// Whether the desktop shows icons of apps. The interface is <https://www.freedesktop.org/wiki/Specifications/StatusNotifierItem/>.
pub(crate) fn has_tray() -> bool {
    let watcher = (WATCHER,).to_variant();
    let bus = ("org.freedesktop.DBus", "/org/freedesktop/DBus");
    let owned = call(bus, "NameHasOwner", &watcher).and_then(|reply| {
        let (owned,) = reply
            .get::<(bool,)>()
            .ok_or("NameHasOwner returned no bool")?;
        Ok(owned)
    });
    owned.unwrap_or_default()
}

/// Calls `rebuild` once, on this thread, if the desktop shows icons of apps and does not show ours: libayatana-appindicator 0.5.92 loses
/// its registration if the desktop is found before its own connection to the bus is ready.
pub(crate) fn when_icon_is_lost(rebuild: impl FnOnce() + 'static) {
    const REGISTERED_BY: Duration = Duration::from_secs(3);
    glib::MainContext::default().spawn_local(async move {
        glib::timeout_future(REGISTERED_BY).await;
        if is_icon_shown().await == Ok(false) {
            tracing::warn!("the desktop did not show the tray icon: it is built again");
            rebuild();
        }
    });
}

/// # Errors
/// The desktop does not say which icons it shows.
async fn is_icon_shown() -> Result<bool, String> {
    let bus = bus()?;
    let own = bus.unique_name().unwrap_or_default();
    let property = (WATCHER, "RegisteredStatusNotifierItems").to_variant();
    let reply = bus.call_future(
        Some(WATCHER),
        "/StatusNotifierWatcher",
        "org.freedesktop.DBus.Properties",
        "Get",
        Some(&property),
        None,
        gio::DBusCallFlags::NO_AUTO_START,
        MOST_MS,
    );
    let reply = reply.await.map_err(|error| error.message().to_owned())?;
    let (items,) = reply.get::<(Variant,)>().ok_or("Get returned no value")?;
    let items: Vec<String> = items.get().ok_or("the items are no strings")?;
    // Such as `:1.7/org/ayatana/NotificationItem/tray_icon`.
    Ok(items
        .iter()
        .any(|item| item.split('/').next() == Some(&own)))
}

/// Shows a notification of the desktop
/// (<https://specifications.freedesktop.org/notification-spec/latest/protocol.html>). Blocking.
///
/// # Errors
/// The desktop shows none, or its reason.
pub(crate) fn notify(title: &str, body: &str) -> Result<(), String> {
    let (replaced, expires_ms) = (0_u32, -1_i32);
    let hints = HashMap::from([("desktop-entry", "tierbar".to_variant())]);
    // A name in angle brackets is no markup.
    let body = markup_escape_text(body);
    let notification = (
        "Tierbar",
        replaced,
        "tierbar",
        title,
        body.as_str(),
        Vec::<String>::new(),
        hints,
        expires_ms,
    );
    call(NOTIFICATIONS, "Notify", &notification.to_variant()).map(drop)
}

/// Whether the desktop shows notifications. There, they are subject to no permission. Blocking.
pub(crate) fn notification_permission(_ask: bool) -> Option<bool> {
    let about = call(NOTIFICATIONS, "GetServerInformation", &().to_variant());
    if let Err(reason) = &about {
        tracing::info!("the desktop shows no notifications: {reason}");
    }
    Some(about.is_ok())
}

/// Calls a method of an object whose interface has its owner's name, on the session bus.
fn call(
    (name, object): (&str, &str),
    method: &str,
    parameters: &Variant,
) -> Result<Variant, String> {
    let reply = bus()?.call_sync(
        Some(name),
        object,
        name,
        method,
        Some(parameters),
        None,
        gio::DBusCallFlags::NONE,
        MOST_MS,
        gio::Cancellable::NONE,
    );
    reply.map_err(|error| error.message().to_owned())
}

/// Returns the session bus. The tray icon uses the same connection, which stays open so that it need not connect a second time.
fn bus() -> Result<&'static gio::DBusConnection, String> {
    static BUS: OnceLock<gio::DBusConnection> = OnceLock::new();
    if let Some(bus) = BUS.get() {
        return Ok(bus);
    }
    let bus = gio::bus_get_sync(gio::BusType::Session, gio::Cancellable::NONE)
        .map_err(|error| error.message().to_owned())?;
    Ok(BUS.get_or_init(|| bus))
}

/// # Errors
/// The desktop gives none to apps, and what to do instead.
pub(crate) fn takes_shortcuts() -> Result<(), String> {
    if env::var_os("WAYLAND_DISPLAY").is_none_or(|display| display.is_empty()) {
        return Ok(());
    }
    Err(
        "Wayland lets no app have keys of its own: in the desktop's keyboard settings, give a shortcut to the command \
         tierbar-app --open popover"
            .to_owned(),
    )
}

/// Puts a text on the clipboard. Call it on the main thread.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn copy(text: &str) -> io::Result<()> {
    Clipboard::get(&gdk::SELECTION_CLIPBOARD).set_text(text);
    Ok(())
}

/// Asks in a window of its own. Call it on the main thread, which goes on meanwhile.
pub(crate) fn ask(question: &Confirmation, answer: impl FnOnce(bool) + 'static) {
    let dialog = MessageDialog::new(
        None::<&Window>,
        DialogFlags::empty(),
        MessageType::Question,
        ButtonsType::None,
        &question.title,
    );
    dialog.set_title(Word::QuitTierbar.text());
    dialog.set_secondary_text(Some(&question.detail));
    dialog.add_button(question.cancel, ResponseType::Cancel);
    dialog.add_button(question.confirm, ResponseType::Accept);
    dialog.set_default_response(ResponseType::Cancel);
    let answer = Cell::new(Some(answer));
    dialog.connect_response(move |dialog, response| {
        dialog.hide();
        if response != ResponseType::DeleteEvent {
            dialog.close();
        }
        if let Some(answer) = answer.take() {
            answer(response == ResponseType::Accept);
        }
    });
    dialog.show_all();
    dialog.present();
}

/// Changes nothing.
pub(crate) fn configure(builder: Builder<Wry>) -> Builder<Wry> {
    builder
}

/// Does nothing: on Linux an app without windows is not in the task bar.
pub(crate) fn leave_dock(_: &mut tauri::App) {}

/// Does nothing: each window has its own place in the task bar.
pub(crate) fn show_in_dock(_: &AppHandle, _: bool) {}

/// Always false: a second start asks the running host to open its window.
pub(crate) fn is_reopen(_: &RunEvent) -> bool {
    false
}

/// Changes nothing: desktops differ, and most have no material behind windows.
pub(crate) fn with_material(
    window: WebviewWindowBuilder<'_, Wry, AppHandle>,
) -> WebviewWindowBuilder<'_, Wry, AppHandle> {
    window
}

/// Shows a folder in the file manager.
pub(crate) fn reveal(folder: &Path) -> io::Result<()> {
    open::that_detached(folder)
}

/// Opens a document with the program that the user has chosen for its kind, or shows the folder of one that may be a program.
pub(crate) fn open_document(document: &Path, is_program: bool) -> io::Result<()> {
    let folder = document.parent().filter(|_| is_program);
    open::that_detached(folder.unwrap_or(document))
}

/// Where the link to the command line belongs: the user's own folder of programs (systemd's file-hierarchy(7)).
///
/// # Errors
/// There is no home folder.
pub(crate) fn command_links() -> Result<Vec<PathBuf>, String> {
    let home = env::home_dir().ok_or("this user has no home folder")?;
    Ok(vec![home.join(".local/bin/tierbar")])
}

/// Whether terminals look for programs in the folder. The app has their `PATH`.
pub(crate) fn is_in_path(folder: &Path) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|part| part == folder))
}

/// Always false: an app runs from where it is.
pub(crate) fn is_temporary(_: &Path) -> bool {
    false
}

/// # Errors
/// Always: the folder is the user's own.
pub(crate) fn change_link_as_administrator(_: Option<&PathBuf>, link: &Path) -> Result<(), String> {
    Err(format!(
        "{} cannot be changed: its folder belongs to another user",
        link.display()
    ))
}
