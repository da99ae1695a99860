//! The APIs that clients speak. Each turns its requests into OpenAI's form, and renders the answer's events in its own.

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

pub mod anthropic;
pub mod contexts;
pub mod models;
pub mod ollama;
pub mod openai;
pub mod respond;
#[cfg(test)]
mod testing;

use tierbar_http::error::ErrorForm;

/// Each dialect's form of errors, but for OpenAI's, which is every other path's.
pub const ERROR_FORMS: &[ErrorForm] = &[anthropic::ERRORS, ollama::ERRORS];

/// Returns a later system message as text for the user's turn. Many templates accept a system message only at the beginning, and that
/// one stays stable for prefix caching. The tag is the one with which Claude Code marks text that the user did not write.
fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}
