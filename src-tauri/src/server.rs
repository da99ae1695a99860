//! The server that the menu and the windows show: the app's own host, or one that runs already, such as a service.
//!
//! One task owns it ([`run`]): it starts or finds a host, follows it, and begins again when it ends.

use crate::{
    host_text, lock, platform, shortcut, tray,
    view::{MenuContext, View, command::TierSetting},
    windows::{self, Page},
};
use serde_json::json;
use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};
use tauri::{
    AppHandle, Manager,
    async_runtime::{spawn, spawn_blocking},
};
use tierbar_core::{
    Code, Error, TierId, TierState,
    notification::{Notification, ShownNotifications},
    policy::Stance,
    status::Status,
};
use tierbar_host::{Host, HostEvent, HostKind, HostOptions, RunningHost, find_running_host};
use tokio::{sync::Notify, time::sleep};

/// How long a host may take to start, to end or to answer before it counts as stuck.
const TURN: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often a host that cannot be followed is tried.
const RARELY: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Server {
    shown: Mutex<ServerView>,
    /// The user wants another try.
    again: Notify,
}

#[derive(Default)]
struct ServerView {
    /// `None` while there is no server.
    server: Option<RunningHost>,
    /// `None` while the menu cannot show it.
    status: Option<Arc<Status>>,
    beside: MenuContext,
    /// The app's own host, which ends with the app.
    own: Option<Arc<Host>>,
    /// Why the start has failed, while no server has been shown since.
    failure: Option<String>,
}

impl Server {
    fn shown(&self) -> MutexGuard<'_, ServerView> {
        lock(&self.shown)
    }

    pub(crate) fn running(&self) -> Option<RunningHost> {
        self.shown().server.clone()
    }

    pub(crate) fn expect_running(&self) -> Result<RunningHost, String> {
        self.running()
            .ok_or_else(|| "Tierbar is not running".to_owned())
    }

    pub(crate) fn own(&self) -> Option<Arc<Host>> {
        self.shown().own.clone()
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.shown().failure.clone()
    }

    /// Returns a tier of the app's own host that is answering.
    pub(crate) fn answering(&self) -> Option<TierId> {
        self.own()?;
        let status = self.status()?;
        let mut busy = status.tiers.iter();
        let busy = busy.find(|tier| tier.state == TierState::Busy)?;
        Some(busy.id.clone())
    }

    fn status(&self) -> Option<Arc<Status>> {
        self.shown().status.clone()
    }

    /// Starts a host if none is shown.
    pub(crate) fn retry(&self) {
        // A click without a waiter is not kept.
        self.again.notify_waiters();
    }
}

/// Shows a server for as long as the app runs. `open`: the window to open once there is one.
pub(crate) async fn run(app: AppHandle, mut open: Option<Page>) {
    let state = app.state::<Server>();
    loop {
        let again = state.again.notified();
        match connect(&state).await {
            Ok(server) => {
                if let Some(page) = open.take() {
                    windows::open(&app, page);
                }
                follow(&app, &state, &server).await;
                if server.kind != HostKind::Cli {
                    let again = state.again.notified();
                    tray::show(&app, View::gone());
                    tokio::select! {
                        () = again => {}
                        () = wait_for_host() => {}
                    }
                }
            }
            Err(error) => {
                crate::startup::print_error(&error);
                state.shown().failure = Some(error.message.clone());
                tray::show(&app, View::failed(&error));
                // Its page shows why.
                if let Some(page) = open.take() {
                    windows::open(&app, page);
                }
                again.await;
            }
        }
        tray::show(&app, View::starting());
    }
}

