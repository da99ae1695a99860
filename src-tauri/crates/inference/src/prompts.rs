//! Prompts in the log, only with `[log] prompts`. Nothing else logs prompts.

use tierbar_core::config::LogConfig;

/// Of one request. Images come as text, and as megabytes of it.
const LONGEST: usize = 64 << 10;

pub fn log<'a>(config: LogConfig, path: &str, body: impl FnOnce() -> &'a [u8]) {
    if !config.prompts {
        return;
    }
    let body = body();
    let (shown, cut) = match body.split_at_checked(LONGEST) {
        Some((shown, rest)) => (shown, rest.len()),
        None => (body, 0),
    };
    // One line, so that a prompt cannot write lines of its own.
    let shown = String::from_utf8_lossy(shown).replace(char::is_control, " ");
    tracing::info!(target: "tierbar::prompts", path, cut_bytes = cut, "{shown}");
}
