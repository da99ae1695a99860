//! The menu-bar app as users see it: its tray menu over D-Bus, its windows through WebKit's driver, its processes.

use serde_json::json;
use std::{os::unix::fs::PermissionsExt, path::Path, process::ExitStatus};
use tierbar_core::{download::DownloadState, policy::Stance};
use tierbar_tests::{
    binaries::{program, source},
    desk::{Desk, gone, is_alive},
    hub::{self, HubStandIn},
    tray_host::TrayIcon,
    wait::{until, within},
    web_driver::{CHAT, DrivenApp, POPOVER, SETTINGS},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Child,
};

const MODEL: &str = "SmolLM2-135M-Instruct.Q4_1";

fn same_picture(one: &Path, other: &Path) -> bool {
    let pixels = |path: &Path| {
        image::open(path)
            .map(|picture| picture.to_rgba8().into_raw())
            .ok()
    };
    let one = pixels(one);
    one.is_some() && one == pixels(other)
}

/// Waits until the tray shows the picture of this name in `icons/tray`.
async fn shows(icon: &TrayIcon, mark: &str) {
    let wanted = source(&format!("icons/tray/{mark}.png"));
    icon.until(&format!("the {mark} picture"), async |icon, _| {
        same_picture(&icon.picture().await, &wanted).then_some(())
    })
    .await;
}

/// Returns the text of the last answer on the page.
async fn written(app: &DrivenApp) -> String {
    let css = "[data-testid=\"message-assistant\"] .markdown";
    let script = "return [...document.querySelectorAll(arguments[0])].at(-1)?.innerText ?? ''";
    let text = app.run(script, vec![css.into()]).await;
    text.as_str().map(str::to_owned).unwrap_or_default()
}

