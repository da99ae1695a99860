//! How a test says that it cannot run on this machine, so that it does not count as passed; whether a model can still be had; how a test is
//! denied files, also as root; and how names that it uses lead elsewhere at times.

mod denied;
#[allow(clippy::unwrap_used, reason = "a test fails by its panic")]
pub mod race;

pub use denied::{Call, as_ordinary_user, denying};

use std::{
    fs,
    io::{Write, stderr},
    path::Path,
    thread,
};

/// Prints `SKIPPED name: reason` past the capture of the test's output, for `tests/run` to count and repeat. A test that leaves
/// early does so by `return skip("…")`; `tests/tests/house.rs` finds those that don't.
pub fn skip(reason: &str) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("?");
    let reason = reason.replace('\n', " ");
    // In one piece: other tests write at the same time.
    let line = format!("SKIPPED {name}: {reason}\n");
    // The handle itself is written to, since the harness captures what the macros print.
    let _lost = stderr().write_all(line.as_bytes());
}

/// The value of a `Result`; without one, the test is skipped for the error, a text.
#[macro_export]
macro_rules! or_skip {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(reason) => return $crate::skip(&reason),
        }
    };
}

/// Returns why a model is not here, if `bundle/models` found that a package of it is gone.
#[must_use]
pub fn gone(model: &Path) -> Option<String> {
    let reason = fs::read_to_string(model.with_added_extension("gone")).ok()?;
    (!model.exists()).then_some(reason)
}
