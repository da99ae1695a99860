//! Anthropic's fields, its beta's included.

use super::{NOTHING, Table, harmless, honored, openai::WHO, refused};

/// `POST /v1/messages`.
pub const MESSAGES: Table = Table {
    title: "`/v1/messages`",
    source: "Anthropic, by its Python package 0.121.0 (2026-08-07)",
    fields: &[
        honored("max_tokens", "9", ""),
        honored(
            "messages",
            r#"[{"role": "user", "content": "Hello, you"}]"#,
            "",
        ),
        honored("model", r#""fast""#, "a tier, a chain, a model or `auto`"),
        harmless(
            "cache_control",
            r#"{"type": "ephemeral"}"#,
            "prompts are cached by what they begin with",
        ),
        refused(
            "container",
            r#"{"skills": [{"type": "anthropic", "skill_id": "pptx"}]}"#,
            NOTHING,
            "leave it out: no tool runs on the server",
        ),
        harmless(
            "context_management",
            r#"{"edits": [{"type": "clear_thinking_20251015"}]}"#,
            "a conversation is read whole, and one that is too long is refused",
        ),
        harmless(
            "diagnostics",
            r#"{"a": 1}"#,
            "it only says what a server should log",
        ),
        harmless("fallback_credit_token", r#""a""#, "nothing is charged"),
        harmless(
            "fallbacks",
            r#"[{"model": "b"}]"#,
            "a chain says which models stand in",
        ),
        harmless(
            "inference_geo",
            r#""us""#,
            "it says where Anthropic's servers compute",
        ),
        refused(
            "mcp_servers",
            r#"[{"type": "url", "url": "http://a", "name": "a"}]"#,
            NOTHING,
            "connect to them in the client, and send their tools in `tools`",
        ),
        harmless("metadata", r#"{"user_id": "me"}"#, WHO),
        honored(
            "output_config",
            r#"{"effort": "high"}"#,
            "`format` and `effort`",
        ),
        honored(
            "output_format",
            r#"{"type": "json_schema", "schema": {"type": "object"}}"#,
            "the older `output_config.format`",
        ),
        harmless("service_tier", r#""standard_only""#, "there is one"),
        harmless("speed", r#""fast""#, "it only speeds up an answer"),
        honored("stop_sequences", r#"["end"]"#, ""),
        honored("stream", "true", ""),
        honored("system", r#""Be brief.""#, ""),
        honored("temperature", "0.5", ""),
        honored(
            "thinking",
            r#"{"type": "enabled", "budget_tokens": 1024}"#,
            "`type` and `budget_tokens`",
        ),
        honored("tool_choice", r#"{"type": "any"}"#, ""),
        honored(
            "tools",
            r#"[{"name": "look", "input_schema": {"type": "object"}}]"#,
            "those with an `input_schema`; those that Anthropic's servers run are left out, others are `400`",
        ),
        honored("top_k", "3", ""),
        honored("top_p", "0.5", ""),
        refused(
            "thread",
            r#"{"id": "a"}"#,
            &["null", "false"],
            "send the whole conversation",
        ),
    ],
};
