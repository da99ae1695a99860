//! Ollama's fields.

use super::{
    EFFORTS, Effect, FREQUENCY_PENALTY, Field, MIN_P, MODEL, PRESENCE_PENALTY, TEMPERATURE, TOP_P,
    TYPICAL_P, Table, WHOLE_CONTEXT, harmless, honored, number, refused, word,
};

const SOURCE: &str = "Ollama's `api/types.go` (2026-08-21)";

const STREAM: Field = honored("stream", "false", "");
const FORMAT: Field = honored("format", r#""json""#, "`json` or a JSON schema");
const KEEP_ALIVE: Field = honored("keep_alive", r#""5m""#, "");
const OPTIONS: Field = honored("options", r#"{"temperature": 0.5}"#, "as below");
const THINK: Field = word(honored("think", "true", "or a flag"), EFFORTS);
const LOGPROBS: Field = honored("logprobs", "true", "");
const TOP_LOGPROBS: Field = number("top_logprobs", "2", 0.0, 100.0, "with `logprobs`");
const TRUNCATE: Field = harmless(
    "truncate",
    "true",
    "a prompt that is too long is refused, never truncated",
);
const SHIFT: Field = harmless(
    "shift",
    "true",
    "an answer that fills the context ends with `length`",
);
const RENDER_ONLY: Field = refused(
    "_debug_render_only",
    "true",
    "leave it out: it is for debugging Ollama",
);

/// `POST /api/chat`.
pub const OLLAMA_CHAT: Table = Table {
    title: "`/api/chat`",
    source: SOURCE,
    fields: &[
        MODEL,
        honored(
            "messages",
            r#"[{"role": "user", "content": "Hello, you"}]"#,
            "",
        ),
        STREAM,
        FORMAT,
        KEEP_ALIVE,
        honored(
            "tools",
            r#"[{"type": "function", "function": {"name": "look"}}]"#,
            "",
        ),
        OPTIONS,
        THINK,
        TRUNCATE,
        SHIFT,
        RENDER_ONLY,
        LOGPROBS,
        TOP_LOGPROBS,
    ],
};

/// `POST /api/generate`.
pub const OLLAMA_GENERATE: Table = Table {
    title: "`/api/generate`",
    source: SOURCE,
    fields: &[
        MODEL,
        honored("prompt", r#""Hello, you""#, ""),
        refused(
            "suffix",
            r#"" end""#,
            "write the model's own tokens for filling in into `prompt`, with \"raw\": true",
        ),
        honored("system", r#""Be brief.""#, ""),
        refused(
            "template",
            r#""{{ .Prompt }}""#,
            "send the complete formatted prompt with \"raw\": true",
        ),
        refused("context", "[1, 2]", "send the conversation to /api/chat"),
        STREAM,
        honored("raw", "true", ""),
        FORMAT,
        KEEP_ALIVE,
        honored(
            "images",
            r#"["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"]"#,
            "",
        ),
        OPTIONS,
        THINK,
        TRUNCATE,
        SHIFT,
        RENDER_ONLY,
        LOGPROBS,
        TOP_LOGPROBS,
    ],
};

const AT_LOAD: &str = "the tier's settings apply";

/// The `options` of chats and completions.
pub const OLLAMA_OPTIONS: Table = Table {
    title: "`options` of `/api/chat` and `/api/generate`",
    source: SOURCE,
    fields: &[
        honored("num_predict", "9", ""),
        TEMPERATURE,
        honored("top_k", "3", ""),
        TOP_P,
        MIN_P,
        TYPICAL_P,
        honored("repeat_penalty", "1.1", ""),
        honored("repeat_last_n", "32", WHOLE_CONTEXT),
        PRESENCE_PENALTY,
        FREQUENCY_PENALTY,
        honored("seed", "7", ""),
        honored("stop", r#"["end"]"#, ""),
        honored("mirostat", "2", "older"),
        honored("mirostat_tau", "4", "older"),
        honored("mirostat_eta", "0.2", "older"),
        harmless("num_keep", "4", "prompts are never truncated"),
        harmless("draft_num_predict", "4", "it only speeds up an answer"),
        harmless(
            "num_ctx",
            "8192",
            "the tier's context applies; a prompt that exceeds it is refused",
        ),
        harmless("num_batch", "64", AT_LOAD),
        harmless("num_gpu", "1", AT_LOAD),
        harmless("main_gpu", "0", AT_LOAD),
        harmless("use_mmap", "true", AT_LOAD),
        harmless("num_thread", "2", AT_LOAD),
    ],
};

const AS_OPTION: &str = "as in `options`";
const AS_NUM_PREDICT: &str = "as `num_predict` in `options`";

const fn as_option(field: Field) -> Field {
    let effect = Effect::Honored(AS_OPTION);
    Field { effect, ..field }
}

/// What clients of OpenAI's send to chats and completions of Ollama's, too.
pub const OLLAMA_ADDITIONS: Table = Table {
    title: "Additions to `/api/chat` and `/api/generate`",
    source: "OpenAI's names, which some clients send here",
    fields: &[
        honored("tool_choice", r#""none""#, "of `/api/chat`"),
        honored("parallel_tool_calls", "false", "of `/api/chat`"),
        honored("max_tokens", "9", AS_NUM_PREDICT),
        honored("max_completion_tokens", "9", AS_NUM_PREDICT),
        honored("max_output_tokens", "9", AS_NUM_PREDICT),
        as_option(TEMPERATURE),
        honored("top_k", "3", AS_OPTION),
        as_option(TOP_P),
        as_option(PRESENCE_PENALTY),
        as_option(FREQUENCY_PENALTY),
        honored("seed", "7", AS_OPTION),
        honored("stop", r#"["end"]"#, AS_OPTION),
    ],
};

/// `POST /api/embed`.
pub const OLLAMA_EMBED: Table = Table {
    title: "`/api/embed`",
    source: SOURCE,
    fields: &[
        MODEL,
        honored("input", r#""Hello, you""#, ""),
        KEEP_ALIVE,
        honored(
            "truncate",
            "false",
            "without it or with `true`, a text that is too long is truncated",
        ),
        honored("dimensions", "64", "only the model's own; otherwise `400`"),
        harmless("options", r#"{"num_ctx": 9}"#, AT_LOAD),
    ],
};

/// `POST /api/embeddings`.
pub const OLLAMA_EMBEDDINGS: Table = Table {
    title: "`/api/embeddings`",
    source: SOURCE,
    fields: &[
        MODEL,
        honored("prompt", r#""Hello, you""#, ""),
        KEEP_ALIVE,
        harmless("options", r#"{"num_ctx": 9}"#, AT_LOAD),
    ],
};
