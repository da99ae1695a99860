//! Whether an app fills the main display, from what the window server lists.

/// A rectangle in points; `y` grows downwards from the top of the main display.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    /// 0 for ordinary windows, [`MENU_BAR`] for a menu bar.
    pub(crate) layer: f64,
    pub(crate) owner: f64,
    pub(crate) bounds: Rect,
}

/// `kCGMainMenuWindowLevel`.
pub(crate) const MENU_BAR: f64 = 24.0;

/// The height of a display's notch in points, which a full-screen window leaves free.
const NOTCH: f64 = 48.0;

/// Returns whether a program other than `ours` fills the main display. A menu bar that it shows distinguishes a maximized
/// window from a full-screen one; other displays have menu bars of their own.
pub(crate) fn is_full_screen(windows: &[Window], display: Rect, ours: f64) -> bool {
    let on_display = |bounds: &Rect| {
        (display.x..display.x + display.width).contains(&bounds.x)
            && (display.y..display.y + display.height).contains(&bounds.y)
    };
    let has_menu_bar = windows
        .iter()
        .any(|window| window.layer == MENU_BAR && on_display(&window.bounds));
    let fills = |window: &Window| {
        let missing = window.bounds.y - display.y;
        window.layer == 0.0
            && window.owner != ours
            && on_display(&window.bounds)
            && window.bounds.width >= display.width
            && (0.0..=NOTCH).contains(&missing)
            && missing + window.bounds.height >= display.height
    };
    !has_menu_bar && windows.iter().any(fills)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: f64 = 1.0;
    const MAIN: Rect = rect(0.0, 0.0, 1512.0, 982.0);
    const SECOND: Rect = rect(1512.0, 0.0, 1920.0, 1080.0);

    const fn rect(x: f64, y: f64, width: f64, height: f64) -> Rect {
        Rect {
            x,
            y,
            width,
            height,
        }
    }

    fn window(layer: f64, owner: f64, bounds: Rect) -> Window {
        Window {
            layer,
            owner,
            bounds,
        }
    }

    fn menu_bar(display: Rect) -> Window {
        window(
            MENU_BAR,
            0.0,
            Rect {
                height: 37.0,
                ..display
            },
        )
    }

    #[test]
    fn a_window_over_the_whole_display_is_full_screen() {
        assert!(is_full_screen(&[window(0.0, 2.0, MAIN)], MAIN, OURS));
        let ours = window(0.0, OURS, MAIN);
        assert!(!is_full_screen(&[ours], MAIN, OURS));
    }

    #[test]
    fn a_full_screen_window_may_leave_the_notch_free() {
        let below = rect(0.0, 37.0, 1512.0, 945.0);
        assert!(is_full_screen(&[window(0.0, 2.0, below)], MAIN, OURS));
    }

    #[test]
    fn a_maximized_window_is_not_full_screen() {
        let below = rect(0.0, 37.0, 1512.0, 945.0);
        let windows = [menu_bar(MAIN), window(0.0, 2.0, below)];
        assert!(!is_full_screen(&windows, MAIN, OURS));
    }

    #[test]
    fn another_displays_menu_bar_does_not_count() {
        let windows = [menu_bar(SECOND), window(0.0, 2.0, MAIN)];
        assert!(is_full_screen(&windows, MAIN, OURS));
    }

    #[test]
    fn a_window_that_fills_another_display_does_not_count() {
        let windows = [window(0.0, 2.0, SECOND)];
        assert!(!is_full_screen(&windows, MAIN, OURS));
    }
}
