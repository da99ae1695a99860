//! Anthropic's dialect: `/v1/messages`, turned into a chat of OpenAI's and back.

mod failure;

use crate::Gateway;
use axum::Router;
pub(crate) use failure::error_body;
use std::sync::Arc;

const MESSAGES: &str = "/v1/messages";

pub(crate) fn routes() -> Router<Arc<Gateway>> {
    Router::new()
}

pub(crate) fn is_path(path: &str) -> bool {
    path.starts_with(MESSAGES)
}
