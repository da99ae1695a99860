//! Starts the app from its command line, and ends it.

use crate::{
    commands,
    dropped::DroppedPaths,
    login_item::{self, LoginItem},
    on_main_thread,
    platform::{self, Confirmation},
    popover::{self, Times},
    server::{self, Server},
    shortcut, tray,
    view::View,
    windows::{self, Page},
    words::{self, Word},
};
use clap::{Parser, ValueEnum};
use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use tauri::{
    AppHandle, Manager, RunEvent, WindowEvent,
    async_runtime::{self, JoinHandle},
};
use tierbar_core::{Code, Error};
use tierbar_host::{AppLock, ask_app};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

/// How long the host may take to end its workers. After that the app ends without waiting, and they end with it.
const SHUTDOWN: Duration = Duration::from_secs(15);
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// Run Tierbar in the menu bar. Without a display, use `tierbar serve`.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// Start as at login: if Tierbar is already running, do nothing
    #[arg(long, alias = "hidden")]
    login: bool,
    /// Window to open at start
    #[arg(long, value_enum)]
    open: Option<Page>,
}

/// Runs the app until it quits. The exit code is 1 if the host could not start.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if let Err(error) = tierbar_host::log_to_folder(None) {
        print_error(&error);
    }
    words::set_language(&platform::languages());
    if let Err(reason) = platform::display() {
        return print_failure(&format!(
            "{reason}; to run without windows, use `tierbar serve`"
        ));
    }
    let lock = match async_runtime::block_on(lock(arguments)) {
        Ok(Start::First(lock)) => Some(Arc::new(lock)),
        Ok(Start::Later) => return ExitCode::SUCCESS,
        Err(error) if error.code == Code::AlreadyRunning => {
            return print_failure(&format!(
                "the Tierbar app is already running, and its window cannot be opened: {error}"
            ));
        }
        // The host's start says it in the menu.
        Err(error) => {
            print_error(&error);
            None
        }
    };
    let open = arguments
        .open
        .or_else(|| opens_a_window(arguments).then_some(Page::Chat));
    let heard = lock.clone();
    let app = platform::configure(tauri::Builder::default())
        .invoke_handler(tauri::generate_handler![
            commands::check_shortcut,
            commands::close_popover,
            commands::command_line,
            commands::connection,
            commands::dropped_folders,
            commands::login_item,
            commands::notification_permission,
            commands::open_chat,
            commands::open_document,
            commands::open_settings,
            commands::read_dropped,
            commands::reveal_models_folder,
            commands::set_command_line,
            commands::set_login_item,
        ])
        .setup(move |app| {
            // Before anything that may quit.
            app.manage(Server::default());
            app.manage(Times::default());
            app.manage(DroppedPaths::default());
            app.manage(LoginItem::default());
            shortcut::listen(app.handle());
            end_on_signals(app.handle())?;
            tray::build(app.handle(), View::starting())?;
            async_runtime::spawn(login_item::renew(app.handle().clone()));
            async_runtime::spawn(server::run(app.handle().clone(), open));
            if let Some(lock) = heard {
                app.manage(StartListener(async_runtime::spawn(hear(
                    app.handle().clone(),
                    lock,
                ))));
            }
            Ok(())
        })
        .build(tauri::generate_context!());
    let mut app = match app {
        Ok(app) => app,
        Err(error) => return print_failure(&format!("the menu-bar app could not start: {error}")),
    };
    // Before the app runs: afterwards, macOS has already shown a Dock icon and moved the focus here.
    platform::leave_dock(&mut app);
    let code = app.run_return(|app, event| match event {
        // The last window closed. Without a code, this is not a request to quit.
        RunEvent::ExitRequested {
            code: None, api, ..
        } => {
            api.prevent_exit();
            let app = app.clone();
            // The desktop may take its time to answer.
            async_runtime::spawn_blocking(move || {
                if !platform::has_tray() {
                    on_main_thread(&app, last_window_closed);
                }
            });
        }
        RunEvent::Exit => shut_down(app),
        RunEvent::WindowEvent {
            event: WindowEvent::Destroyed,
            ..
        } if app.webview_windows().is_empty() => platform::show_in_dock(app, false),
        RunEvent::WindowEvent {
            label,
            event: WindowEvent::Focused(false),
            ..
        } if label == popover::LABEL => popover::lost_focus(app),
        event if platform::is_reopen(&event) => windows::open(app, Page::Chat),
        _ => {}
    });
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Whether this start opens the window unasked: the first one with a data folder, or where the desktop shows no tray icon.
/// Call it before the host starts, which writes the configuration.
fn opens_a_window(arguments: &Arguments) -> bool {
    let is_first = !tierbar_host::data_folder().join("config.toml").exists();
    !arguments.login && (is_first || !platform::has_tray())
}