fn succeeded(status: ExitStatus) {
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn the_app_starts_as_a_tray_icon_without_a_window() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    let menu = app.icon.menu().await;
    let labels: Vec<_> = menu
        .0
        .iter()
        .filter(|entry| !entry.separator)
        .map(|entry| entry.label.as_str())
        .collect();
    assert!(labels[0].starts_with("RAM "), "{menu}");
    assert!(labels[1].starts_with("Swap "), "{menu}");
    assert_eq!(labels[2], "No model loaded", "{menu}");
    let fast = format!("Fast — {MODEL}, not loaded");
    // The event log may have something to say in between.
    let at = labels.iter().position(|label| *label == fast);
    let at = at.unwrap_or_else(|| panic!("{menu}"));
    let rest = [
        fast.as_str(),
        "Deep — no model chosen",
        "Pause All",
        "Open Chat",
        "Models…",
        "Monitor…",
        "Settings…",
        "Copy API Address",
        "Start at Login",
        "Quit Tierbar",
    ];
    assert_eq!(labels[at..], rest);
    assert!(!menu.0[0].enabled, "{menu}");
    assert!(menu.find("Fast > Load").is_some(), "{menu}");
    assert!(menu.find("Deep > Choose a Model…").is_some(), "{menu}");
    shows(&app.icon, "idle").await;
    assert_eq!(desk.display.windows(), Vec::<String>::new());
    // A process that it is just starting has its name at first.
    until("the app alone", async || {
        (desk.processes() == [("tierbar-app".to_owned(), app.pid())]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn without_a_tray_the_app_starts_with_its_window() {
    let desk = Desk::new().await;
    desk.tray.leave().await;
    let _app = desk.command(program("tierbar-app")).spawn().unwrap();
    until("the chat window", async || {
        (desk.display.windows() == ["Tierbar"]).then_some(())
    })
    .await;
    desk.display.close_window("Tierbar");
    until("the question", async || {
        (desk.display.windows() == ["Quit Tierbar"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_tier_is_started_and_stopped_from_the_menu() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    app.icon.click("Fast > Load").await;
    app.icon
        .until("the loaded tier", async |_, menu| {
            let ready = menu.find("Fast —")?.label.contains(", ready, ");
            (ready && menu.find("1 model loaded · ").is_some()).then_some(())
        })
        .await;
    shows(&app.icon, "ready").await;
    let worker = desk.status().await.tiers[0].pid.expect("a worker");
    assert!(is_alive(worker));

    app.icon.click("Fast > Unload").await;
    app.icon
        .until("the unloaded tier", async |_, menu| {
            menu.find("Fast > Load").map(|_| ())
        })
        .await;
    shows(&app.icon, "idle").await;
    assert!(!is_alive(worker));
}

#[tokio::test]
async fn a_tiers_submenu_changes_its_settings() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    app.icon
        .until("the settings", async |_, menu| {
            menu.find("Fast > Home Tier").map(|_| ())
        })
        .await;
    app.icon.click("Fast > Home Tier").await;
    app.icon.click("Fast > Unload When Idle > After 30").await;
    app.icon
        .until("the changed settings", async |_, menu| {
            let home = menu.is_checked("Fast > Home Tier");
            let time = menu.is_checked("Fast > Unload When Idle > After 30 Minutes");
            (home && time).then_some(())
        })
        .await;
    let config = std::fs::read_to_string(desk.data().join("config.toml")).unwrap();
    assert!(config.contains("home = \"fast\""), "{config}");
    assert!(config.contains("idle_unload = \"30m\""), "{config}");

    app.icon.click("Fast > Keep Loaded").await;
    app.icon
        .until("the check", async |_, menu| {
            menu.is_checked("Fast > Keep Loaded").then_some(())
        })
        .await;
    app.icon.click("Deep > Choose a Model…").await;
    until("the models", async || {
        (desk.display.windows() == ["Tierbar Settings"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_menu_pauses_says_why_and_copies_the_address() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    app.icon.click("Pause All").await;
    app.icon
        .until("the menu to show the pause", async |_, menu| {
            let shown = menu.0.iter().any(|entry| entry.label.contains("paused"));
            menu.find("Resume").filter(|_| shown).map(|_| ())
        })
        .await;
    assert_eq!(desk.status().await.guard.stance, Stance::Paused);
    app.icon.click("Tierbar is paused").await;
    until("the Monitor", async || {
        (desk.display.windows() == ["Tierbar Settings"]).then_some(())
    })
    .await;
    app.icon.click("Resume").await;
    app.icon
        .until("no pause", async |_, menu| {
            menu.find("Pause All").map(|_| ())
        })
        .await;
    assert_eq!(desk.status().await.guard.stance, Stance::Open);
    app.icon.click("Copy API Address").await;
    let address = format!("{}/v1", desk.status().await.url);
    until("the address on the clipboard", async || {
        (desk.display.clipboard() == address).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_second_click_ends_a_draining_tier() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    let question = json!({
        "model": "fast", "stream": true, "ignore_eos": true, "messages": [{"role": "user", "content": "Tell me a story."}],
    });
    let mut answer = desk.complete(&question).await;
    within("the first words", answer.chunk()).await.unwrap();
    let worker = desk.status().await.tiers[0].pid.unwrap();
    app.icon.click("Fast > Unload").await;
    app.icon
        .until("that it is unloading", async |_, menu| {
            menu.find("Fast — unloading").map(|_| ())
        })
        .await;
    assert!(is_alive(worker), "the answer was not waited for");
    app.icon.click("Fast > Unload Now").await;
    shows(&app.icon, "idle").await;
    assert!(!is_alive(worker));
    within("the rest of the answer", answer.text())
        .await
        .unwrap_or_default();
}

#[tokio::test]
async fn a_failed_tier_says_why_in_its_submenu() {
    let desk = Desk::new().await;
    desk.configure("listen = \"127.0.0.1:0\"\n[tiers.fast]\nmodel = \"broken.gguf\"\n");
    std::fs::write(desk.data().join("models/broken.gguf"), "not a model").unwrap();
    let app = desk.start_app().await;
    app.icon.click("Fast > Load").await;
    app.icon
        .until("the failure", async |_, menu| {
            let fast = menu.find("Fast —")?;
            let reason = fast.items.first().is_some_and(|item| !item.enabled);
            let failed = fast.label.ends_with(", failed") && reason;
            menu.find("Fast > Try Again").filter(|_| failed).map(|_| ())
        })
        .await;
    shows(&app.icon, "warning").await;
}

#[tokio::test]
async fn a_tier_added_to_the_configuration_appears_in_the_menu() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    let config = std::fs::read_to_string(desk.data().join("config.toml")).unwrap();
    desk.configure(&format!("{config}[tiers.coder]\n"));
    app.icon
        .until("the new tier", async |_, menu| {
            menu.find("Coder — no model chosen")
                .and_then(|_| menu.find("Quit Tierbar"))
                .map(|_| ())
        })
        .await;
}

#[tokio::test]
async fn the_menu_shows_a_download_and_its_end_is_notified() {
    let hub = HubStandIn::start(hub::Options {
        rate: 4_000_000,
        ..hub::Options::default()
    })
    .await;
    let mut desk = Desk::new().await;
    desk.set("HF_ENDPOINT", hub.url());
    let config = std::fs::read_to_string(desk.data().join("config.toml")).unwrap();
    desk.configure(&format!("{config}[notifications]\ndownloads = true\n"));
    let mut notifications = desk.notifications().await;
    let app = desk.start_app().await;
    let request = json!({"reference": "tierbar-tests/tiny-GGUF:Q4_K_M"});
    desk.ask("/tierbar/v1/downloads", &request).await;
    app.icon
        .until("progress and rate", async |_, menu| {
            let line = &menu.find("Downloading gemma-3-270m-q4_k_m…")?.label;
            (line.contains(" % · ") && line.contains("B/s · ") && line.ends_with(" left"))
                .then_some(())
        })
        .await;
    // The rest of the menu is as it was.
    let menu = app.icon.menu().await;
    assert!(menu.find("Models…").is_some() && menu.find("Quit Tierbar").is_some());
    app.icon.click("Downloading").await;
    until("the settings window", async || {
        let windows = desk.display.windows();
        windows
            .contains(&"Tierbar Settings".to_owned())
            .then_some(())
    })
    .await;
    hub.set_rate(0);
    app.icon
        .until("its end", async |_, menu| {
            let gone = menu.find("Downloading").is_none() && menu.find("Verifying").is_none();
            gone.then_some(())
        })
        .await;
    let status = desk.status().await;
    assert_eq!(status.downloads[0].state, DownloadState::Done);
    let (title, text) = notifications.shown().await;
    assert_eq!(title, "Download finished");
    assert_eq!(text, "gemma-3-270m-q4_k_m is ready.");
    let file = desk.data().join("models/gemma-3-270m-q4_k_m.gguf");
    assert!(file.exists());
}

#[tokio::test]
async fn an_answer_streams_into_the_chat_window() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    // The page itself records how the answer grows: the driver polls too seldom.
    app.run(
        "window.seen = []; \
         const look = () => { \
           const answer = document.querySelector('[data-testid=\"message-assistant\"] .markdown'); \
           if (answer && answer.innerText.length !== window.seen.at(-1)) window.seen.push(answer.innerText.length); \
         }; \
         new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true})",
        Vec::new(),
    )
    .await;
    app.type_into("composer", "Why is the sky blue?").await;
    app.click("send").await;
    app.answered(1).await;
    let answer = written(&app).await;
    assert!(answer.split_whitespace().count() > 5, "{answer}");
    let seen = app.run("return window.seen", Vec::new()).await;
    assert!(
        seen.as_array().is_some_and(|seen| seen.len() > 3),
        "the answer came at once: {seen}"
    );
    let stats = app.texts("answer-stats").await.pop().unwrap();
    for figure in ["Fast", MODEL, " tok/s", " to first token"] {
        assert!(stats.contains(figure), "{stats}");
    }
    let memory = app.texts("strip-ram").await.pop().unwrap();
    assert!(memory.contains("GB"), "{memory}");
    app.icon
        .until("the speed in the menu", async |_, menu| {
            menu.0[2].label.contains(" tok/s").then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_streaming_answer_can_be_stopped() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.type_into("composer", "Write a story about the sea.")
        .await;
    app.click("send").await;
    until("the first words", async || {
        (written(&app).await.split_whitespace().count() > 3).then_some(())
    })
    .await;
    shows(&app.icon, "busy").await;
    app.click("stop").await;
    // The tier is no longer leased: the worker has stopped.
    shows(&app.icon, "ready").await;
    app.element("send").await;
    let kept = written(&app).await;
    assert!(kept.split_whitespace().count() > 3, "{kept}");
}

/// The keysyms of Alt and Space.
const SHORTCUT: [u32; 2] = [0xffe9, 0x20];

#[tokio::test]
async fn a_closed_window_leaves_no_web_process_behind() {
    let desk = Desk::new().await;
    let config = std::fs::read_to_string(desk.data().join("config.toml")).unwrap();
    desk.configure(&format!("{config}[menu_bar]\nshortcut = \"Alt+Space\"\n"));
    let mut app = desk.start_app().await;
    // The configuration has been read, and the shortcut with it.
    app.icon
        .until("the settings of the tiers", async |_, menu| {
            menu.find("Fast > Home Tier").map(|_| ())
        })
        .await;
    for (item, title) in [
        (None, "Tierbar Overview"),
        (Some("Open Chat"), "Tierbar"),
        (Some("Monitor"), "Tierbar Settings"),
    ] {
        match item {
            Some(item) => app.icon.click(item).await,
            None => desk.display.press_keys(&SHORTCUT),
        }
        until(title, async || {
            (desk.display.windows() == [title]).then_some(())
        })
        .await;
        let web = until("the web process", async || {
            desk.processes()
                .into_iter()
                .find_map(|(name, pid)| (name == "WebKitWebProcess").then_some(pid))
        })
        .await;
        desk.display.close_window(title);
        gone(web).await;
    }
    until("the end of all web processes", async || {
        (desk.count("WebKitWebProcess") == 0).then_some(())
    })
    .await;
    assert!(!app.has_ended());
    assert!(app.icon.menu().await.find("Open Chat").is_some());
}

#[tokio::test]
async fn opening_a_window_again_shows_the_open_one() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    for _ in 0..2 {
        app.icon.click("Settings").await;
        app.icon.click("Open Chat").await;
    }
    until("both windows", async || {
        (desk.display.windows().len() >= 2).then_some(())
    })
    .await;
    let mut windows = desk.display.windows();
    windows.sort();
    assert_eq!(windows, ["Tierbar", "Tierbar Settings"]);
}

#[tokio::test]
async fn a_second_launch_opens_the_firsts_chat_and_ends() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    let at_login = desk.launch_app(&["--login"]).await;
    succeeded(at_login.status);
    assert_eq!(desk.display.windows(), Vec::<String>::new());

    let second = desk.launch_app(&[]).await;
    succeeded(second.status);
    until("the chat window", async || {
        desk.display
            .windows()
            .contains(&"Tierbar".to_owned())
            .then_some(())
    })
    .await;
    // A process that the first one is just starting has its name at first.
    until("a single app", async || {
        let apps = desk
            .processes()
            .into_iter()
            .filter(|(name, _)| name == "tierbar-app");
        apps.map(|(_, pid)| pid).eq([app.pid()]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_second_launch_opens_the_window_that_it_names() {
    let desk = Desk::new().await;
    // Even where there is no server to ask.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    desk.configure(&format!("listen = \"{address}\"\n"));
    let app = desk.start_app().await;
    shows(&app.icon, "failed").await;
    succeeded(desk.launch_app(&["--open", "settings"]).await.status);
    until("the settings", async || {
        (desk.display.windows() == ["Tierbar Settings"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_icon_that_the_desktop_lost_is_built_again() {
    let desk = Desk::new().await;
    desk.tray.lose_one().await;
    let app = desk.start_app().await;
    // A click acts once.
    app.icon.click("Start at Login").await;
    app.icon
        .until("the check", async |_, menu| {
            menu.is_checked("Start at Login").then_some(())
        })
        .await;
    app.icon.click("Open Chat").await;
    until("the chat window", async || {
        (desk.display.windows() == ["Tierbar"]).then_some(())
    })
    .await;
    assert!(app.icon.menu().await.is_checked("Start at Login"));
}

#[tokio::test]
async fn a_launch_while_the_first_quits_takes_its_place() {
    let desk = Desk::new().await;
    let mut first = desk.start_app().await;
    let question = json!({
        "model": "fast", "stream": true, "ignore_eos": true, "messages": [{"role": "user", "content": "Tell me a story."}],
    });
    // An answer that its end waits for.
    let mut answer = desk.complete(&question).await;
    within("the first words", answer.chunk()).await.unwrap();
    // The menu asks first; a signal does not.
    first.icon.click("Quit").await;
    until("the question", async || {
        (desk.display.windows() == ["Quit Tierbar"]).then_some(())
    })
    .await;
    let pid = first.pid().to_string();
    let kill = desk.command("kill").args(["-TERM", &pid]).status();
    succeeded(within("kill", kill).await.unwrap());
    let second = desk.command(program("tierbar-app")).spawn().unwrap();
    succeeded(first.ended().await);
    let place = until("the second app's host", async || {
        tierbar_host::find_running_host(Some(&desk.data())).map(|host| host.pid)
    });
    assert_eq!(Some(place.await), second.id());
}

#[tokio::test]
async fn the_menu_item_adds_and_removes_the_login_item() {
    let desk = Desk::new().await;
    let app = desk.start_app().await;
    let file = desk.home().join(".config/autostart/Tierbar.desktop");
    assert!(!file.exists());
    app.icon.click("Start at Login").await;
    app.icon
        .until("the check", async |_, menu| {
            menu.is_checked("Start at Login").then_some(())
        })
        .await;
    let item = std::fs::read_to_string(&file).unwrap();
    let command = format!("Exec={} --login", program("tierbar-app").display());
    assert!(item.lines().any(|line| line == command), "{item}");

    app.icon.click("Start at Login").await;
    app.icon
        .until("no check", async |_, menu| {
            (!menu.is_checked("Start at Login")).then_some(())
        })
        .await;
    assert!(!file.exists());
}

#[tokio::test]
async fn a_login_item_follows_an_app_that_was_moved() {
    let desk = Desk::new().await;
    let folder = desk.home().join(".config/autostart");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("Tierbar.desktop"),
        "[Desktop Entry]\nExec=/gone/tierbar-app --login\n",
    )
    .unwrap();
    let app = desk.start_app().await;
    app.icon
        .until("the check", async |_, menu| {
            menu.is_checked("Start at Login").then_some(())
        })
        .await;
    let item = std::fs::read_to_string(folder.join("Tierbar.desktop")).unwrap();
    assert!(
        item.contains(&format!(
            "Exec={} --login",
            program("tierbar-app").display()
        )),
        "{item}"
    );
}

#[tokio::test]
async fn a_login_item_that_cannot_be_written_stays_unchecked() {
    let desk = Desk::new().await;
    // A file where the folder would be: this fails for root too.
    std::fs::write(desk.home().join(".config"), "").unwrap();
    let app = desk.start_app().await;
    app.icon.click("Start at Login").await;
    app.icon
        .until("the reason", async |_, menu| {
            menu.find("Start at Login could not be turned on")?;
            (!menu.is_checked("Start at Login")).then_some(())
        })
        .await;
}

#[tokio::test]
async fn the_settings_set_the_login_item_and_the_menu_follows() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.icon.click("Settings").await;
    app.switch_to(SETTINGS).await;
    app.click("settings-nav-general").await;
    app.click("settings-login-item").await;
    app.icon
        .until("the check", async |_, menu| {
            menu.is_checked("Start at Login").then_some(())
        })
        .await;
    assert!(
        desk.home()
            .join(".config/autostart/Tierbar.desktop")
            .exists()
    );
}

#[tokio::test]
async fn quit_ends_every_process() {
    let desk = Desk::new().await;
    let mut app = desk.start_app().await;
    app.icon.click("Fast > Load").await;
    shows(&app.icon, "ready").await;
    let worker = desk.status().await.tiers[0].pid.unwrap();
    app.icon.click("Open Chat").await;
    until("the web process", async || {
        (desk.count("WebKitWebProcess") > 0).then_some(())
    })
    .await;

    app.icon.click("Quit").await;
    succeeded(app.ended().await);
    assert!(!is_alive(worker), "the worker outlived the app");
    until("the end of all processes", async || {
        desk.processes().is_empty().then_some(())
    })
    .await;
    assert!(tierbar_host::find_running_host(Some(&desk.data())).is_none());
}

#[tokio::test]
async fn a_signal_ends_the_app_as_quit_does() {
    let desk = Desk::new().await;
    let mut app = desk.start_app().await;
    app.icon.click("Fast > Load").await;
    shows(&app.icon, "ready").await;
    let worker = desk.status().await.tiers[0].pid.unwrap();
    let kill = desk
        .command("kill")
        .args(["-TERM", &app.pid().to_string()])
        .status();
    succeeded(within("kill", kill).await.unwrap());
    succeeded(app.ended().await);
    assert!(!is_alive(worker), "the worker outlived the app");
}

#[tokio::test]
async fn a_taken_port_is_shown_in_the_tray_and_can_be_retried() {
    let desk = Desk::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    desk.configure(&format!("listen = \"{address}\"\n[tiers.fast]\n"));
    let mut app = desk.start_app().await;
    shows(&app.icon, "failed").await;
    let menu = app.icon.menu().await;
    let labels: Vec<_> = menu
        .0
        .iter()
        .filter(|entry| !entry.enabled)
        .map(|entry| entry.label.as_str())
        .collect();
    let text = labels.join(" ");
    assert!(
        text.starts_with("Tierbar could not start: ") && text.contains(&address.port().to_string()),
        "{menu}"
    );
    app.icon.click("Open Configuration Folder").await;
    let folder = desk.data().display().to_string();
    until("the folder", async || {
        desk.opened().contains(&folder).then_some(())
    })
    .await;

    drop(taken);
    app.icon.click("Try Again").await;
    app.icon
        .until("the tiers", async |_, menu| {
            menu.find("Fast — no model chosen").map(|_| ())
        })
        .await;
    shows(&app.icon, "idle").await;
    assert_eq!(desk.status().await.url, format!("http://{address}"));
    app.icon.click("Quit").await;
    succeeded(app.ended().await);
}

/// Runs a server without windows on the desk, as a service does.
async fn serve(desk: &Desk) -> Child {
    let server = desk
        .command(program("tierbar"))
        .arg("serve")
        .spawn()
        .unwrap();
    until("the server", async || {
        tierbar_host::find_running_host(Some(&desk.data()))
    })
    .await;
    server
}

/// Waits until the menu shows a server that is not the app's own.
async fn shows_service(icon: &TrayIcon) {
    icon.until("the service", async |_, menu| {
        menu.find("Runs in another process").map(|_| ())
    })
    .await;
}

#[tokio::test]
async fn the_app_shows_a_service_and_leaves_it_running() {
    let desk = Desk::new().await;
    let mut server = serve(&desk).await;
    let mut app = desk.start_app().await;
    shows_service(&app.icon).await;
    app.icon.click("Fast > Load").await;
    app.icon
        .until("the loaded tier", async |_, menu| {
            menu.find("Fast > Unload").map(|_| ())
        })
        .await;
    shows(&app.icon, "ready").await;
    app.icon.click("Pause All").await;
    until("a paused service", async || {
        (desk.status().await.guard.stance == Stance::Paused).then_some(())
    })
    .await;

    // Launched again, it has no second icon.
    succeeded(desk.launch_app(&["--login"]).await.status);
    assert_eq!(desk.display.windows(), Vec::<String>::new());
    succeeded(desk.launch_app(&[]).await.status);
    until("the chat window", async || {
        desk.display
            .windows()
            .contains(&"Tierbar".to_owned())
            .then_some(())
    })
    .await;

    // A service that crashes is started again, and shown again.
    server.kill().await.unwrap();
    shows(&app.icon, "failed").await;
    let server = serve(&desk).await;
    shows_service(&app.icon).await;
    app.icon.click("Quit").await;
    succeeded(app.ended().await);
    let running = tierbar_host::find_running_host(Some(&desk.data())).expect("the service");
    assert_eq!(Some(running.pid), server.id());
}

#[tokio::test]
async fn try_again_replaces_a_service_that_was_stopped() {
    let desk = Desk::new().await;
    let mut server = serve(&desk).await;
    let app = desk.start_app().await;
    shows_service(&app.icon).await;
    server.kill().await.unwrap();
    shows(&app.icon, "failed").await;
    app.icon.click("Try Again").await;
    app.icon
        .until("the tiers", async |_, menu| menu.find("Fast —").map(|_| ()))
        .await;
    let running = tierbar_host::find_running_host(Some(&desk.data())).expect("a host");
    assert_eq!(running.pid, app.pid());
}

#[tokio::test]
async fn the_menu_says_that_a_service_is_another_version() {
    let desk = Desk::new().await;
    let run = desk.data().join("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
    let lock = std::fs::File::create(run.join("lock")).unwrap();
    lock.lock().unwrap();
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = json!({
        "pid": 4711, "url": format!("http://{}", server.local_addr().unwrap()), "kind": "serve", "version": "7.1.0",
    });
    std::fs::write(run.join("host.json"), host.to_string()).unwrap();
    std::fs::write(desk.data().join("token"), "a-token").unwrap();
    let app = desk.command(program("tierbar-app")).spawn().unwrap();
    let serve = async {
        loop {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                          event: snapshot\ndata: {\"memory\": 1}\n\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    };
    let shown = async {
        let icon = desk.tray.icon().await;
        shows(&icon, "failed").await;
        let menu = icon.menu().await;
        let lines = menu.0.iter().filter(|entry| !entry.enabled);
        let text: Vec<_> = lines.map(|entry| entry.label.as_str()).collect();
        let text = text.join(" ");
        assert!(
            text.contains("Tierbar 7.1.0 runs as process 4711")
                && text.contains("tierbar service install"),
            "{menu}"
        );
        // Once it has ended, the app may start its own.
        drop(lock);
        std::fs::remove_file(desk.data().join("token")).unwrap();
        icon.until("its end", async |_, menu| {
            menu.0
                .iter()
                .any(|entry| entry.label.starts_with("Tierbar was stopped"))
                .then_some(())
        })
        .await;
        icon.click("Try Again").await;
        icon.until("the tiers", async |_, menu| menu.find("Fast —").map(|_| ()))
            .await;
    };
    tokio::select! {
        () = serve => {}
        () = shown => {}
    }
    drop(app);
}

#[tokio::test]
async fn the_windows_of_an_app_chat_with_a_service() {
    let desk = Desk::new().await;
    let server = serve(&desk).await;
    let app = DrivenApp::start(&desk).await;
    succeeded(desk.launch_app(&["--open", "popover"]).await.status);
    app.switch_to(POPOVER).await;
    app.element("popover-tier-fast").await;
    let tier = app.texts("popover-tier-fast").await.concat();
    assert!(tier.contains("Fast") && tier.contains(MODEL), "{tier}");
    app.type_into("popover-question", "Hello").await;
    app.click("popover-ask").await;
    // The chat opens with the question, and the overview goes.
    app.switch_to(CHAT).await;
    app.answered(1).await;
    assert!(!written(&app).await.is_empty());
    until("the chat alone", async || {
        (desk.display.windows() == ["Tierbar"]).then_some(())
    })
    .await;
    let running = tierbar_host::find_running_host(Some(&desk.data())).expect("the service");
    assert_eq!(Some(running.pid), server.id());
}

#[tokio::test]
async fn without_a_display_the_app_names_the_server_program() {
    let desk = Desk::new().await;
    let mut command = desk.command(program("tierbar-app"));
    let output = within("the app", command.env_remove("DISPLAY").output())
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("display") && stderr.contains("tierbar serve"),
        "{stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[tokio::test]
async fn links_open_in_the_browser_and_never_in_the_window() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.element("composer").await;
    app.run(
        "const link = document.createElement('a');\
         link.href = 'https://example.com/page'; link.target = '_blank'; link.id = 'link'; link.textContent = 'link';\
         document.body.prepend(link)",
        Vec::new(),
    )
    .await;
    let link = app.find("#link").await;
    within("a click", app.session.click(&link)).await.unwrap();
    let wanted = ["https://example.com/page".to_owned()];
    until("the browser", async || {
        (desk.opened() == wanted).then_some(())
    })
    .await;
    app.run("location.href = 'file:///etc/passwd'", Vec::new())
        .await;
    app.run("location.href = 'https://example.com/away'", Vec::new())
        .await;
    until("the browser", async || {
        (desk.opened().len() == 2).then_some(())
    })
    .await;
    let url = within("the address", app.session.url()).await.unwrap();
    assert_eq!(url, "tauri://localhost");
    assert_eq!(desk.display.windows(), ["Tierbar"]);
}

#[tokio::test]
async fn the_settings_say_that_the_desktop_shows_no_notifications() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.icon.click("Settings").await;
    app.switch_to(SETTINGS).await;
    app.click("settings-nav-general").await;
    app.click("settings-notify-memory").await;
    app.element("notifications-denied").await;
    let text = app.texts("notifications-denied").await.concat();
    assert!(text.contains("does not show notifications"), "{text}");
    let _notifications = desk.notifications().await;
    app.run("window.dispatchEvent(new Event('focus'))", vec![])
        .await;
    until("no note", async || {
        let found = "return document.querySelector('[data-testid=notifications-denied]') === null";
        (app.run(found, vec![]).await == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_window_may_call_only_the_commands_of_its_capability() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.element("composer").await;
    let call = |command: &str| {
        format!(
            "const done = arguments[arguments.length - 1];\
             window.__TAURI_INTERNALS__.invoke({command}).then(() => done('allowed'), error => done(String(error)))"
        )
    };
    assert_eq!(app.run_async(&call("'connection'")).await, "allowed");
    for refused in ["'set_login_item', {on: true}", "'plugin:window|close'"] {
        let answer = app.run_async(&call(refused)).await;
        assert!(
            answer
                .as_str()
                .is_some_and(|answer| answer.contains("not allowed")),
            "{refused}: {answer}"
        );
    }
    // Of files, only what was dropped onto the window.
    let unread = app
        .run_async(&call("'read_dropped', {path: '/etc/passwd'}"))
        .await;
    assert!(
        unread
            .as_str()
            .is_some_and(|answer| answer.contains("was not dropped here")),
        "{unread}"
    );
    assert!(
        !desk
            .home()
            .join(".config/autostart/Tierbar.desktop")
            .exists()
    );
    let mode = std::fs::metadata(desk.data().join("token"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
