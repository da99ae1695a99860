//! The app's two windows. A window is created when opened and destroyed when closed, so that a closed one uses no memory.

use crate::platform;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use tauri::{
    AppHandle, Manager, Url, WebviewUrl, WebviewWindowBuilder,
    webview::{DownloadEvent, NewWindowResponse},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    Chat,
    Settings,
    /// The Models section of the settings.
    Models,
    /// The Monitor section of the settings.
    Monitor,
}

impl Page {
    /// The window's label, which the capabilities name.
    fn label(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Settings | Self::Models | Self::Monitor => "settings",
        }
    }

    /// The section of the settings that it shows; `None` for the first one, or the one that is shown.
    fn section(self) -> Option<&'static str> {
        match self {
            Self::Chat | Self::Settings => None,
            Self::Models => Some("models"),
            Self::Monitor => Some("monitor"),
        }
    }
}

/// Opens the page's window, or brings it to the front. Callable from any thread.
pub(crate) fn open(app: &AppHandle, page: Page) {
    open_at(app, page, page.section());
}

/// As [`open`], at a section of the page.
pub(crate) fn open_at(app: &AppHandle, page: Page, section: Option<&'static str>) {
    let shell = app.clone();
    let opened = app.run_on_main_thread(move || {
        if let Err(error) = open_here(&shell, page, section) {
            tracing::error!(%error, window = page.label(), "the window could not be opened");
        }
    });
    if let Err(error) = opened {
        tracing::error!(%error, window = page.label(), "the app is ending");
    }
}

fn open_here(app: &AppHandle, page: Page, section: Option<&str>) -> tauri::Result<()> {
    platform::show_in_dock(app, true);
    if let Some(window) = app.get_webview_window(page.label()) {
        if let Some(section) = section {
            window.eval(format!("location.hash = '{section}'"))?;
        }
        window.unminimize()?;
        window.show()?;
        return window.set_focus();
    }
    let url = |file: &str| WebviewUrl::App(file.into());
    let window = match page {
        Page::Chat => WebviewWindowBuilder::new(app, page.label(), url("index.html"))
            .title("Tierbar")
            .inner_size(960.0, 680.0)
            .min_inner_size(640.0, 480.0),
        Page::Settings | Page::Models | Page::Monitor => {
            let file = section.map_or_else(
                || "settings.html".to_owned(),
                |section| format!("settings.html#{section}"),
            );
            WebviewWindowBuilder::new(app, page.label(), url(&file))
                .title("Tierbar Settings")
                .inner_size(720.0, 560.0)
                .min_inner_size(560.0, 420.0)
        }
    };
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
                *destination = unused(destination);
                is_own_file(&url)
            }
            _ => true,
        })
        .build()?
        .set_focus()
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
fn unused(path: &Path) -> PathBuf {
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
            assert_eq!(unused(&folder.join(wanted)), folder.join(free));
        }
    }
}
