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

/// A system message within the conversation. Many templates take one only at the beginning, and that one has to stay the same, so that
/// it is not read again. So this one stands beside the user's text, marked as Claude Code marks what the user did not write.
fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

#[cfg(test)]
mod tests;
