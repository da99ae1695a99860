//! The APIs that clients speak. Each turns its requests into OpenAI's form, and renders the answer's events in its own.

pub(crate) mod anthropic;
pub(crate) mod contexts;
pub(crate) mod models;
pub(crate) mod ollama;
pub(crate) mod openai;
mod respond;

use crate::http::error::ErrorForm;

/// Each dialect's form of errors, but for OpenAI's, which is every other path's.
pub(crate) const ERROR_FORMS: &[ErrorForm] = &[anthropic::ERRORS, ollama::ERRORS];

/// Returns a later system message as text for the user's turn. Many templates accept a system message only at the beginning, and that
/// one stays stable for prefix caching. The tag is the one with which Claude Code marks text that the user did not write.
fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

#[cfg(test)]
mod tests;
