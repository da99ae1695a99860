//! The popover: a small window at the icon with memory, speed and tiers. It is destroyed as soon as it loses the focus: a
//! hidden web view would keep its memory.

use crate::{lock, windows, words::Word};
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};
use tauri::{
    AppHandle, LogicalPosition, LogicalSize, Manager, Position, Rect, Size, WebviewUrl,
    WebviewWindowBuilder,
};

pub(crate) const LABEL: &str = "popover";
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 480.0;
/// A click on the icon, or the shortcut, may take the focus away first, which closes the popover: it is not to open again by the
/// same click.
const SAME_CLICK: Duration = Duration::from_millis(300);

/// When the popover was last opened and closed.
#[derive(Default)]
pub(crate) struct Times {
    opened: Mutex<Option<Instant>>,
    closed: Mutex<Option<Instant>>,
}

/// Whether a time is that of the click that is being handled.
fn is_same_click(time: &Mutex<Option<Instant>>) -> bool {
    lock(time).is_some_and(|time| time.elapsed() < SAME_CLICK)
}

/// A rectangle in logical pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn new(position: Position, size: Size, scale: f64) -> Self {
        let LogicalPosition { x, y } = position.to_logical(scale);
        let LogicalSize { width, height } = size.to_logical(scale);
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// Whether the middle of another one is in it.
    fn has(self, other: Self) -> bool {
        let (x, y) = (other.x + other.width / 2.0, other.y + other.height / 2.0);
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
    }
}

/// Opens the popover at the icon, or in the middle of the screen if its place is unknown; or closes it. Call it on the main thread.
pub(crate) fn toggle(app: &AppHandle, icon: Option<Rect>) {
    if app.get_webview_window(LABEL).is_some() {
        return close(app);
    }
    if is_same_click(&app.state::<Times>().closed) {
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
    *lock(&app.state::<Times>().closed) = Some(Instant::now());
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
    *lock(&app.state::<Times>().opened) = Some(Instant::now());
    window.set_focus()
}

/// Closes the popover that has lost the focus. One that has just opened takes it back: X11 moves the focus once more when the
/// keys of the shortcut are released.
pub(crate) fn lost_focus(app: &AppHandle) {
    let window = app.get_webview_window(LABEL);
    match window.filter(|_| is_same_click(&app.state::<Times>().opened)) {
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
    let monitors = app.available_monitors().ok()?;
    let screens = monitors.iter().map(|monitor| {
        let scale = monitor.scale_factor();
        let screen = Area::new(
            (*monitor.position()).into(),
            (*monitor.size()).into(),
            scale,
        );
        (screen, Area::new(icon.position, icon.size, scale))
    });
    let (screen, icon) = screen_of(screens)?;
    Some(popover_area(icon, screen))
}

/// Finds the screen that an icon is on, among all of them with the icon by the scale of each: macOS counts the pixels of a place by the
/// scale of its own screen, so that screens of two scales overlap. What lies on two of them is where it is as high as a menu bar.
fn screen_of(screens: impl Iterator<Item = (Area, Area)>) -> Option<(Area, Area)> {
    const MENU_BAR: f64 = 24.0;
    let is_off = |(_, icon): &(Area, Area)| (icon.height - MENU_BAR).abs();
    screens
        .filter(|(screen, icon)| screen.has(*icon))
        .min_by(|one, other| is_off(one).total_cmp(&is_off(other)))
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
    use tauri::{PhysicalPosition, PhysicalSize};

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

    /// An icon at a place of a screen, as macOS gives both: in pixels by the scale of that screen.
    fn found(screens: [(Area, f64); 2], on: usize, x: f64, height: f64) -> Option<(Area, Area)> {
        let (screen, scale) = screens[on];
        let pixels = |at: f64| at * scale;
        let position = PhysicalPosition::new(pixels(screen.x + x), pixels(screen.y));
        let size = PhysicalSize::new(pixels(30.0), pixels(height));
        screen_of(
            screens
                .into_iter()
                .map(|(screen, scale)| (screen, Area::new(position.into(), size.into(), scale))),
        )
    }

    #[test]
    fn the_popover_opens_on_the_screen_of_its_icon() {
        let built_in = (SCREEN, 2.0);
        let beside = |x: f64, y: f64| Area {
            x,
            y,
            width: 1920.0,
            height: 1080.0,
        };
        // On the right, on the left, above, below and to the right.
        for external in [
            beside(1440.0, 0.0),
            beside(-1920.0, -90.0),
            beside(-200.0, -1080.0),
            beside(1440.0, 400.0),
        ] {
            let screens = [built_in, (external, 1.0)];
            for x in (0..1400).step_by(100).map(f64::from) {
                // The built-in one has a camera, and so a higher menu bar.
                for (on, height) in [(0, 24.0), (0, 37.0), (1, 24.0)] {
                    let (screen, icon) = found(screens, on, x, height).unwrap();
                    assert_eq!(screen, screens[on].0, "{x}, {external:?}");
                    assert!((icon.x - screen.x - x).abs() < 0.6, "{icon:?}");
                    let place = popover_area(icon, screen);
                    assert!(screen.has(place), "{place:?} is not on {screen:?}");
                }
            }
        }
        let nowhere = Area {
            x: 9000.0,
            ..SCREEN
        };
        assert_eq!(screen_of([(SCREEN, nowhere)].into_iter()), None);
    }
}
