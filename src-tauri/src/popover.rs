//! The popover: a small window at the icon with memory, speed and tiers. It is destroyed as soon as it loses the focus: a
//! hidden web view would keep its memory.

use crate::{windows, words::Word};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tauri::{AppHandle, Manager, Rect, WebviewUrl, WebviewWindowBuilder};

pub(crate) const LABEL: &str = "popover";
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 480.0;
/// A click on the icon, or the shortcut, may take the focus away first, which closes the popover: it is not to open again by the
/// same click.
const SAME_CLICK: Duration = Duration::from_millis(300);

/// When the popover was last opened and closed.
#[derive(Default)]
pub(crate) struct Times(Mutex<LastTimes>);

#[derive(Default, Clone, Copy)]
struct LastTimes {
    opened: Option<Instant>,
    closed: Option<Instant>,
}

impl Times {
    fn read(&self) -> LastTimes {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut LastTimes)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A rectangle in logical pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Opens the popover at the icon, or in the middle of the screen if its place is unknown; or closes it. Call it on the main thread.
pub(crate) fn toggle(app: &AppHandle, icon: Option<Rect>) {
    if app.get_webview_window(LABEL).is_some() {
        return close(app);
    }
    let closed = app.state::<Times>().read().closed;
    if closed.is_some_and(|closed| closed.elapsed() < SAME_CLICK) {
        return;
    }
    if let Err(error) = open(app, icon) {
        tracing::error!(%error, "the popover could not be opened");
    }
}

pub(crate) fn close(app: &AppHandle) {
    let Some(window) = app.get_webview_window(LABEL) else {
        return;
    };
    app.state::<Times>()
        .change(|last| last.closed = Some(Instant::now()));
    if let Err(error) = window.destroy() {
        tracing::warn!(%error, "the popover could not be closed");
    }
}

/// Opens the popover: at the icon, or in the middle of the screen. Call it on the main thread.
pub(crate) fn open(app: &AppHandle, icon: Option<Rect>) -> tauri::Result<()> {
    if let Some(window) = app.get_webview_window(LABEL) {
        return window.set_focus();
    }
    let url = WebviewUrl::App("popover.html".into());
    let window = WebviewWindowBuilder::new(app, LABEL, url)
        .title(Word::OverviewWindow.text())
        .resizable(false)
        .decorations(false)
        .always_on_top(true)
        .skip_taskbar(true);
    let window = match icon.and_then(|icon| place_at(app, icon)) {
        Some(place) => window
            .position(place.x, place.y)
            .inner_size(place.width, place.height),
        None => window.inner_size(WIDTH, HEIGHT).prevent_overflow().center(),
    };
    let window = windows::with_own_pages(window).build()?;
    app.state::<Times>()
        .change(|last| last.opened = Some(Instant::now()));
    window.set_focus()
}

/// Closes the popover that has lost the focus. One that has just opened takes it back: X11 moves the focus once more when the
/// keys of the shortcut are released.
pub(crate) fn lost_focus(app: &AppHandle) {
    let opened = app.state::<Times>().read().opened;
    let window = app.get_webview_window(LABEL);
    match window.filter(|_| opened.is_some_and(|opened| opened.elapsed() < SAME_CLICK)) {
        Some(window) => {
            if let Err(error) = window.set_focus() {
                tracing::warn!(%error, "the popover could not take the focus");
            }
        }
        None => close(app),
    }
}

/// Returns where the popover goes, in logical pixels; `None` if the screen is unknown.
fn place_at(app: &AppHandle, icon: Rect) -> Option<Area> {
    let corner = icon.position.to_physical::<f64>(1.0);
    let there = app.monitor_from_point(corner.x, corner.y).ok().flatten();
    let monitor = there.or_else(|| app.primary_monitor().ok().flatten())?;
    let scale = monitor.scale_factor();
    let position = icon.position.to_logical::<f64>(scale);
    let size = icon.size.to_logical::<f64>(scale);
    let icon = Area {
        x: position.x,
        y: position.y,
        width: size.width,
        height: size.height,
    };
    let position = monitor.position().to_logical::<f64>(scale);
    let size = monitor.size().to_logical::<f64>(scale);
    let screen = Area {
        x: position.x,
        y: position.y,
        width: size.width,
        height: size.height,
    };
    Some(popover_area(icon, screen))
}

/// Below the icon and centered on it; above it where the icon is at the bottom. Never beyond the screen's edges: on a low screen it
/// is lower.
fn popover_area(icon: Area, screen: Area) -> Area {
    let centered = icon.x + (icon.width - WIDTH) / 2.0;
    let rightmost = screen.x + screen.width - WIDTH;
    let below = icon.y + icon.height;
    let room_below = screen.y + screen.height - below;
    let room_above = icon.y - screen.y;
    let is_below = room_below >= room_above;
    let height = HEIGHT.min(room_below.max(room_above));
    Area {
        x: centered.min(rightmost).max(screen.x),
        y: if is_below { below } else { icon.y - height },
        width: WIDTH,
        height,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Area = Area {
        x: 0.0,
        y: 0.0,
        width: 1440.0,
        height: 900.0,
    };

    fn icon(x: f64, y: f64) -> Area {
        Area {
            x,
            y,
            width: 30.0,
            height: 24.0,
        }
    }

    fn at(x: f64, y: f64) -> Area {
        popover_area(icon(x, y), SCREEN)
    }

    fn is_at(placed: Area, x: f64, y: f64) -> bool {
        (placed.x - x).abs() < 0.1 && (placed.y - y).abs() < 0.1
    }

    #[test]
    fn the_popover_is_at_the_icon_and_on_the_screen() {
        assert!(is_at(at(700.0, 0.0), 545.0, 24.0), "below the menu bar");
        assert!(is_at(at(1400.0, 0.0), 1100.0, 24.0), "at the right edge");
        assert!(is_at(at(5.0, 0.0), 0.0, 24.0), "at the left edge");
        assert!(is_at(at(700.0, 876.0), 545.0, 396.0), "above a bar below");
        // 1280×720 at 200 %.
        let small = Area {
            width: 640.0,
            height: 360.0,
            ..SCREEN
        };
        let low = popover_area(icon(600.0, 0.0), small);
        assert!(is_at(low, 300.0, 24.0), "{low:?}");
        assert!((low.height - 336.0).abs() < 0.1, "{low:?}");
    }
}
