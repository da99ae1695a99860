//! The app under WebKit's own driver, which starts it and sees its windows as a browser's.

mod session;

pub use session::{Element, Session};

use crate::{
    binaries::program,
    desk::Desk,
    tray_host::TrayIcon,
    wait::{until, within},
};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::{
    net::{TcpListener, TcpStream},
    process::Child,
};
use url::Url;

/// The chat window's page: the one that a bare address means.
pub const CHAT: &str = "";
pub const SETTINGS: &str = "settings.html";
pub const POPOVER: &str = "popover.html";

#[derive(Debug)]
pub struct DrivenApp {
    /// The session of the driver.
    pub session: Session,
    pub icon: TrayIcon,
    _driver: Child,
}

impl DrivenApp {
    /// Starts the app under the driver and opens its chat window: a session begins with one.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start(desk: &Desk) -> Self {
        let port = free_port().await;
        let driver = desk
            .command("WebKitWebDriver")
            .arg(format!("--port={port}"))
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .stdout(Stdio::null())
            .spawn()
            .expect("WebKitWebDriver: `make setup` installs it");
        until("WebKitWebDriver", async || {
            TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;

        let app = json!({ "binary": program("tierbar-app"), "args": [] });
        let capabilities = json!({ "webkitgtk:browserOptions": app });
        let address = format!("http://127.0.0.1:{port}");
        let session = Session::start(&address, &capabilities);
        let session = within("a session of WebKitWebDriver", session);
        let opened = async {
            let icon = desk.tray.icon().await;
            // A click on a menu that is just being replaced would be lost.
            let launch = desk.launch_app(&[]).await;
            assert!(launch.status.success(), "{launch:?}");
            icon
        };
        let (session, icon) = tokio::join!(session, opened);
        let app = Self {
            session: session.expect("a session of WebKitWebDriver"),
            icon,
            _driver: driver,
        };
        app.switch_to(CHAT).await;
        app
    }

    /// Makes the window that shows the page the one that is driven, once there is one.
    ///
    /// # Panics
    /// If there never is.
    pub async fn switch_to(&self, page: &str) {
        until(&format!("a window at /{page}"), async || {
            for window in self.session.windows().await.ok()? {
                // A window may close while it is looked at.
                let Ok(()) = self.session.switch_to(&window).await else {
                    continue;
                };
                let url = self.session.url().await.ok();
                let url = url.and_then(|url| Url::parse(&url).ok());
                if url.is_some_and(|url| url.path().trim_start_matches('/') == page) {
                    return Some(());
                }
            }
            None
        })
        .await;
    }

    /// The element with this `data-testid`, once it is there.
    ///
    /// # Panics
    /// If it never is.
    pub async fn element(&self, id: &str) -> Element {
        self.find(&format!("[data-testid=\"{id}\"]")).await
    }

    /// The first element that the CSS selector names, once there is one.
    ///
    /// # Panics
    /// If there never is.
    pub async fn find(&self, css: &str) -> Element {
        until(css, async || self.session.find(css).await.ok()).await
    }

    /// Clicks the element with this `data-testid`, once it can be clicked.
    ///
    /// # Panics
    /// If it never can.
    pub async fn click(&self, id: &str) {
        until(&format!("a click on {id}"), async || {
            let element = self.element(id).await;
            let enabled = self.session.is_enabled(&element).await.ok();
            enabled.filter(|enabled| *enabled)?;
            self.session.click(&element).await.ok()
        })
        .await;
    }

    /// Types into the element with this `data-testid`.
    ///
    /// # Panics
    /// If that fails.
    pub async fn type_into(&self, id: &str, text: &str) {
        let element = self.element(id).await;
        within("typing", self.session.send_keys(&element, text))
            .await
            .unwrap_or_else(|error| panic!("typing into {id}: {error}"));
    }

    /// Texts of all elements with this `data-testid`, as the page shows them.
    ///
    /// # Panics
    /// If the page is gone.
    pub async fn texts(&self, id: &str) -> Vec<String> {
        let script = "return [...document.querySelectorAll(`[data-testid=\"${arguments[0]}\"]`)].map(e => e.innerText)";
        let texts = self.run(script, vec![id.into()]).await;
        serde_json::from_value(texts).expect("texts")
    }

    /// Waits until the page shows this many whole answers: each then has its figures and can be copied.
    ///
    /// # Panics
    /// If they never are.
    pub async fn answered(&self, count: usize) {
        until("the end of the answer", async || {
            let whole = self.texts("copy-answer").await.len() >= count;
            (whole && self.texts("stop").await.is_empty()).then_some(())
        })
        .await;
    }

    /// Runs a script in the page and returns what it returns.
    ///
    /// # Panics
    /// If it throws.
    pub async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        within("a script", self.session.execute(script, arguments))
            .await
            .expect("a script's result")
    }

    /// Runs a script that ends by calling its last argument with the result.
    ///
    /// # Panics
    /// If it throws.
    pub async fn run_async(&self, script: &str) -> Value {
        within("a script", self.session.execute_async(script))
            .await
            .expect("a script's result")
    }

    /// The window as PNG, once it has stopped changing and nothing in it has the focus.
    ///
    /// # Panics
    /// If it never stops.
    pub async fn picture(&self) -> Vec<u8> {
        self.run("document.activeElement?.blur()", Vec::new()).await;
        let mut before = Vec::new();
        until("a window at rest", async || {
            // What the page is now is on the screen two frames later.
            let frames = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))";
            self.run_async(frames).await;
            let now = self.session.screenshot().await.ok()?;
            let still = now == before;
            before = now;
            still.then(|| before.clone())
        })
        .await
    }
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("its number").port()
}
