//! The tray icon and its menu. The menu is built once for a set of items and then changed in place.

use crate::{
    login_item,
    server::{self, Server},
    startup,
    view::{Mark, Phase, View},
    windows::{self, Page},
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tauri::{
    AppHandle, Manager, Wry,
    image::Image,
    include_image,
    menu::{CheckMenuItem, Menu, MenuEvent, MenuItem, PredefinedMenuItem},
    tray::{TrayIcon, TrayIconBuilder},
};
use tierbar_core::{Error, TierId};

const CHAT: &str = "chat";
const MODELS: &str = "models";
const DOWNLOAD: &str = "download";
const SETTINGS: &str = "settings";
const PAUSE: &str = "pause";
const LOGIN: &str = "login";
const RETRY: &str = "retry";
const FOLDER: &str = "folder";
const QUIT: &str = "quit";
const TIER: &str = "tier:";

/// The tray's current state; locked on the main thread only.
pub(crate) struct Tray(Mutex<Shown>);

struct Shown {
    icon: TrayIcon,
    items: Items,
    /// The view that is shown.
    view: View,
    /// The view of the host's status, without the note.
    state: View,
    /// Why the last click failed, until the next click.
    note: Option<String>,
}

/// The items that change.
struct Items {
    lines: Vec<MenuItem<Wry>>,
    tiers: Vec<CheckMenuItem<Wry>>,
    pause: Option<CheckMenuItem<Wry>>,
    download: Option<MenuItem<Wry>>,
    login: Option<CheckMenuItem<Wry>>,
}

/// Builds the tray. Called once, on the main thread.
pub(crate) fn build(app: &AppHandle, view: View) -> tauri::Result<()> {
    let (menu, items) = menu(app, &view)?;
    let icon = TrayIconBuilder::with_id("tierbar")
        .icon(image(view.mark))
        .icon_as_template(true)
        .tooltip("Tierbar")
        .menu(&menu)
        .show_menu_on_left_click(true)
        .on_menu_event(clicked)
        .build(app)?;
    app.manage(Tray(Mutex::new(Shown {
        icon,
        items,
        state: view.clone(),
        view,
        note: None,
    })));
    Ok(())
}

/// Shows another view. Callable from any thread.
pub(crate) fn show(app: &AppHandle, view: View) {
    update(app, move |app, shown| {
        shown.state = view;
        shown.draw(app)
    });
}

/// Shows why a click failed, or removes the note. Callable from any thread.
fn set_note(app: &AppHandle, reason: Option<String>) {
    update(app, move |app, shown| {
        shown.note = reason;
        shown.draw(app)
    });
}

/// Restores every check to the actual state: a click on an item toggles its check.
pub(crate) fn refresh(app: &AppHandle) {
    update(app, |app, shown| shown.sync(app));
}

fn update(
    app: &AppHandle,
    change: impl FnOnce(&AppHandle, &mut Shown) -> tauri::Result<()> + Send + 'static,
) {
    let shell = app.clone();
    // Fails only after the event loop, and the tray with it, has ended.
    let _ = app.run_on_main_thread(move || {
        let tray = shell.state::<Tray>();
        if let Err(error) = change(&shell, &mut tray.lock()) {
            tracing::error!(%error, "the tray could not be updated");
        }
    });
}

impl Tray {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn draw(&mut self, app: &AppHandle) -> tauri::Result<()> {
        let view = self.state.clone().with_note(self.note.as_deref());
        if view.mark != self.view.mark {
            self.icon
                .set_icon_with_as_template(Some(image(view.mark)), true)?;
        }
        let before = std::mem::replace(&mut self.view, view);
        if !before.same_items(&self.view) {
            let (menu, items) = menu(app, &self.view)?;
            self.icon.set_menu(Some(menu))?;
            self.items = items;
            return Ok(());
        }
        for (item, (old, new)) in self
            .items
            .lines
            .iter()
            .zip(before.lines.iter().zip(&self.view.lines))
        {
            if old != new {
                item.set_text(label(new))?;
            }
        }
        for (item, (old, new)) in self
            .items
            .tiers
            .iter()
            .zip(before.tiers.iter().zip(&self.view.tiers))
        {
            if old.text != new.text {
                item.set_text(label(&new.text))?;
            }
        }
        if let (Some(item), Some(text)) = (&self.items.download, &self.view.download)
            && before.download.as_ref() != Some(text)
        {
            item.set_text(label(text))?;
        }
        self.sync(app)
    }

    fn sync(&mut self, app: &AppHandle) -> tauri::Result<()> {
        for (item, tier) in self.items.tiers.iter().zip(&self.view.tiers) {
            check(item, tier.checked)?;
        }
        if let Some(item) = &self.items.pause {
            check(item, self.view.paused)?;
        }
        self.items
            .login
            .as_ref()
            .map_or(Ok(()), |item| check(item, login_item::is_on(app)))
    }
}

fn check(item: &CheckMenuItem<Wry>, on: bool) -> tauri::Result<()> {
    if item.is_checked()? == on {
        Ok(())
    } else {
        item.set_checked(on)
    }
}

fn menu(app: &AppHandle, view: &View) -> tauri::Result<(Menu<Wry>, Items)> {
    let item = |id: &str, text: &str| MenuItem::with_id(app, id, text, true, None::<&str>);
    let line = |text: &String| MenuItem::new(app, label(text), false, None::<&str>);
    let separator = || PredefinedMenuItem::separator(app);
    let menu = Menu::new(app)?;
    let mut items = Items {
        lines: Vec::new(),
        tiers: Vec::new(),
        pause: None,
        download: None,
        login: None,
    };
    for text in &view.lines {
        let line = line(text)?;
        menu.append(&line)?;
        items.lines.push(line);
    }
    menu.append(&separator()?)?;
    for tier in &view.tiers {
        let id = format!("{TIER}{}", tier.id);
        let item =
            CheckMenuItem::with_id(app, id, label(&tier.text), true, tier.checked, None::<&str>)?;
        menu.append(&item)?;
        items.tiers.push(item);
    }
    match view.phase {
        Phase::Starting => {}
        Phase::Failed => {
            menu.append_items(&[
                &item(RETRY, "Try Again")?,
                &item(FOLDER, "Open Configuration Folder")?,
                &separator()?,
            ])?;
        }
        Phase::Running => {
            let paused = view.paused;
            let pause = CheckMenuItem::with_id(app, PAUSE, "Pause", true, paused, None::<&str>)?;
            menu.append_items(&[&pause, &separator()?])?;
            items.pause = Some(pause);
            if let Some(text) = &view.download {
                let download = item(DOWNLOAD, &label(text))?;
                menu.append_items(&[&download, &separator()?])?;
                items.download = Some(download);
            }
            let on = login_item::is_on(app);
            let login =
                CheckMenuItem::with_id(app, LOGIN, "Start at Login", true, on, None::<&str>)?;
            menu.append_items(&[
                &item(CHAT, "Open Chat")?,
                &item(MODELS, "Models…")?,
                &item(SETTINGS, "Settings…")?,
                &login,
                &separator()?,
            ])?;
            items.login = Some(login);
        }
    }
    menu.append(&item(QUIT, "Quit Tierbar")?)?;
    Ok((menu, items))
}

/// Escapes a text for a menu, where a single `&` would mark a shortcut.
fn label(text: &str) -> String {
    text.replace('&', "&&")
}

fn image(mark: Mark) -> Image<'static> {
    match mark {
        Mark::Idle => include_image!("../icons/tray/idle.png"),
        Mark::Loading => include_image!("../icons/tray/loading.png"),
        Mark::Ready => include_image!("../icons/tray/ready.png"),
        Mark::Busy => include_image!("../icons/tray/busy.png"),
        Mark::Warning => include_image!("../icons/tray/warning.png"),
        Mark::Failed => include_image!("../icons/tray/failed.png"),
    }
}

