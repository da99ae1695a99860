//! Text that a model or a server wrote, in the real window: it shows, and runs nothing.

use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use tierbar_tests::{
    binaries,
    desk::Desk,
    wait::until,
    web_driver::{CHAT, DrivenApp, SETTINGS},
};

/// Each tries to set `window.hit`, or to load something.
const ATTACKS: [&str; 12] = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror=\"window.hit = 1\">",
    "<svg onload=\"window.hit = 1\"><animate onbegin=\"window.hit = 1\" attributeName=x dur=1s></svg>",
    "<iframe srcdoc=\"<script>parent.hit = 1</script>\"></iframe>",
    "<style>@import 'http://127.0.0.1:9/a.css';</style><link rel=stylesheet href=http://127.0.0.1:9/b.css>",
    "<base href=\"http://127.0.0.1:9/\"><form action=\"http://127.0.0.1:9/\"><button autofocus onfocus=\"window.hit=1\">x</button></form>",
    "[a](javascript:window.hit=1) [b](JaVaScRiPt:window.hit=1) [c](data:text/html,<script>parent.hit=1</script>) [d](\u{1}javascript:window.hit=1)",
    "![x](http://127.0.0.1:9/pixel.png) ![y](x\" onerror=\"window.hit=1)",
    "<javascript:window.hit=1> <a href=\"vbscript:x\" onmouseover=\"window.hit=1\">e</a>",
    "```html\" onmouseover=\"window.hit=1\n<script>window.hit = 1</script>\n```",
    "| <img src=x onerror=window.hit=1> | b |\n|---|---|\n| <b onclick=window.hit=1>c</b> | d |",
    "</p></div></main></body></html><body onload=\"window.hit=1\"><math><mtext><img src=x onerror=window.hit=1>",
];

/// What is wrong with a page: what has run, what was loaded, and where links lead.
const LOOK: &str = "
    const bad = [];
    if (window.hit) bad.push('a script ran');
    for (const made of document.querySelectorAll('script:not([src]), iframe, object, embed, base, form[action], meta[http-equiv]'))
        bad.push(made.outerHTML.slice(0, 200));
    for (const image of document.images) if (!/^(data:|tauri:)/.test(image.src)) bad.push(image.outerHTML);
    for (const link of document.querySelectorAll('a[href]'))
        if (!/^(https?:|mailto:|tauri:)/.test(link.href)) bad.push(link.outerHTML);
    for (const element of document.querySelectorAll('*'))
        for (const { name } of element.attributes) if (name.startsWith('on')) bad.push(element.outerHTML.slice(0, 200));
    for (const { name } of performance.getEntriesByType('resource'))
        if (name.includes('127.0.0.1:9/')) bad.push(name);
    return bad;";

async fn is_clean(app: &DrivenApp, where_: &str) {
    let bad = app.run(LOOK, Vec::new()).await;
    assert_eq!(bad, json!([]), "{where_}");
}

#[tokio::test]
async fn hostile_text_runs_nothing_in_the_window() {
    let desk = Desk::new().await;
    // A file's name becomes a model's.
    let name = "<img src=x onerror=window.hit=1>";
    symlink(
        binaries::model(binaries::STARTER),
        desk.data().join("models").join(format!("{name}.gguf")),
    )
    .unwrap();
    let app = DrivenApp::start(&desk).await;
    let chat = desk
        .ask("/tierbar/v1/chats", &json!({"title": ATTACKS[1]}))
        .await;
    let id = chat["id"].as_str().unwrap();
    let messages = format!("/tierbar/v1/chats/{id}/messages");
    for attack in ATTACKS {
        for message in [
            json!({"role": "user", "content": attack}),
            json!({"role": "assistant", "content": attack, "model": name, "tier": "fast"}),
        ] {
            desk.ask(&messages, &message).await;
        }
    }
    app.switch_to(CHAT).await;
    app.find(&format!("[data-chat-id=\"{id}\"] button")).await;
    let open = "document.querySelector(arguments[0]).click()";
    let item = format!("[data-chat-id=\"{id}\"] button");
    app.run(open, vec![Value::from(item)]).await;
    let shown = "return document.querySelectorAll('[data-testid=\"message-assistant\"]').length";
    until("all answers", async || {
        (app.run(shown, Vec::new()).await == ATTACKS.len()).then_some(())
    })
    .await;
    // A user who moves over it and clicks on it.
    let touch = "for (const element of document.querySelectorAll('.markdown *, [data-chat-id] *'))
        for (const kind of ['mouseover', 'focus', 'animationstart'])
            element.dispatchEvent(new Event(kind, {bubbles: true}))";
    app.run(touch, Vec::new()).await;
    is_clean(&app, "the chat").await;
    let text = app.run("return document.body.innerText", Vec::new()).await;
    assert!(
        text.as_str().unwrap().contains("window.hit = 1"),
        "the attacks are shown as text: {text}"
    );

    app.icon.click("Models…").await;
    app.switch_to(SETTINGS).await;
    app.find("[data-testid=\"local-model\"]").await;
    until("the model's name", async || {
        let names = app.texts("local-model").await;
        names.iter().any(|text| text.contains(name)).then_some(())
    })
    .await;
    is_clean(&app, "the models").await;
    assert!(
        desk.opened().is_empty(),
        "something was opened: {:?}",
        desk.opened()
    );
}