/// Starts the app's own host, or finds the one that has the data folder.
async fn connect(state: &Server) -> Result<RunningHost, Error> {
    let begun = Instant::now();
    loop {
        let started = Host::start(HostOptions {
            home: None,
            listen: None,
            worker: None,
            kind: HostKind::App,
        });
        let (server, own) = match started.await {
            Ok(host) => (host.running(), Some(Arc::new(host))),
            // It may be starting up or shutting down.
            Err(error) if error.code == Code::AlreadyRunning => match find_running_host(None) {
                Some(server) => (server, None),
                None if begun.elapsed() < TURN => {
                    sleep(LOOK_AGAIN).await;
                    continue;
                }
                None => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let mut shown = state.shown();
        shown.server = Some(server.clone());
        shown.own = own;
        shown.failure = None;
        return Ok(server);
    }
}

/// Shows what the server says until it has ended, or is no longer the same.
async fn follow(app: &AppHandle, state: &Server, server: &RunningHost) {
    let own = state.own().is_some();
    let apart = match server.kind {
        _ if own => None,
        HostKind::Cli => {
            Some("A tierbar command is running. Tierbar starts here when it ends.".to_owned())
        }
        HostKind::App | HostKind::Serve => Some(format!(
            "Runs in another process ({}) and goes on when you quit this menu.",
            server.pid
        )),
    };
    state.shown().beside = MenuContext {
        apart,
        ..MenuContext::default()
    };
    let mut heard = Instant::now();
    let mut told = None;
    let mut config = None;
    let mut seen = ShownNotifications::default();
    loop {
        let again = state.again.notified();
        let followed = server.follow(|event| {
            heard = Instant::now();
            match event {
                HostEvent::Status(status) => {
                    for new in seen.next(&status.notifications) {
                        notify(new);
                    }
                    if config.replace(status.config_revision) != Some(status.config_revision) {
                        spawn(read_beside(app.clone(), server.clone()));
                    }
                    state.shown().status = Some(Arc::new(*status));
                }
                HostEvent::Log(entry) => state.shown().beside.last = Some(entry.what.sentence),
            }
            draw(app, state);
        });
        let pause = match followed.await {
            // A slow follower must begin again.
            Ok(()) => {
                told = None;
                LOOK_AGAIN
            }
            Err(error) => {
                // One that ends or starts is silent for a while; one of another version stays it.
                let lasting = error.code == Code::Conflict || heard.elapsed() > TURN;
                if lasting && told.as_ref() != Some(&error.message) {
                    tracing::warn!("the menu cannot show the server: {error}");
                    state.shown().status = None;
                    tray::show(app, View::silent(&error));
                    told = Some(error.message);
                }
                if lasting { RARELY } else { LOOK_AGAIN }
            }
        };
        if wait_for_end(server, own, pause, again).await {
            let mut shown = state.shown();
            shown.server = None;
            shown.status = None;
            return;
        }
    }
}

/// Shows a notification of the host as the system's.
fn notify(notification: &Notification) {
    let title = notification.title.clone();
    let body = host_text::sentence(&notification.body);
    // The system may take its time to answer.
    spawn_blocking(move || {
        if let Err(error) = platform::notify(&title, &body) {
            tracing::warn!("a notification could not be shown: {error}");
        }
    });
}

/// Reads what the status does not say. The menu is without it where that fails.
async fn read_beside(app: AppHandle, server: RunningHost) {
    let (config, last) = tokio::join!(server.config(), server.last_event());
    let state = app.state::<Server>();
    {
        let mut shown = state.shown();
        match config {
            Ok(config) => {
                shortcut::apply(&app, config.menu_bar.shortcut);
                shown.beside.config = Some(Arc::new(config));
            }
            Err(error) => tracing::warn!("the menu cannot read the configuration: {error}"),
        }
        if let Ok(Some(entry)) = last {
            shown.beside.last = Some(entry.what.sentence);
        }
    }
    draw(&app, &state);
}

fn draw(app: &AppHandle, state: &Server) {
    let view = {
        let shown = state.shown();
        let status = shown.status.as_deref();
        status.map(|status| View::running(status, &shown.beside))
    };
    if let Some(view) = view {
        tray::show(app, view);
    }
}

/// Waits until the server is to be followed again. Returns whether it has ended, or is no longer the same.
async fn wait_for_end(
    server: &RunningHost,
    own: bool,
    pause: Duration,
    again: impl Future<Output = ()>,
) -> bool {
    let begun = Instant::now();
    let mut again = pin!(again);
    loop {
        let asked = tokio::select! {
            () = sleep(LOOK_AGAIN) => false,
            () = &mut again => true,
        };
        if !own && find_running_host(None).is_none_or(|now| now != *server) {
            return true;
        }
        if asked || begun.elapsed() >= pause {
            return false;
        }
    }
}

async fn wait_for_host() {
    while find_running_host(None).is_none() {
        sleep(LOOK_AGAIN).await;
    }
}

pub(crate) async fn toggle_pause(app: AppHandle) -> Result<(), Error> {
    let state = app.state::<Server>();
    let (Some(server), Some(status)) = (state.running(), state.status()) else {
        return Ok(());
    };
    let paused = status.guard.stance == Stance::Paused;
    server.set_paused(!paused).await
}

/// Puts the address of the API on the clipboard, as OpenAI's clients want it. Call it on the main thread.
pub(crate) fn copy_address(app: &AppHandle) -> Result<(), String> {
    let url = app.state::<Server>().expect_running()?.url;
    platform::copy(&format!("{url}/v1"))
        .map_err(|error| format!("The address could not be copied: {error}"))
}

/// Changes a setting of a tier; returns why that failed.
pub(crate) async fn set_tier(
    app: AppHandle,
    id: TierId,
    setting: TierSetting,
) -> Result<(), Error> {
    let state = app.state::<Server>();
    let config = state.shown().beside.config.clone();
    let (Some(server), Some(config)) = (state.running(), config) else {
        return Ok(());
    };
    let patch = match setting {
        TierSetting::Pin => {
            let pinned = config.tiers.get(&id).is_some_and(|tier| tier.pinned);
            json!({"tiers": {id.as_str(): {"pinned": !pinned}}})
        }
        TierSetting::Home => {
            let is_home = config.policy.home == id.as_str();
            json!({"policy": {"home": if is_home { "" } else { id.as_str() }}})
        }
        TierSetting::UnloadAfter(time) => json!({"tiers": {id.as_str(): {"idle_unload": time}}}),
    };
    server.change_config(&patch).await
}

/// Loads a tier that is not loaded and unloads one that is; returns why that failed. A second click does not wait for its
/// answers.
pub(crate) async fn toggle_tier(app: AppHandle, id: TierId) -> Result<(), Error> {
    let state = app.state::<Server>();
    let (Some(server), Some(status)) = (state.running(), state.status()) else {
        return Ok(());
    };
    let Some(tier) = status.tiers.iter().find(|tier| tier.id == id) else {
        return Ok(());
    };
    if tier.model.is_none() {
        windows::open(&app, Page::Models);
        return Ok(());
    }
    let done = match tier.state {
        TierState::Stopped | TierState::Failed => server.start(&id).await,
        TierState::Starting | TierState::Ready | TierState::Busy => server.stop(&id, false).await,
        TierState::Stopping => server.stop(&id, true).await,
    };
    let Err(error) = done else { return Ok(()) };
    tracing::warn!(tier = %id, code = error.code.as_str(), "{error}");
    // A failed tier shows the reason in its own item.
    let tiers = server.status().await.map(|status| status.tiers);
    let mut failed = tiers.unwrap_or_default().into_iter();
    if failed.any(|tier| tier.id == id && tier.state == TierState::Failed) {
        return Ok(());
    }
    Err(error)
}