fn clicked(app: &AppHandle, event: MenuEvent) {
    set_note(app, None);
    match event.id().as_ref() {
        CHAT => windows::open(app, Page::Chat),
        MODELS | DOWNLOAD => windows::open(app, Page::Models),
        SETTINGS => windows::open(app, Page::Settings),
        RETRY => app.state::<Server>().retry(),
        FOLDER => startup::open_folder(),
        QUIT => startup::quit_from_menu(app),
        PAUSE => {
            refresh(app);
            let shell = app.clone();
            act(app, async move { server::toggle_pause(&shell).await });
        }
        LOGIN => {
            if let Err(reason) = login_item::set(app, !login_item::is_on(app)) {
                tracing::error!("{reason}");
                set_note(app, Some(reason));
            }
            refresh(app);
        }
        id => {
            if let Some(tier) = id.strip_prefix(TIER).and_then(|id| TierId::new(id).ok()) {
                refresh(app);
                let shell = app.clone();
                act(app, async move { server::toggle_tier(&shell, tier).await });
            }
        }
    }
}

/// Does something that may take long, and shows why it failed.
fn act(app: &AppHandle, act: impl Future<Output = Result<(), Error>> + Send + 'static) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(error) = act.await {
            set_note(&app, Some(error.message));
        }
    });
}
