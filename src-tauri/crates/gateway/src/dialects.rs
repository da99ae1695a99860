//! The APIs that clients speak. Each turns its request into one of OpenAI's and the answer back into its own words.

pub(crate) mod anthropic;
pub(crate) mod contexts;
pub(crate) mod ollama;
pub(crate) mod openai;
mod translate;

use crate::http::error::ErrorForm;

/// Each dialect's form of errors, but for OpenAI's, which is every other path's.
pub(crate) const ERROR_FORMS: &[ErrorForm] = &[anthropic::ERRORS, ollama::ERRORS];
