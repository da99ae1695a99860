//! The memory of an idle Tierbar, how fast it shows a window, and what an open window takes: `make bench-idle`, on Linux.
//!
//! Prints the proportional set size (PSS) of the menu-bar app, with its icon in a tray and no window, and of `tierbar serve`,
//! each without a model and half a minute after its start, and how much of it no other process shares. Then, for the settings, the
//! time from the click in the menu to the window, and to the first content in it. At last the CPU time of an open, quiet chat and
//! Monitor, by all processes of the app.

#![allow(clippy::print_stdout, reason = "it shows what it measured")]

use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tierbar_tests::{
    binaries::program,
    desk::Desk,
    wait::until,
    web_driver::{CHAT, DrivenApp, SETTINGS},
};

const SETTLED: Duration = Duration::from_secs(30);
const OPENINGS: usize = 5;
const QUIET: Duration = Duration::from_secs(60);
/// Of `/proc`, a second; the same on all Linux machines.
const TICKS: f64 = 100.0;
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
        tierbar_host::find_running_host(Some(&desk.data())).map(drop)
    })
    .await;
    show("tierbar serve", serve.id().expect("it runs")).await;
    drop((serve, desk));

    open_settings().await;
    stay_open().await;
}

/// Leaves the chat open, and then the Monitor beside it.
async fn stay_open() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.element("composer").await;
    // After its start, the app looks at its models and at the machine.
    tokio::time::sleep(SETTLED).await;
    watch("an open, quiet chat", &desk).await;
    app.icon.click("Monitor").await;
    app.switch_to(SETTINGS).await;
    app.find(".card").await;
    watch("an open, quiet chat and Monitor", &desk).await;
}

async fn watch(name: &str, desk: &Desk) {
    tokio::time::sleep(SETTLED).await;
    let (before, at) = (cpu_ticks(desk), Instant::now());
    tokio::time::sleep(QUIET).await;
    let (after, seconds) = (cpu_ticks(desk), at.elapsed().as_secs_f64());
    for (program, ticks) in after {
        let taken = (ticks - before.get(&program).unwrap_or(&0.0)) / TICKS;
        println!(
            "{name}: {program} {:.2} % of a core",
            taken / seconds * 100.0
        );
    }
}

/// The CPU time so far of the app, whose process has the host, and of its web pages.
fn cpu_ticks(desk: &Desk) -> BTreeMap<String, f64> {
    let mut ticks = BTreeMap::new();
    for (name, pid) in desk.processes() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let is_of_app = name.starts_with("tierbar") || name == "WebKitWebProcess";
        if let Some(spent) = stat.filter(|_| is_of_app).and_then(|stat| spent(&stat)) {
            *ticks.entry(name).or_insert(0.0) += spent;
        }
    }
    ticks
}

/// Fields 14 and 15 of `proc_pid_stat(5)`, counted from the end of the name, which may have spaces.
fn spent(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some(ticks(11)? + ticks(12)?)
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
