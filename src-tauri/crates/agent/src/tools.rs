//! What the agent does once it may: each tool takes an act that is [`PermittedAct`](crate::consent::PermittedAct).

mod excerpt;
pub mod files;
pub mod shell;
mod text;
pub mod web;
mod workplace;

pub use excerpt::Excerpt;
pub use workplace::Workplace;

/// Why a tool did not do it, for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl Failure {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
