//! `POST /api/generate`: a chat of one message, or a prompt as it stands.

use super::{
    chat,
    common::{CommonFields, request},
    images, load,
    schema::OllamaGenerateAnswer,
    writer::{AnswerWriter, Shape},
};
use crate::respond::respond;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Instant;
use tierbar_core::{Error, bad_request, status::TierStatus};
use tierbar_http::{InferenceCall, error::Failure};
use tierbar_inference::{CHAT, TEXT, request::Request};
use tierbar_request_fields::OLLAMA_GENERATE;
use utoipa::ToSchema;

/// A completion in Ollama's form.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = OllamaGenerateRequest)]
struct Generate {
    /// Without one, the tier is loaded, or with a `keep_alive` of 0 unloaded.
    prompt: Option<String>,
    /// The system message.
    system: Option<String>,
    /// Whether the prompt is used as it is, without the model's template.
    raw: Option<bool>,
    /// In base64: PNG, JPEG, GIF, BMP or WebP.
    images: Option<Vec<String>>,
    #[serde(flatten)]
    common: CommonFields,
}

/// Completes a prompt, as lines of JSON or whole.
#[utoipa::path(
    post,
    path = "/api/generate",
    operation_id = "ollamaGenerate",
    reach(Inference, Spends, Counts),
    request_body = Generate,
    responses((status = 200, description = "The answer", content((OllamaGenerateAnswer = "application/json"), (String = "application/x-ndjson")))),
)]
pub(super) async fn generate(
    InferenceCall(inference, hints, body): InferenceCall,
) -> Result<Response, Failure> {
    let begun = Instant::now();
    let generate: Generate = request(body, &OLLAMA_GENERATE).await?;
    if generate.is_empty() {
        return load::load(&inference, &generate.common, Shape::Generate, begun).await;
    }
    let writer = AnswerWriter::new(Shape::Generate, generate.common.model(), begun);
    let (path, request) = generate.openai(&inference.tiers.snapshot())?;
    let request = Request::of(path, hints, request.into())?;
    Ok(respond(&inference, request, |_| writer).await)
}

fn non_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

impl Generate {
    fn is_empty(&self) -> bool {
        non_empty(self.prompt.as_ref()).is_none() && self.images().is_empty()
    }

    fn images(&self) -> &[String] {
        self.images.as_deref().unwrap_or_default()
    }

    /// Where it goes, and as what.
    fn openai(&self, tiers: &[TierStatus]) -> Result<(&'static str, Map<String, Value>), Error> {
        let prompt = self.prompt.as_deref().unwrap_or_default();
        if self.raw == Some(true) {
            if !self.images().is_empty() {
                return Err(bad_request(
                    "`images` cannot be used with \"raw\": leave \"raw\" out, or use /api/chat",
                ));
            }
            let mut request = self.common.openai(tiers)?;
            request.insert("prompt".to_owned(), prompt.into());
            let top = self.common.probabilities();
            request.extend(top.map(|top| ("logprobs".to_owned(), top.into())));
            return Ok((TEXT, request));
        }
        let mut messages = Vec::new();
        if let Some(system) = non_empty(self.system.as_ref()) {
            messages.push(json!({"role": "system", "content": system}));
        }
        let content = images::content(prompt, self.images())?;
        messages.push(json!({"role": "user", "content": content}));
        Ok((CHAT, chat::into_chat(&self.common, messages, tiers)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(generate: Value) -> Result<(&'static str, Value), Error> {
        let generate: Generate = serde_json::from_value(generate).unwrap();
        let (path, request) = generate.openai(&[])?;
        Ok((path, request.into()))
    }

    #[test]
    fn a_prompt_is_a_message_and_a_raw_one_is_itself() {
        let (path, chat) = converted(json!({
            "model": "fast", "prompt": "Hi", "system": "Be brief.", "stream": false, "think": true,
            "logprobs": true, "top_logprobs": 2,
        }))
        .unwrap();
        assert_eq!(path, "/v1/chat/completions");
        assert_eq!(
            chat,
            json!({
                "model": "fast", "stream": false, "think": true, "logprobs": true, "top_logprobs": 2,
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            })
        );
        let (path, text) = converted(json!({
            "prompt": "1, 2,", "raw": true, "system": "unused", "stream": false, "logprobs": true,
        }))
        .unwrap();
        assert_eq!(path, "/v1/completions");
        assert_eq!(
            text,
            json!({"model": "auto", "stream": false, "prompt": "1, 2,", "logprobs": 0})
        );
    }

    #[test]
    fn what_would_be_answered_wrongly_is_refused() {
        let unreadable = json!({"prompt": "Hi", "images": ["AAAA"]});
        assert!(
            converted(unreadable)
                .unwrap_err()
                .message
                .contains("image 1")
        );
        let raw = json!({"prompt": "Hi", "raw": true, "images": ["AAAA"]});
        assert!(converted(raw).unwrap_err().message.contains("`images`"));
    }
}
