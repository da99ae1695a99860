//! The windows on screen, as the window server lists them.

use crate::platform::screen::{Rect, Window, is_full_screen};
use objc2_core_foundation::{CFArray, CFDictionary, CFNumber, CFRetained, CFString, CFType};
use objc2_core_graphics::{
    CGDisplayBounds, CGMainDisplayID, CGWindowListCopyWindowInfo, CGWindowListOption,
};

type Fields = CFDictionary<CFString, CFType>;

/// Returns `None` without a window server, as in a remote session.
pub(crate) fn full_screen() -> Option<bool> {
    let shown = CGWindowListOption::OptionOnScreenOnly | CGWindowListOption::ExcludeDesktopElements;
    let windows = CGWindowListCopyWindowInfo(shown, 0)?;
    // SAFETY: the list is documented to hold dictionaries with strings as keys.
    let windows: CFRetained<CFArray<Fields>> = unsafe { CFRetained::cast_unchecked(windows) };
    let windows: Vec<_> = windows
        .iter()
        .filter_map(|fields| window(&fields))
        .collect();
    let display = CGDisplayBounds(CGMainDisplayID());
    let display = Rect {
        x: display.origin.x,
        y: display.origin.y,
        width: display.size.width,
        height: display.size.height,
    };
    Some(is_full_screen(
        &windows,
        display,
        f64::from(std::process::id()),
    ))
}

fn window(fields: &Fields) -> Option<Window> {
    let bounds = value(fields, "kCGWindowBounds")?;
    let bounds = bounds.downcast_ref::<CFDictionary>()?;
    // SAFETY: a rectangle as a dictionary has strings as keys and numbers as values.
    let bounds: &Fields = unsafe { bounds.cast_unchecked() };
    Some(Window {
        layer: number(fields, "kCGWindowLayer")?,
        owner: number(fields, "kCGWindowOwnerPID")?,
        bounds: Rect {
            x: number(bounds, "X")?,
            y: number(bounds, "Y")?,
            width: number(bounds, "Width")?,
            height: number(bounds, "Height")?,
        },
    })
}

fn value(of: &Fields, name: &'static str) -> Option<CFRetained<CFType>> {
    of.get(&CFString::from_static_str(name))
}

fn number(of: &Fields, name: &'static str) -> Option<f64> {
    value(of, name)?.downcast_ref::<CFNumber>()?.as_f64()
}
