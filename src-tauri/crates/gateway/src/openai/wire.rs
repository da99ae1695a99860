//! What is read of OpenAI's answers, whole and streamed, where they are turned into another dialect. Lenient: servers leave
//! fields out, add their own, and send `null` for nothing.

use serde::Deserialize;
use serde_json::Value;
use tierbar_core::{Code, Error};

/// A whole answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Completion {
    pub(crate) model: Option<String>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) usage: Option<Usage>,
    pub(crate) timings: Option<Timings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Choice {
    pub(crate) message: Message,
    /// Of a completion.
    pub(crate) text: Option<String>,
    pub(crate) finish_reason: Option<String>,
    /// The stop string that ended it, as vLLM tells it.
    pub(crate) stop_reason: Option<Value>,
    pub(crate) logprobs: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    pub(crate) content: Option<String>,
    #[serde(alias = "reasoning")]
    pub(crate) reasoning_content: Option<String>,
    pub(crate) tool_calls: Option<Vec<ToolCall>>,
}

/// A call of a tool, or, in a stream, a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolCall {
    /// Which of the answer's calls a piece belongs to.
    pub(crate) index: usize,
    pub(crate) id: Option<String>,
    pub(crate) function: Function,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Function {
    pub(crate) name: Option<String>,
    /// JSON as a text.
    pub(crate) arguments: Option<String>,
}

/// An event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Chunk {
    pub(crate) model: Option<String>,
    pub(crate) choices: Vec<ChunkChoice>,
    pub(crate) usage: Option<Usage>,
    pub(crate) timings: Option<Timings>,
    pub(crate) error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChunkChoice {
    pub(crate) delta: Message,
    /// Of a completion.
    pub(crate) text: Option<String>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) stop_reason: Option<Value>,
    pub(crate) logprobs: Option<Value>,
}

/// In tokens.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) prompt_tokens_details: Option<PromptDetails>,
    pub(crate) completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct PromptDetails {
    pub(crate) cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct CompletionDetails {
    pub(crate) reasoning_tokens: Option<u64>,
}

/// llama-server's figures.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct Timings {
    pub(crate) prompt_ms: f64,
    pub(crate) predicted_ms: f64,
}

impl Usage {
    /// Prompt tokens that were in memory already.
    pub(crate) fn cached(&self) -> u64 {
        let details = self.prompt_tokens_details.unwrap_or_default();
        details.cached_tokens.unwrap_or(0).min(self.prompt_tokens)
    }

    /// Tokens that were thoughts, where the server tells.
    pub(crate) fn reasoning(&self) -> u64 {
        let details = self.completion_tokens_details.unwrap_or_default();
        details
            .reasoning_tokens
            .unwrap_or(0)
            .min(self.completion_tokens)
    }
}

/// The error that a body tells: ours as it is, another server's with its own words.
pub(crate) fn error(body: &[u8]) -> Error {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    Error::from_openai_body(&body).unwrap_or_else(|| {
        let told = ["/error/message", "/message", "/error", "/detail"];
        let told = told
            .iter()
            .find_map(|place| body.pointer(place)?.as_str())
            .unwrap_or("the model's server refused the request and told no reason");
        Error::new(Code::Unreachable, told)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_out_or_null_is_nothing() {
        let chunk: Chunk = serde_json::from_value(json!({
            "id": null, "choices": [{"index": 0, "delta": {"content": null, "tool_calls": null}, "finish_reason": null}],
            "usage": null,
        }))
        .unwrap();
        assert!(chunk.choices[0].delta.content.is_none() && chunk.usage.is_none());
    }

    #[test]
    fn another_servers_refusal_is_told_in_its_words() {
        for body in [
            r#"{"error":{"message":"no","code":400}}"#,
            r#"{"error":"no"}"#,
            r#"{"detail":"no"}"#,
        ] {
            assert_eq!(error(body.as_bytes()).message, "no");
        }
        assert!(error(b"<html>").message.contains("told no reason"));
        let ours = Error::new(Code::ContextExceeded, "too long");
        assert_eq!(error(ours.openai_body().to_string().as_bytes()), ours);
    }
}
