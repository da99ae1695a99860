//! Responses as the API's description shows them; what is translated of a request is described where it is read.

// A request as it is described; nothing builds it.
#![allow(dead_code)]

use super::request::ResponseFields;
use crate::openai::schema::KeepAlive;
use utoipa::ToSchema;

tierbar_http::written!(
    CompactedResponse,
    Response,
    ResponseInput,
    ResponseTokenCount,
);

/// A request for a response. Other fields, such as llama-server's, are passed to the model's server.
#[derive(Debug, ToSchema)]
pub(super) struct ResponsesRequest {
    #[serde(flatten)]
    translated: ResponseFields,
    /// Whether to answer as the response's events.
    stream: Option<bool>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    parallel_tool_calls: Option<bool>,
    keep_alive: Option<KeepAlive>,
}
