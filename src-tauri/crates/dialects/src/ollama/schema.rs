//! Ollama's requests and answers by the names of their schemas; the requests that are read into types are described there.

// The refusal describes; nothing builds it.
#![allow(dead_code)]

use utoipa::{
    PartialSchema, ToResponse,
    openapi::{self, OneOfBuilder, Schema},
};

tierbar_http::written!(
    OllamaChatAnswer,
    OllamaEmbedInput,
    OllamaError,
    OllamaGenerateAnswer,
    OllamaLoaded,
    OllamaModels,
    OllamaPulled,
    OllamaShown,
    OllamaVersion,
);

/// The request was refused or failed, in Ollama's form.
#[derive(Debug, ToResponse)]
pub(crate) struct OllamaRefusal(OllamaError);

pub(super) fn tool_choice() -> Schema {
    OneOfBuilder::new()
        .item(String::schema())
        .item(openapi::Object::new())
        .description(Some(
            "`auto`, `none`, `required`, a function, or `allowed_tools`.",
        ))
        .into()
}
