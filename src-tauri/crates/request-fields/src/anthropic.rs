//! Anthropic's fields, its beta's included.

use super::{
    Field, MODEL, TEMPERATURE, TOP_P, Table, harmless, honored, openai::WHO, refused,
    refused_unless,
};

const SOURCE: &str = "Anthropic, by its Python package 2.14.0";

/// `POST /v1/messages`.
pub const MESSAGES: Table = Table {
    title: "`/v1/messages`",
    source: SOURCE,
    fields: &[
        honored("max_tokens", "9", ""),
        CONVERSATION,
        MODEL,
        BILLING,
        CACHE_CONTROL,
        refused(
            "compaction",
            r#"{"type": "enabled"}"#,
            "summarize the conversation in the client, or with POST /v1/responses/compact",
        ),
        refused(
            "container",
            r#"{"skills": [{"type": "anthropic", "skill_id": "pptx"}]}"#,
            "leave it out: no tool runs on the server",
        ),
        CONTEXT_MANAGEMENT,
        harmless(
            "diagnostics",
            r#"{"a": 1}"#,
            "it only says what a server should log",
        ),
        harmless("fallback_credit_token", r#""a""#, "nothing is charged"),
        harmless(
            "fallbacks",
            r#"[{"model": "b"}]"#,
            "use a chain for fallbacks",
        ),
        harmless(
            "inference_geo",
            r#""us""#,
            "it says where Anthropic's servers compute",
        ),
        MCP_SERVERS,
        harmless("metadata", r#"{"user_id": "me"}"#, WHO),
        honored(
            "output_config",
            r#"{"effort": "high"}"#,
            "`format` and `effort`",
        ),
        OUTPUT_FORMAT,
        harmless("service_tier", r#""standard_only""#, "there is one"),
        SPEED,
        honored("stop_sequences", r#"["end"]"#, ""),
        honored("stream", "true", ""),
        SYSTEM,
        TEMPERATURE,
        honored(
            "thinking",
            r#"{"type": "enabled", "budget_tokens": 1024}"#,
            "`type` (`between_tools` as `adaptive`) and `budget_tokens`",
        ),
        TOOL_CHOICE,
        honored(
            "tools",
            r#"[{"name": "look", "input_schema": {"type": "object"}}]"#,
            "those with an `input_schema`; those that Anthropic's servers run are left out, others are `400`",
        ),
        honored("top_k", "3", ""),
        TOP_P,
        refused_unless(
            "thread",
            r#"{"id": "a"}"#,
            &["null", "false"],
            "send the whole conversation",
        ),
    ],
};

/// `POST /v1/messages/count_tokens`.
pub const COUNT_TOKENS: Table = Table {
    title: "`/v1/messages/count_tokens`",
    source: SOURCE,
    fields: &[
        CONVERSATION,
        MODEL,
        BILLING,
        CACHE_CONTROL,
        harmless(
            "compaction",
            r#"{"type": "enabled"}"#,
            "the conversation is counted as sent",
        ),
        CONTEXT_MANAGEMENT,
        MCP_SERVERS,
        honored(
            "output_config",
            r#"{"effort": "high"}"#,
            "`effort`, which some chat templates use",
        ),
        OUTPUT_FORMAT,
        SPEED,
        SYSTEM,
        honored(
            "thinking",
            r#"{"type": "enabled", "budget_tokens": 1024}"#,
            "`type`, which some chat templates use",
        ),
        TOOL_CHOICE,
        honored(
            "tools",
            r#"[{"name": "look", "input_schema": {"type": "object"}}]"#,
            "those with an `input_schema`",
        ),
    ],
};

// Of messages, and of counting their tokens.
const CONVERSATION: Field = honored(
    "messages",
    r#"[{"role": "user", "content": "Hello, you"}]"#,
    "",
);
const OUTPUT_FORMAT: Field = honored(
    "output_format",
    r#"{"type": "json_schema", "schema": {"type": "object"}}"#,
    "the older `output_config.format`",
);
const SPEED: Field = harmless("speed", r#""fast""#, "it only speeds up an answer");
const SYSTEM: Field = honored("system", r#""Be brief.""#, "");
const TOOL_CHOICE: Field = honored("tool_choice", r#"{"type": "any"}"#, "");
const BILLING: Field = harmless("billing_policy", r#"{"a": 1}"#, "nothing is charged");
const CACHE_CONTROL: Field = harmless(
    "cache_control",
    r#"{"type": "ephemeral"}"#,
    "prompts are cached by their prefix",
);
const CONTEXT_MANAGEMENT: Field = harmless(
    "context_management",
    r#"{"edits": [{"type": "clear_thinking_20251015"}]}"#,
    "a conversation that is too long is refused, never truncated",
);
const MCP_SERVERS: Field = refused(
    "mcp_servers",
    r#"[{"type": "url", "url": "http://a", "name": "a"}]"#,
    "connect to them in the client, and send their tools in `tools`",
);
