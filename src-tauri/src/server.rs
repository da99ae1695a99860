//! The server that the menu and the windows show: the app's own host, or one that runs already, such as a service.
//!
//! One task owns it ([`run`]): it starts or finds a host, follows it, and begins again when it ends.

use crate::{
    notifications, tray,
    view::View,
    windows::{self, Page},
};
use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tauri::{AppHandle, Manager};
use tierbar_core::{
    Code, Error, TierId, TierState, notification::Seen, policy::Stance, status::Status,
};
use tierbar_host::{Host, HostKind, HostOptions, Running, running};
use tokio::{sync::Notify, time::sleep};

/// How long a host may take to start, to end or to answer before it counts as stuck.
const TURN: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often a host that cannot be followed is tried.
const RARELY: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Server {
    shown: Mutex<Shown>,
    /// The user wants another try.
    again: Notify,
}

#[derive(Default)]
struct Shown {
    /// `None` while there is no server.
    server: Option<Running>,
    /// `None` while the menu cannot show it.
    status: Option<Arc<Status>>,
    /// The app's own host, which ends with the app.
    own: Option<Arc<Host>>,
    /// Whether the start has failed, and no server has been shown since.
    failed: bool,
}

impl Server {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn running(&self) -> Option<Running> {
        self.shown().server.clone()
    }

    pub(crate) fn own(&self) -> Option<Arc<Host>> {
        self.shown().own.clone()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.shown().failed
    }

    fn status(&self) -> Option<Arc<Status>> {
        self.shown().status.clone()
    }

    /// Starts a host if none is shown.
    pub(crate) fn retry(&self) {
        // A click that nobody waits for is not kept.
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
                        () = back() => {}
                    }
                }
            }
            Err(error) => {
                crate::startup::print_error(&error);
                state.shown().failed = true;
                tray::show(&app, View::failed(&error));
                again.await;
            }
        }
        tray::show(&app, View::starting());
    }
}

/// Starts the app's own host, or finds the one that has the data folder.
async fn connect(state: &Server) -> Result<Running, Error> {
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
            Err(error) if error.code == Code::AlreadyRunning => match running(None) {
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
        shown.failed = false;
        return Ok(server);
    }
}

/// Shows what the server says until it has ended, or is no longer the same.
async fn follow(app: &AppHandle, state: &Server, server: &Running) {
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
    let mut heard = Instant::now();
    let mut told = None;
    let mut seen = Seen::default();
    loop {
        let again = state.again.notified();
        let followed = server.follow(|status| {
            heard = Instant::now();
            for new in seen.next(&status.notifications) {
                notifications::show(app, new);
            }
            let status = Arc::new(status);
            tray::show(app, View::running(&status, apart.as_deref()));
            state.shown().status = Some(status);
        });
        let pause = match followed.await {
            // A slow follower is told to begin again.
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

/// Waits until the server is to be followed again. Returns whether it has ended, or is no longer the same.
async fn wait_for_end(
    server: &Running,
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
        if !own && running(None).is_none_or(|now| now != *server) {
            return true;
        }
        if asked || begun.elapsed() >= pause {
            return false;
        }
    }
}

/// Returns once a host runs.
async fn back() {
    while running(None).is_none() {
        sleep(LOOK_AGAIN).await;
    }
}

/// Pauses or resumes; returns why that failed.
pub(crate) async fn toggle_pause(app: &AppHandle) -> Result<(), Error> {
    let state = app.state::<Server>();
    let (Some(server), Some(status)) = (state.running(), state.status()) else {
        return Ok(());
    };
    let paused = status.guard.stance == Stance::Paused;
    server.set_paused(!paused).await
}

/// Loads a tier that is not loaded and unloads one that is; returns why that failed. A second click does not wait for its
/// answers.
pub(crate) async fn toggle_tier(app: &AppHandle, id: TierId) -> Result<(), Error> {
    let state = app.state::<Server>();
    let (Some(server), Some(status)) = (state.running(), state.status()) else {
        return Ok(());
    };
    let Some(tier) = status.tiers.iter().find(|tier| tier.id == id) else {
        return Ok(());
    };
    if tier.model.is_none() {
        windows::open(app, Page::Settings);
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