/// Without a tray icon, nothing would show that the app still runs. Call it on the main thread.
fn last_window_closed(app: &AppHandle) {
    // One was opened since.
    if !app.webview_windows().is_empty() {
        return;
    }
    if app.state::<Server>().own().is_none() {
        return quit(app);
    }
    ask_to_quit(
        app,
        &Confirmation {
            title: Word::QuitQuestion.into(),
            detail: Word::QuitUnseen.into(),
            confirm: Word::Quit.text(),
            cancel: Word::KeepRunning.text(),
        },
    );
}

fn ask_to_quit(app: &AppHandle, question: &Confirmation) {
    let app = app.clone();
    platform::ask(question, move |yes| {
        if yes {
            quit(&app);
        }
    });
}

/// What this start is.
enum Start {
    /// The app.
    First(AppLock),
    /// A second start, whose window the first one has opened.
    Later,
}

/// Takes the app's lock, or asks the app that has it for the window. At login that app is left alone.
async fn lock(arguments: &Arguments) -> Result<Start, Error> {
    let begun = Instant::now();
    let page = arguments.open.unwrap_or(Page::Chat).to_possible_value();
    let page = page.as_ref().map_or("chat", |page| page.get_name());
    loop {
        match AppLock::take(None) {
            Ok(lock) => return Ok(Start::First(lock)),
            Err(error) if error.code != Code::AlreadyRunning => return Err(error),
            Err(_) if arguments.login => return Ok(Start::Later),
            Err(_) => {}
        }
        // It may be starting, or ending: then this one takes its place.
        match ask_app(None, page).await {
            Ok(()) => return Ok(Start::Later),
            Err(silent) if begun.elapsed() > SHUTDOWN => {
                return Err(Error::new(Code::AlreadyRunning, silent.message));
            }
            Err(_) => {}
        }
        sleep(ASK_AGAIN).await;
    }
}

/// Hears later starts, which an app that ends no longer does: one of them takes its place.
struct StartListener(JoinHandle<()>);

/// Opens the windows that later starts ask for.
async fn hear(app: AppHandle, lock: Arc<AppLock>) {
    let heard = lock.hear(|page| match Page::from_str(page, true) {
        Ok(page) => windows::open(&app, page),
        Err(unknown) => tracing::warn!("a later start asked for no window: {unknown}"),
    });
    if let Err(error) = heard.await {
        tracing::warn!("a later start cannot ask for a window: {error}");
    }
}

/// Shows the configuration's folder, which is what most failed starts need.
pub(crate) fn open_folder() {
    let folder = tierbar_host::data_folder();
    if let Err(error) = open::that_detached(&folder) {
        tracing::error!(%error, folder = %folder.display(), "the folder could not be opened");
    }
}

/// Quits as the menu's item does: asks first if an answer would be cut off. Downloads resume, and chats and the queue are
/// stored. Call it on the main thread.
pub(crate) fn quit_from_menu(app: &AppHandle) {
    let Some(tier) = app.state::<Server>().answering() else {
        return quit(app);
    };
    ask_to_quit(
        app,
        &Confirmation {
            title: Word::QuitWhileAnswering.with(&[&words::tier(&tier)]),
            detail: Word::QuitCutsOff.into(),
            confirm: Word::Quit.text(),
            cancel: Word::Cancel.text(),
        },
    );
}

/// Ends the app; with status 1 if the host could not start.
pub(crate) fn quit(app: &AppHandle) {
    let failed = app.state::<Server>().failure().is_some();
    app.exit(i32::from(failed));
}

fn end_on_signals(app: &AppHandle) -> std::io::Result<()> {
    // Registering needs the runtime's context, and this runs outside it.
    let (mut terminate, mut interrupt) = async_runtime::block_on(async {
        Ok::<_, std::io::Error>((
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        ))
    })?;
    let app = app.clone();
    async_runtime::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        quit(&app);
    });
    Ok(())
}

/// Shuts the app's own host down; one that it only shows goes on. Runs on the main thread, right before the process ends for any reason.
fn shut_down(app: &AppHandle) {
    if let Some(hearing) = app.try_state::<StartListener>() {
        hearing.0.abort();
    }
    let own = app.try_state::<Server>().and_then(|server| server.own());
    let Some(host) = own else {
        return;
    };
    let ending = async { tokio::time::timeout(SHUTDOWN, host.shutdown()).await };
    if async_runtime::block_on(ending).is_err() {
        tracing::error!("the host did not end in time");
    }
}

fn print_failure(message: &str) -> ExitCode {
    print(message);
    ExitCode::FAILURE
}

pub(crate) fn print_error(error: &Error) {
    print(&error.to_string());
    if let Some(hint) = &error.hint {
        print(hint);
    }
}

#[expect(
    clippy::print_stderr,
    reason = "for the terminal, whatever the log's filter"
)]
fn print(line: &str) {
    eprintln!("tierbar-app: {line}");
}
