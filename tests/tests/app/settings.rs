//! The settings window of the real app, where it differs from the page in a browser: the shell opens it, and the API has
//! another origin.

use tierbar_tests::{
    desk::Desk,
    wait::{until, within},
    web_driver::{CHAT, DrivenApp, SETTINGS},
};

#[tokio::test]
async fn the_chats_models_link_opens_the_models_settings() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    let shows_models = "[data-testid=\"settings-nav-models\"][aria-current=\"page\"]";
    for _ in 0..2 {
        app.switch_to(CHAT).await;
        app.click("open-models").await;
        app.switch_to(SETTINGS).await;
        app.find(shows_models).await;
        app.click("settings-nav-general").await;
        app.element("settings-hf-token").await;
    }
}

#[tokio::test]
async fn a_token_entered_in_the_window_is_saved() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.icon.click("Settings").await;
    app.switch_to(SETTINGS).await;
    app.click("settings-nav-general").await;
    app.type_into("settings-hf-token", "hf_typed_in_the_window")
        .await;
    app.click("settings-hf-token-save").await;
    app.element("settings-hf-token-remove").await;
    let file = desk.data().join("secrets.json");
    until("the token on the disk", async || {
        let kept = std::fs::read_to_string(&file).ok()?;
        kept.contains("hf_typed_in_the_window").then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_window_installs_the_command_line_tool() {
    let desk = Desk::new().await;
    let app = DrivenApp::start(&desk).await;
    app.icon.click("Settings").await;
    app.switch_to(SETTINGS).await;
    app.click("settings-nav-general").await;
    let link = desk.home().join(".local/bin/tierbar");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::fs::write(&link, "the user's own").unwrap();
    app.click("command-line").await;
    let refused = "return document.body.innerText.includes('is something else')";
    until("the refusal", async || {
        app.run(refused, Vec::new()).await.as_bool()?.then_some(())
    })
    .await;
    assert_eq!(std::fs::read_to_string(&link).unwrap(), "the user's own");

    std::fs::remove_file(&link).unwrap();
    app.click("command-line").await;
    until("the link", async || link.is_symlink().then_some(())).await;
    let version = desk.command(&link).arg("--version").output();
    let version = within("the command", version).await.unwrap();
    assert!(version.status.success(), "{version:?}");
    until("the offer to remove it", async || {
        (app.texts("command-line").await == ["Remove…"]).then_some(())
    })
    .await;
    app.click("command-line").await;
    until("no link", async || (!link.is_symlink()).then_some(())).await;
}
