//! `POST /api/chat`.

use super::{
    common::{CommonFields, request},
    load,
    messages::{self, Message},
    schema::{OllamaChatAnswer, tool_choice},
    writer::{AnswerWriter, Shape},
};
use crate::respond::respond;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Instant;
use tierbar_core::{Error, status::TierStatus};
use tierbar_http::{InferenceCall, error::Failure};
use tierbar_inference::{CHAT, request::Request};
use tierbar_request_fields::OLLAMA_CHAT;
use utoipa::ToSchema;

/// A chat in Ollama's form.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = OllamaChatRequest)]
struct Chat {
    /// With none, the tier is loaded, or with a `keep_alive` of 0 unloaded.
    messages: Option<Vec<Message>>,
    /// Functions that the model may call.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Value>>,
    /// OpenAI's, which Ollama does not have: `auto`, `none`, `required`, or a function.
    #[schema(schema_with = tool_choice, required = false)]
    tool_choice: Option<Value>,
    /// OpenAI's: whether an answer may have several calls.
    parallel_tool_calls: Option<bool>,
    #[serde(flatten)]
    common: CommonFields,
}

/// Answers a chat, as lines of JSON or whole.
#[utoipa::path(
    post,
    path = "/api/chat",
    operation_id = "ollamaChat",
    reach(Inference, Spends, Counts),
    request_body = Chat,
    responses((status = 200, description = "The answer", content((OllamaChatAnswer = "application/json"), (String = "application/x-ndjson")))),
)]
pub(super) async fn chat(
    InferenceCall(inference, hints, body): InferenceCall,
) -> Result<Response, Failure> {
    let begun = Instant::now();
    let mut chat: Chat = request(body, &OLLAMA_CHAT).await?;
    let messages = chat.messages.take().unwrap_or_default();
    if messages.is_empty() {
        return load::load(&inference, &chat.common, Shape::Chat, begun).await;
    }
    let writer = AnswerWriter::new(Shape::Chat, chat.common.model(), begun);
    let chat = chat.openai(messages, &inference.tiers.snapshot())?;
    let request = Request::of(CHAT, hints, chat.into())?;
    Ok(respond(&inference, request, |_| writer).await)
}

impl Chat {
    fn openai(
        self,
        messages: Vec<Message>,
        tiers: &[TierStatus],
    ) -> Result<Map<String, Value>, Error> {
        let messages = messages::openai(messages)?;
        let mut chat = into_chat(&self.common, messages, tiers)?;
        let tools = self.tools.filter(|tools| !tools.is_empty());
        let parallel = self.parallel_tool_calls.filter(|_| tools.is_some());
        let choice = self.tool_choice.filter(|choice| !choice.is_null());
        chat.extend(tools.map(|tools| ("tools".to_owned(), tools.into())));
        chat.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
        chat.extend(parallel.map(|parallel| ("parallel_tool_calls".to_owned(), parallel.into())));
        Ok(chat)
    }
}

/// What a chat asks for beside its messages.
pub(super) fn into_chat(
    common: &CommonFields,
    messages: Vec<Value>,
    tiers: &[TierStatus],
) -> Result<Map<String, Value>, Error> {
    let mut chat = common.openai(tiers)?;
    chat.extend(common.think()?);
    if let Some(top) = common.probabilities() {
        chat.insert("logprobs".to_owned(), true.into());
        chat.insert("top_logprobs".to_owned(), top.into());
    }
    chat.insert("messages".to_owned(), messages.into());
    Ok(chat)
}
