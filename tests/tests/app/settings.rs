//! The settings window of the real app, where it differs from the page in a browser: the shell opens it, and the API has
//! another origin.

use tierbar_tests::{
    desk::Desk,
    wait::until,
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
