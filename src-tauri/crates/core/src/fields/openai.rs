//! OpenAI's fields.

use super::{NOTHING, Table, harmless, honored, refused};

const SOURCE: &str = "OpenAI, by its Python package 3.3.1 (2026-08-21)";

/// `POST /v1/chat/completions`.
pub const CHAT: Table = Table {
    title: "`/v1/chat/completions`",
    source: SOURCE,
    fields: &[
        honored("messages", r#"[{"role": "user", "content": "Hello"}]"#, ""),
        honored("model", r#""fast""#, "a tier, a chain, a model or `auto`"),
        refused(
            "audio",
            r#"{"voice": "alloy", "format": "wav"}"#,
            NOTHING,
            ONLY_TEXT,
        ),
        honored("frequency_penalty", "0.5", ""),
        honored("function_call", r#"{"name": "look"}"#, "as `tool_choice`"),
        honored("functions", r#"[{"name": "look"}]"#, "as `tools`"),
        honored("logit_bias", r#"{"7": 1}"#, "also as pairs, `[[7, 1]]`"),
        honored("logprobs", "true", ""),
        honored("max_completion_tokens", "9", ""),
        honored("max_tokens", "9", ""),
        harmless("metadata", r#"{"of": "me"}"#, "nothing is stored"),
        refused(
            "modalities",
            r#"["text", "audio"]"#,
            &["null", r#"["text"]"#, "[]"],
            ONLY_TEXT,
        ),
        refused("moderation", r#"{"model": "omni"}"#, NOTHING, NO_MODERATION),
        honored("n", "2", "up to 16"),
        honored("parallel_tool_calls", "false", ""),
        harmless(
            "prediction",
            r#"{"type": "content", "content": "Hello"}"#,
            "it only speeds up an answer",
        ),
        honored("presence_penalty", "0.5", ""),
        harmless("prompt_cache_key", r#""a""#, CACHED),
        harmless("prompt_cache_options", r#"{"mode": "explicit"}"#, CACHED),
        harmless("prompt_cache_retention", r#""24h""#, CACHED),
        honored(
            "reasoning_effort",
            r#""high""#,
            "turns thinking on, and is passed to the chat template",
        ),
        honored("response_format", r#"{"type": "json_object"}"#, ""),
        harmless("safety_identifier", r#""me""#, WHO),
        honored("seed", "7", ""),
        harmless("service_tier", r#""flex""#, "there is one"),
        honored("stop", r#"["end"]"#, "up to 64 strings"),
        harmless("store", "true", "nothing is stored"),
        honored("stream", "true", ""),
        honored(
            "stream_options",
            r#"{"include_usage": true}"#,
            "`include_usage`; `include_obfuscation` only pads a stream",
        ),
        honored("temperature", "0.5", ""),
        honored("tool_choice", r#""none""#, ""),
        honored(
            "tools",
            r#"[{"type": "function", "function": {"name": "look"}}]"#,
            "functions; told in words where the chat template has no place for them",
        ),
        honored("top_logprobs", "3", "up to 100"),
        honored("top_p", "0.5", ""),
        harmless("user", r#""me""#, WHO),
        honored(
            "verbosity",
            r#""low""#,
            "passed to the chat template, since models know it by that",
        ),
        refused(
            "web_search_options",
            r#"{"search_context_size": "low"}"#,
            &["null"],
            "search the web in the client, and send what it finds",
        ),
    ],
};

/// `POST /v1/completions`.
pub const COMPLETIONS: Table = Table {
    title: "`/v1/completions`",
    source: SOURCE,
    fields: &[
        honored("model", r#""fast""#, "a tier, a chain, a model or `auto`"),
        honored(
            "prompt",
            r#"["Hello", [1, 2]]"#,
            "texts and lists of token ids, up to 64",
        ),
        honored("best_of", "2", "only as many as `n`; otherwise `400`"),
        honored(
            "echo",
            "true",
            "with `logprobs`, also the prompt's log probabilities",
        ),
        honored("frequency_penalty", "0.5", ""),
        honored("logit_bias", r#"{"7": 1}"#, "also as pairs, `[[7, 1]]`"),
        honored("logprobs", "1", "up to 100"),
        honored("max_tokens", "9", ""),
        honored("n", "2", "up to 16"),
        honored("presence_penalty", "0.5", ""),
        honored("seed", "7", ""),
        honored("stop", r#"["end"]"#, "up to 64 strings"),
        honored("stream", "true", ""),
        honored(
            "stream_options",
            r#"{"include_usage": true}"#,
            "`include_usage`",
        ),
        refused(
            "suffix",
            r#"" end""#,
            NOTHING,
            "write the model's own tokens for filling in into `prompt`",
        ),
        honored("temperature", "0.5", ""),
        honored("top_p", "0.5", ""),
        harmless("user", r#""me""#, WHO),
    ],
};

/// `POST /v1/embeddings`.
pub const EMBEDDINGS: Table = Table {
    title: "`/v1/embeddings`",
    source: SOURCE,
    fields: &[
        honored(
            "input",
            r#"["Hello", [1, 2]]"#,
            "texts and lists of token ids, up to 2048",
        ),
        honored("model", r#""fast""#, "a tier or a model"),
        honored("dimensions", "64", "only the model's own; otherwise `400`"),
        honored("encoding_format", r#""base64""#, ""),
        harmless("user", r#""me""#, WHO),
    ],
};

/// `POST /v1/responses`.
pub const RESPONSES: Table = Table {
    title: "`/v1/responses`",
    source: SOURCE,
    fields: &[
        refused(
            "background",
            "true",
            NOTHING,
            "leave it out, and read the answer as a stream",
        ),
        harmless(
            "context_management",
            r#"[{"type": "compaction"}]"#,
            "a conversation is read whole, and one that is too long is refused",
        ),
        refused(
            "conversation",
            r#""conv_1""#,
            NOTHING,
            "send the whole conversation in `input`",
        ),
        honored(
            "include",
            r#"["message.output_text.logprobs"]"#,
            "`message.output_text.logprobs`; the others are of tools that run elsewhere",
        ),
        honored("input", r#""Hello, you""#, ""),
        honored("instructions", r#""Be brief.""#, ""),
        honored("max_output_tokens", "9", ""),
        harmless(
            "max_tool_calls",
            "1",
            "it limits tools that run on OpenAI's servers",
        ),
        harmless("metadata", r#"{"of": "me"}"#, "returned with the response"),
        honored("model", r#""fast""#, "a tier, a chain, a model or `auto`"),
        refused("moderation", r#"{"model": "omni"}"#, NOTHING, NO_MODERATION),
        honored("parallel_tool_calls", "false", ""),
        refused(
            "previous_response_id",
            r#""resp_1""#,
            NOTHING,
            "send the whole conversation in `input`, with the `output` of the responses before",
        ),
        refused(
            "prompt",
            r#"{"id": "pmpt_1"}"#,
            NOTHING,
            "send its text in `instructions` or `input`",
        ),
        harmless("prompt_cache_key", r#""a""#, CACHED),
        harmless("prompt_cache_options", r#"{"mode": "explicit"}"#, CACHED),
        harmless("prompt_cache_retention", r#""24h""#, CACHED),
        honored("reasoning", r#"{"effort": "high"}"#, "`effort`"),
        harmless("safety_identifier", r#""me""#, WHO),
        harmless("service_tier", r#""flex""#, "there is one"),
        harmless(
            "store",
            "true",
            "nothing is stored, and the response says so",
        ),
        honored("stream", "true", ""),
        harmless(
            "stream_options",
            r#"{"include_obfuscation": true}"#,
            "it only pads a stream",
        ),
        honored("temperature", "0.5", ""),
        honored(
            "text",
            r#"{"format": {"type": "json_object"}}"#,
            "`format` and `verbosity`",
        ),
        honored("tool_choice", r#""none""#, ""),
        honored(
            "tools",
            r#"[{"type": "function", "name": "look", "parameters": {}}]"#,
            "functions; others, which nothing here runs, are listed in `tierbar.left_out`",
        ),
        honored("top_logprobs", "3", ""),
        honored("top_p", "0.5", ""),
        harmless(
            "truncation",
            r#""auto""#,
            "a prompt that is too long is refused, and never cut",
        ),
        harmless("user", r#""me""#, WHO),
    ],
};

const ONLY_TEXT: &str = "leave it out: answers are text";
const NO_MODERATION: &str = "moderate the text in the client, or with a request of its own";
const CACHED: &str = "prompts are cached by what they begin with";
pub(super) const WHO: &str = "it only names the user";
