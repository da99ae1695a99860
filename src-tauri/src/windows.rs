//! The app's windows. A window is created when opened and destroyed when closed, so that a closed one uses no memory.

use crate::{dropped, platform, popover, words::Word};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use tauri::{
    AppHandle, LogicalSize, Manager, Url, WebviewUrl, WebviewWindowBuilder, Wry,
    webview::{DownloadEvent, NewWindowResponse},
};

/// The pages work from here on: a display of 1280×720 at 200 % has 640×360 points.
const LEAST: LogicalSize<f64> = LogicalSize::new(400.0, 300.0);
/// What a title bar takes of the display, which no window is to exceed at its start.
const TITLE_BAR: LogicalSize<f64> = LogicalSize::new(0.0, 40.0);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    Chat,
    Settings,
    /// The Models section of the settings.
    Models,
    /// The Monitor section of the settings.
    Monitor,
    /// The popover, without the icon that it belongs to.
    Popover,
}

impl Page {
    /// The window's label, which the capabilities name.
    fn label(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Settings | Self::Models | Self::Monitor => "settings",
            Self::Popover => popover::LABEL,
        }
    }

    /// The section of the settings that it shows; `None` for the first one, or the one that is shown.
    fn section(self) -> Option<&'static str> {
        match self {
            Self::Chat | Self::Settings | Self::Popover => None,
            Self::Models => Some("models"),
            Self::Monitor => Some("monitor"),
        }
    }
}

/// Opens the page's window, or brings it to the front. Callable from any thread.
pub(crate) fn open(app: &AppHandle, page: Page) {
    open_at(app, page, page.section().map(str::to_owned));
}

/// Opens the chat window with the chat of this id. Callable from any thread.
pub(crate) fn open_chat(app: &AppHandle, chat: &str) -> Result<(), String> {
    // It becomes part of a script.
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if chat.is_empty() || !chat.bytes().all(is_id) {
        return Err(format!("\"{chat}\" is not the id of a chat"));
    }
    open_at(app, Page::Chat, Some(format!("chat={chat}")));
    Ok(())
}

/// As [`open`], at a part of the page, such as a section of the settings.
pub(crate) fn open_at(app: &AppHandle, page: Page, fragment: Option<String>) {
    let shell = app.clone();
    let opened = app.run_on_main_thread(move || {
        if let Err(error) = open_here(&shell, page, fragment) {
            tracing::error!(%error, window = page.label(), "the window could not be opened");
        }
    });
    if let Err(error) = opened {
        tracing::error!(%error, window = page.label(), "the app is ending");
    }
}

fn open_here(app: &AppHandle, page: Page, fragment: Option<String>) -> tauri::Result<()> {
    if page == Page::Popover {
        return popover::open(app, None);
    }
    platform::show_in_dock(app, true);
    if let Some(window) = app.get_webview_window(page.label()) {
        if let Some(fragment) = fragment {
            window.eval(format!("location.hash = '{fragment}'"))?;
        }
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    let fragment = fragment.map(|fragment| format!("#{fragment}"));
    let url = |file: &str| {
        let fragment = fragment.as_deref().unwrap_or_default();
        WebviewUrl::App(format!("{file}{fragment}").into())
    };
    let window = match page {
        Page::Chat | Page::Popover => {
            WebviewWindowBuilder::new(app, page.label(), url("index.html"))
                .title("Tierbar")
                .inner_size(960.0, 680.0)
        }
        Page::Settings | Page::Models | Page::Monitor => {
            WebviewWindowBuilder::new(app, page.label(), url("settings.html"))
                .title(Word::SettingsWindow.text())
                .inner_size(720.0, 560.0)
        }
    };
    let window = window
        .min_inner_size(LEAST.width, LEAST.height)
        .prevent_overflow_with_margin(TITLE_BAR);
    let window = with_own_pages(platform::with_material(window)).build()?;
    if page == Page::Chat {
        dropped::follow(&window);
    }
    window.set_focus()
}

/// Lets a window show the app's own pages only.
pub(crate) fn with_own_pages(
    window: WebviewWindowBuilder<'_, Wry, AppHandle>,
) -> WebviewWindowBuilder<'_, Wry, AppHandle> {
    window
        .on_navigation(|url| {
            // WKWebView calls this for links that open a new window too, and then skips the handler below.
            let own = is_own(url);
            if !own {
                open_in_browser(url);
            }
            own
        })
        .on_new_window(|url, _| {
            open_in_browser(&url);
            NewWindowResponse::Deny
        })
        .on_download(|_, event| match event {
            DownloadEvent::Requested { url, destination } => {
                *destination = unused_path(destination);
                is_own_file(&url)
            }
            _ => true,
        })
}

/// Whether a window may show the URL: the app's own pages only.
fn is_own(url: &Url) -> bool {
    (url.scheme() == "tauri" && url.host_str() == Some("localhost")) || is_own_file(url)
}

/// Whether the URL is a file that a page of the app has made, such as an exported chat.
fn is_own_file(url: &Url) -> bool {
    url.scheme() == "blob" && url.path().starts_with("tauri://localhost/")
}

/// The path, with a number if a file has its name: a download replaces nothing.
fn unused_path(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let numbered =
        (2_u32..1000).map(|number| path.with_file_name(format!("{stem} {number}.{extension}")));
    let mut paths = std::iter::once(path.to_owned()).chain(numbered);
    let free = paths.find(|path| !path.exists());
    free.unwrap_or_else(|| path.to_owned())
}

/// Opens a link to the web in the browser. The pages run no foreign scripts, so only a click gets here.
fn open_in_browser(url: &Url) {
    if !matches!(url.scheme(), "http" | "https") {
        tracing::warn!(scheme = url.scheme(), "a link was not opened");
        return;
    }
    if let Err(error) = open::that_detached(url.as_str()) {
        tracing::warn!(%error, "the browser could not be opened");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shows_only_the_apps_pages() {
        for own in [
            "tauri://localhost/index.html",
            "tauri://localhost/settings.html#tiers",
            "blob:tauri://localhost/6f0c",
        ] {
            assert!(is_own(&own.parse().unwrap()), "{own}");
        }
        for foreign in [
            "https://example.com/",
            "http://localhost/index.html",
            "http://127.0.0.1:11435/",
            "tauri://example.com/index.html",
            "file:///etc/passwd",
            "data:text/html,x",
            "blob:https://example.com/6f0c",
            "about:blank",
        ] {
            assert!(!is_own(&foreign.parse().unwrap()), "{foreign}");
        }
    }

    #[test]
    fn a_download_replaces_no_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (wanted, free) in [("Cargo.toml", "Cargo 2.toml"), ("Rivers.md", "Rivers.md")] {
            assert_eq!(unused_path(&folder.join(wanted)), folder.join(free));
        }
    }
}
