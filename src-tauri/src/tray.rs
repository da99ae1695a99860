//! The tray icon: its picture, the text beside it, its menu, and what a click does.

use crate::{
    lock, login_item,
    menu::ShownMenu,
    on_main_thread, platform, popover,
    server::{self, Server},
    startup,
    view::{Mark, View, command::Command},
    windows::{self, Page},
};
use std::sync::Mutex;
use tauri::{
    AppHandle, Manager, Rect,
    image::Image,
    include_image,
    tray::{MouseButton, MouseButtonState, TrayIcon, TrayIconBuilder, TrayIconEvent},
};
use tierbar_core::{Code, Error, config::MenuBarClick};

const ID: &str = "tierbar";

/// The tray's current state; locked on the main thread only.
pub(crate) struct Tray(Mutex<TrayView>);

struct TrayView {
    icon: TrayIcon,
    menu: ShownMenu,
    /// The view that is shown.
    view: View,
    /// The view of the host's status, without the note.
    state: View,
    /// Why the last click failed, until the next click.
    note: Option<String>,
}

/// Builds the tray. Called once, on the main thread.
pub(crate) fn build(app: &AppHandle, view: View) -> tauri::Result<()> {
    let menu = ShownMenu::new(app, &view.items)?;
    // Once: what an icon's builder is given stays when its icon goes.
    app.on_menu_event(|app, event| clicked(app, event.id().as_ref()));
    let icon = new_icon(app, ID, &menu, &view)?;
    app.manage(Tray(Mutex::new(TrayView {
        icon,
        menu,
        state: view.clone(),
        view,
        note: None,
    })));
    let shell = app.clone();
    platform::when_icon_is_lost(move || {
        if let Err(error) = lock(&shell.state::<Tray>().0).replace_icon(&shell) {
            tracing::error!(%error, "the tray icon could not be built again");
        }
    });
    Ok(())
}

fn new_icon(app: &AppHandle, id: &str, menu: &ShownMenu, view: &View) -> tauri::Result<TrayIcon> {
    TrayIconBuilder::with_id(id)
        .icon(image(view.mark))
        .icon_as_template(true)
        .tooltip(view.summary)
        .menu(&menu.menu)
        .show_menu_on_left_click(view.click == MenuBarClick::Menu)
        .on_tray_icon_event(|icon, event| {
            let app = icon.app_handle();
            // The pointer is there before the menu opens; the user may have changed it in System Settings.
            if matches!(event, TrayIconEvent::Enter { .. }) {
                login_item::look(app);
            }
            icon_clicked(app, &event);
        })
        .build(app)
}

/// Shows another view. Callable from any thread.
pub(crate) fn show(app: &AppHandle, view: View) {
    update(app, move |app, shown| {
        shown.state = view;
        shown.draw(app)
    });
}

/// Shows why a click or a shortcut failed, or removes the note. Callable from any thread.
pub(crate) fn set_note(app: &AppHandle, reason: Option<String>) {
    update(app, move |app, shown| {
        shown.note = reason;
        shown.draw(app)
    });
}

/// Shows the login item as it was last read, and restores every check that a click has toggled.
pub(crate) fn refresh(app: &AppHandle) {
    update(app, |app, shown| shown.draw(app));
}

fn update(
    app: &AppHandle,
    change: impl FnOnce(&AppHandle, &mut TrayView) -> tauri::Result<()> + Send + 'static,
) {
    on_main_thread(app, |app| {
        if let Err(error) = change(app, &mut lock(&app.state::<Tray>().0)) {
            tracing::error!(%error, "the tray could not be updated");
        }
    });
}

impl TrayView {
    fn replace_icon(&mut self, app: &AppHandle) -> tauri::Result<()> {
        // While the old one is there, its name on the bus is taken.
        self.icon = new_icon(app, "tierbar-again", &self.menu, &self.view)?;
        app.remove_tray_by_id(ID);
        self.icon.set_title(self.view.title.as_deref())
    }

    fn draw(&mut self, app: &AppHandle) -> tauri::Result<()> {
        let view = self
            .state
            .clone()
            .with_login(login_item::is_on(app))
            .with_note(self.note.as_deref());
        // Setting what is shown already makes the icon flicker.
        if view.mark != self.view.mark {
            self.icon
                .set_icon_with_as_template(Some(image(view.mark)), true)?;
            self.icon.set_tooltip(Some(view.summary))?;
        }
        if view.title != self.view.title {
            self.icon.set_title(view.title.as_deref())?;
        }
        if view.click != self.view.click {
            self.icon
                .set_show_menu_on_left_click(view.click == MenuBarClick::Menu)?;
        }
        self.menu.show(app, &view.items)?;
        self.view = view;
        Ok(())
    }
}

/// Returns where the icon is, if the system says so. Call it on the main thread.
pub(crate) fn icon_rect(app: &AppHandle) -> Option<Rect> {
    let place = lock(&app.state::<Tray>().0).icon.rect();
    place.ok().flatten()
}

fn image(mark: Mark) -> Image<'static> {
    match mark {
        Mark::Idle => include_image!("../icons/tray/idle.png"),
        Mark::Loading => include_image!("../icons/tray/loading.png"),
        Mark::HalfLoaded => include_image!("../icons/tray/half-loaded.png"),
        Mark::Ready => include_image!("../icons/tray/ready.png"),
        Mark::Busy => include_image!("../icons/tray/busy.png"),
        Mark::Warning => include_image!("../icons/tray/warning.png"),
        Mark::Failed => include_image!("../icons/tray/failed.png"),
    }
}

/// Opens the popover, if a click does that. On Linux, the desktop reports no clicks.
fn icon_clicked(app: &AppHandle, event: &TrayIconEvent) {
    let &TrayIconEvent::Click {
        button: MouseButton::Left,
        button_state: MouseButtonState::Up,
        rect,
        ..
    } = event
    else {
        return;
    };
    let opens = lock(&app.state::<Tray>().0).view.click == MenuBarClick::Popover;
    if opens {
        popover::toggle(app, Some(rect));
    }
}

fn clicked(app: &AppHandle, id: &str) {
    let Some(command) = Command::parse(id) else {
        return;
    };
    // Draws again, which also restores a check that the click has toggled.
    set_note(app, None);
    match command {
        Command::Chat => windows::open(app, Page::Chat),
        Command::Models | Command::Download(_) => windows::open(app, Page::Models),
        Command::Monitor | Command::Why => windows::open(app, Page::Monitor),
        Command::Settings => windows::open(app, Page::Settings),
        Command::Retry => app.state::<Server>().retry(),
        Command::Folder => startup::open_folder(),
        Command::Quit => startup::quit_from_menu(app),
        Command::CopyAddress => {
            if let Err(reason) = server::copy_address(app) {
                set_note(app, Some(reason));
            }
        }
        Command::Login => act(app, set_login(app.clone(), !login_item::is_on(app))),
        Command::Pause => act(app, server::toggle_pause(app.clone())),
        Command::Toggle(tier) => act(app, server::toggle_tier(app.clone(), tier)),
        Command::Tier(tier, setting) => act(app, server::set_tier(app.clone(), tier, setting)),
    }
}

async fn set_login(app: AppHandle, on: bool) -> Result<(), Error> {
    let set = login_item::set(&app, on).await;
    set.map(drop).map_err(|reason| {
        tracing::error!("{reason}");
        Error::new(Code::Storage, reason)
    })
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
