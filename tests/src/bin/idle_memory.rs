//! The memory of an idle Tierbar, and how fast it shows a window: `make bench-idle`, on Linux.
//!
//! Prints the proportional set size (PSS) of the menu-bar app, with its icon in a tray and no window, and of `tierbar serve`,
//! each without a model and half a minute after its start, and how much of it no other process shares. Then, for the settings, the
//! time from the click in the menu to the window, and to the first content in it.

#![allow(clippy::print_stdout, reason = "it shows what it measured")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tierbar_tests::{
    binaries::program,
    desk::Desk,
    wait::until,
    web_driver::{CHAT, DrivenApp, SETTINGS},
};

const SETTLED: Duration = Duration::from_secs(30);
const OPENINGS: usize = 5;
/// Finer than a display's frames.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

#[tokio::main]
async fn main() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    show("tierbar-app, no window", app.pid()).await;
    drop((app, desk));

    let desk = Desk::new().await;
    let serve = desk
        .command(program("tierbar"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("tierbar");
    until("the host", async || {
        tierbar_host::running(Some(&desk.data())).map(drop)
    })
    .await;
    show("tierbar serve", serve.id().expect("it runs")).await;
    drop((serve, desk));

    open_settings().await;
}

/// Opens the settings beside the chat, and closes them, several times.
async fn open_settings() {
    const TITLE: &str = "Tierbar Settings";
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.element("composer").await;
    let is_open = || desk.display.windows().iter().any(|title| title == TITLE);
    for _ in 0..OPENINGS {
        app.icon.click("Settings").await;
        let (clicked, at) = (Instant::now(), SystemTime::now());
        while !is_open() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let window = clicked.elapsed();
        app.switch_to(SETTINGS).await;
        let painted = "const [first] = performance.getEntriesByName('first-contentful-paint'); \
             return first ? performance.timeOrigin + first.startTime : null";
        let painted = until("the first content", async || {
            app.run(painted, Vec::new()).await.as_f64()
        })
        .await;
        let at = at
            .duration_since(UNIX_EPOCH)
            .expect("a clock")
            .as_secs_f64()
            * 1000.0;
        println!(
            "settings: window after {} ms, content after {:.0} ms",
            window.as_millis(),
            painted - at
        );
        desk.display.close_window(TITLE);
        until("the closed window", async || (!is_open()).then_some(())).await;
        app.switch_to(CHAT).await;
    }
}

async fn show(name: &str, pid: u32) {
    tokio::time::sleep(SETTLED).await;
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its memory");
    let mib = |field: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|line| line.split_whitespace().next());
        kib.and_then(|kib| kib.parse::<f64>().ok()).expect("KiB") / 1024.0
    };
    println!(
        "{name}: {:.1} MiB PSS, {:.1} MiB of it its own",
        mib("Pss:"),
        mib("Private_Clean:") + mib("Private_Dirty:")
    );
}
