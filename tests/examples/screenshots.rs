//! Makes the pictures of `docs/images` from the real app with the starter model: `make screenshots`. The tray
//! menu is shown by a real panel (Debian: xfce4-panel), since the display has none of its own.

use serde_json::json;
use std::path::Path;
use tierbar_tests::{
    binaries::{program, source},
    desk::Desk,
    hub::{HubStandIn, Options},
    wait::until,
    web_driver::{DrivenApp, SETTINGS},
};

/// Such as the starter model, a small one, answers well.
const QUESTIONS: [&str; 2] = [
    "Explain in two sentences what a black hole is.",
    "Write a Python function that adds two numbers, in a code block.",
];

/// One panel along the top with the tray at its right end.
const PANEL: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array">
    <value type="int" value="1"/>
    <property name="dark-mode" type="bool" value="false"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="position-locked" type="bool" value="true"/>
      <property name="length" type="uint" value="100"/>
      <property name="size" type="uint" value="28"/>
      <property name="icon-size" type="uint" value="22"/>
      <property name="plugin-ids" type="array">
        <value type="int" value="1"/>
        <value type="int" value="2"/>
      </property>
    </property>
  </property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="separator">
      <property name="expand" type="bool" value="true"/>
      <property name="style" type="uint" value="0"/>
    </property>
    <property name="plugin-2" type="string" value="systray">
      <property name="square-icons" type="bool" value="true"/>
      <property name="icon-size" type="int" value="22"/>
      <property name="menu-is-primary" type="bool" value="true"/>
    </property>
  </property>
</channel>
"#;

#[tokio::main]
async fn main() {
    let folder = source("docs/images");
    std::fs::create_dir_all(&folder).expect("docs/images");
    settings(&folder).await;
    tray_menu(&folder).await;
}

/// The pages of the settings, after a model has answered.
async fn settings(folder: &Path) {
    let mut desk = Desk::new().await;
    desk.set("TIERBAR_SIMULATE_RAM", "16GiB");
    let app = DrivenApp::start(&desk).await;
    // So that this machine's speed is known: it is not measured beside a model that computes.
    let mut fit = desk.command(program("tierbar"));
    let fit = fit.args(["models", "fit", "SmolLM2-135M-Instruct.Q4_1"]);
    let fit = fit.stdout(std::process::Stdio::null()).status();
    assert!(fit.await.expect("tierbar").success(), "no verdict");
    for (number, question) in QUESTIONS.iter().enumerate() {
        app.type_into("composer", question).await;
        app.click("send").await;
        app.answered(number + 1).await;
    }
    app.icon.click("Settings").await;
    app.switch_to(SETTINGS).await;
    app.click("settings-nav-models").await;
    app.element("setup-start").await;
    save(&folder.join("setup-light.png"), &app.picture().await);
    app.click("fit-chip").await;
    app.element("fit-details").await;
    let details = "document.querySelector('[data-testid=fit-details]')";
    let show = format!("{details}.scrollIntoView({{block: 'center'}})");
    app.run(&show, Vec::new()).await;
    save(&folder.join("models-light.png"), &app.picture().await);
    app.click("settings-nav-monitor").await;
    app.element("memory-bar").await;
    save(&folder.join("monitor-light.png"), &app.picture().await);
}

async fn tray_menu(folder: &Path) {
    let hub = HubStandIn::start(Options {
        rate: 8_000_000,
        ..Options::default()
    })
    .await;
    let mut desk = Desk::new().await;
    desk.set("HF_ENDPOINT", hub.url());
    desk.tray.leave().await;
    desk.display.paint(0x5b_6b_8c);
    let settings = desk.home().join(".config/xfce4/xfconf/xfce-perchannel-xml");
    std::fs::create_dir_all(&settings).expect("the panel's settings");
    std::fs::write(settings.join("xfce4-panel.xml"), PANEL).expect("the panel's settings");
    let xfconf = format!(
        "/usr/lib/{}-linux-gnu/xfce4/xfconf/xfconfd",
        std::env::consts::ARCH
    );
    let _settings = desk
        .command(xfconf)
        .spawn()
        .expect("xfconfd, of Debian's xfce4-panel");
    let _panel = desk
        .command("xfce4-panel")
        .arg("--disable-wm-check")
        .spawn()
        .expect("xfce4-panel");
    // An app that starts before it shows a second icon there: libayatana's own, for desktops without a tray.
    desk.tray.taken_over().await;
    let _app = desk
        .command(program("tierbar-app"))
        .spawn()
        .expect("the app");
    // The tier that the menu is to show at work.
    until("the app's host", async || {
        tierbar_host::find_running_host(Some(&desk.data()))
    })
    .await;
    desk.complete(&json!({
        "model": "fast", "max_tokens": 64, "messages": [{"role": "user", "content": QUESTIONS[0]}],
    }))
    .await;
    // And a download.
    let request = json!({"reference": "tierbar-tests/tiny-GGUF:Q4_K_M"});
    desk.ask("/tierbar/v1/downloads", &request).await;
    until("a tenth of it", async || {
        let download = desk.status().await.downloads.into_iter().next()?;
        (download.received_bytes > download.total_bytes? / 10).then_some(())
    })
    .await;

    let (width, panel) = (1440_u16, 28_u16);
    until("the icon in the panel", async || {
        let end = desk
            .display
            .picture((width - panel).cast_signed(), 0, panel, panel);
        end.pixels().any(|pixel| pixel.0 == [0, 0, 0]).then_some(())
    })
    .await;
    desk.display.press(
        (width - panel / 2).cast_signed(),
        panel.cast_signed() / 2,
        1,
    );
    let (x, y, _, height) = until("the open menu", async || desk.display.menus().pop()).await;
    let mut before = None;
    let picture = until("the drawn menu", async || {
        let left = x - 60;
        let (shown, below) = (
            width - left.cast_unsigned(),
            y.cast_unsigned() + height + 40,
        );
        let now = desk.display.picture(left, 0, shown, below);
        let still = before.as_ref() == Some(&now);
        before = Some(now);
        before.clone().filter(|_| still)
    })
    .await;
    picture
        .save(folder.join("tray-menu.png"))
        .expect("docs/images/tray-menu.png");
}

fn save(path: &Path, png: &[u8]) {
    std::fs::write(path, png).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
