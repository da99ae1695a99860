//! The memory of an idle Tierbar: `make bench-idle`, on Linux.
//!
//! Prints the proportional set size (PSS) of the menu-bar app, with its icon in a tray and no window, and of `tierbar serve`,
//! each without a model and half a minute after its start, and how much of it no other process shares.

#![allow(clippy::print_stdout, reason = "it shows what it measured")]

use std::time::Duration;
use tierbar_tests::{binaries::program, desk::Desk, wait::until};

const SETTLED: Duration = Duration::from_secs(30);

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
