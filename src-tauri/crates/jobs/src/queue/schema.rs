//! The queue's answers as the API's description shows them.

// These types describe; nothing builds them.
#![allow(dead_code)]

use serde_json::Value;
use std::borrow::Cow;
use tierbar_http::schema::QueuedRequest;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Ref, RefOr, Schema, schema::AnyOfBuilder},
};

/// An error in the form of the queued request's dialect.
pub(super) struct AnyError;

impl PartialSchema for AnyError {
    fn schema() -> RefOr<Schema> {
        // Not `oneOf`: an error in Anthropic's form has every field of one in OpenAI's.
        let forms = AnyOfBuilder::new().description(Some(
            "An error in the form of the queued request's dialect.",
        ));
        let named = ["Error", "AnthropicError", "OllamaError"].map(Ref::from_schema_name);
        named.into_iter().fold(forms, AnyOfBuilder::item).into()
    }
}

impl ToSchema for AnyError {
    fn name() -> Cow<'static, str> {
        "AnyError".into()
    }
}

/// A queued request, and its answer once it has ended.
#[derive(ToSchema)]
pub(super) struct QueuedOutcome {
    #[serde(flatten)]
    request: QueuedRequest,
    /// The answer; null until the request has ended, or without one.
    result: Option<QueuedResult>,
    /// The length of the answer's body.
    #[schema(required = false)]
    result_bytes: u64,
    /// Why the last attempt failed.
    #[schema(value_type = Option<Object>, required = true)]
    error: Value,
}

/// The answer to a queued request.
#[derive(ToSchema)]
struct QueuedResult {
    /// The HTTP status.
    status: u16,
    content_type: Option<String>,
    /// As JSON, or else as text.
    #[schema(required = true)]
    body: Option<Value>,
}
