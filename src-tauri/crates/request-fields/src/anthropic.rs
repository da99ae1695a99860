//! Anthropic's fields, its beta's included.

use super::{
    Field, MODEL, TEMPERATURE, TOP_P, Table, asking, harmless, honored, openai::WHO, refused,
    refused_unless,
};

const SOURCE: &str = "Anthropic, by its Python package 2.14.0";

/// `POST /v1/messages`.
pub const MESSAGES: Table = Table {
    title: "`/v1/messages`",
    source: SOURCE,
    fields: &[
        honored("max_tokens", ""),
        CONVERSATION,
        MODEL,
        BILLING,
        CACHE_CONTROL,
        refused(
            "compaction",
            "summarize the conversation in the client, or with POST /v1/responses/compact",
        ),
        refused("container", "leave it out: no tool runs on the server"),
        CONTEXT_MANAGEMENT,
        harmless("diagnostics", "it only says what a server should log"),
        harmless("fallback_credit_token", "nothing is charged"),
        harmless("fallbacks", "use a chain for fallbacks"),
        harmless("inference_geo", "it says where Anthropic's servers compute"),
        MCP_SERVERS,
        harmless("metadata", WHO),
        honored("output_config", "`format` and `effort`"),
        OUTPUT_FORMAT,
        harmless("service_tier", "there is one"),
        SPEED,
        honored("stop_sequences", ""),
        honored("stream", ""),
        SYSTEM,
        TEMPERATURE,
        honored(
            "thinking",
            "`type` (`between_tools` as `adaptive`) and `budget_tokens`",
        ),
        TOOL_CHOICE,
        asking(
            r#"[{"name": "look", "input_schema": {"type": "object"}}]"#,
            honored(
                "tools",
                "those with an `input_schema`; those that Anthropic's servers run are left out, others are `400`",
            ),
        ),
        honored("top_k", ""),
        TOP_P,
        refused_unless("thread", &["null", "false"], "send the whole conversation"),
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
        harmless("compaction", "the conversation is counted as sent"),
        CONTEXT_MANAGEMENT,
        MCP_SERVERS,
        honored("output_config", "`effort`, which some chat templates use"),
        OUTPUT_FORMAT,
        SPEED,
        SYSTEM,
        honored("thinking", "`type`, which some chat templates use"),
        TOOL_CHOICE,
        asking(
            r#"[{"name": "look", "input_schema": {"type": "object"}}]"#,
            honored("tools", "those with an `input_schema`"),
        ),
    ],
};

// Of messages, and of counting their tokens.
const CONVERSATION: Field = honored("messages", "");
const OUTPUT_FORMAT: Field = honored("output_format", "the older `output_config.format`");
const SPEED: Field = harmless("speed", "it only speeds up an answer");
const SYSTEM: Field = honored("system", "");
const TOOL_CHOICE: Field = asking(r#"{"type": "any"}"#, honored("tool_choice", ""));
const BILLING: Field = harmless("billing_policy", "nothing is charged");
const CACHE_CONTROL: Field = harmless("cache_control", "prompts are cached by their prefix");
const CONTEXT_MANAGEMENT: Field = harmless(
    "context_management",
    "a conversation that is too long is refused, never truncated",
);
const MCP_SERVERS: Field = refused(
    "mcp_servers",
    "connect to them in the client, and send their tools in `tools`",
);
