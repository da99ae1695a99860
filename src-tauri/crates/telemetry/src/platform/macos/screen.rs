//! Whether a program other than ours fills the main display.

use objc2_core_foundation::{CFArray, CFDictionary, CFNumber, CFRetained, CFString, CFType};
use objc2_core_graphics::{
    CGDisplayBounds, CGMainDisplayID, CGWindowListCopyWindowInfo, CGWindowListOption,
    kCGMainMenuWindowLevel,
};

/// The height of a display's notch in points, which a full-screen window leaves free.
const NOTCH: f64 = 48.0;

type Window = CFDictionary<CFString, CFType>;

/// Returns `None` without a window server, as in a remote session.
pub(crate) fn full_screen() -> Option<bool> {
    let shown = CGWindowListOption::OptionOnScreenOnly | CGWindowListOption::ExcludeDesktopElements;
    let windows = CGWindowListCopyWindowInfo(shown, 0)?;
    // SAFETY: the list is documented to hold dictionaries with strings as keys.
    let windows: CFRetained<CFArray<Window>> = unsafe { CFRetained::cast_unchecked(windows) };
    let level = |window: &Window| number(window, "kCGWindowLayer");
    // A visible menu bar distinguishes a maximized window from a full-screen one.
    let menu_bar = f64::from(kCGMainMenuWindowLevel);
    if windows
        .iter()
        .any(|window| level(&window) == Some(menu_bar))
    {
        return Some(false);
    }
    let display = CGDisplayBounds(CGMainDisplayID());
    let ours = f64::from(std::process::id());
    let fills = |window: &Window| {
        let foreign = number(window, "kCGWindowOwnerPID").is_some_and(|owner| owner != ours);
        let bounds = value(window, "kCGWindowBounds");
        let bounds = bounds
            .as_ref()
            .and_then(|bounds| bounds.downcast_ref::<CFDictionary>());
        let side = |name: &'static str| {
            // SAFETY: a rectangle as a dictionary has strings as keys and numbers as values.
            let bounds: &Window = unsafe { bounds?.cast_unchecked() };
            number(bounds, name)
        };
        let (Some(y), Some(width), Some(height)) = (side("Y"), side("Width"), side("Height"))
        else {
            return false;
        };
        let missing = y - display.origin.y;
        foreign
            && level(window) == Some(0.0)
            && width >= display.size.width
            && (0.0..=NOTCH).contains(&missing)
            && missing + height >= display.size.height
    };
    Some(windows.iter().any(|window| fills(&window)))
}

fn value(of: &Window, name: &'static str) -> Option<CFRetained<CFType>> {
    of.get(&CFString::from_static_str(name))
}

fn number(of: &Window, name: &'static str) -> Option<f64> {
    value(of, name)?.downcast_ref::<CFNumber>()?.as_f64()
}
