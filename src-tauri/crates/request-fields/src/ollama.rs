//! Ollama's fields.

use super::{
    EFFORTS, Effect, FREQUENCY_PENALTY, Field, MIN_P, MODEL, PRESENCE_PENALTY, TEMPERATURE, TOP_P,
    TYPICAL_P, Table, WHOLE_CONTEXT, asking, harmless, honored, number, refused, word,
};

const SOURCE: &str = "Ollama's `api/types.go` (2026-08-21)";

const STREAM: Field = asking("false", honored("stream", ""));
const FORMAT: Field = honored("format", "`json` or a JSON schema");
const KEEP_ALIVE: Field = honored("keep_alive", "");
const OPTIONS: Field = asking(r#"{"temperature": 0.5}"#, honored("options", "as below"));
const THINK: Field = word(honored("think", "or a flag"), EFFORTS);
const LOGPROBS: Field = honored("logprobs", "");
const TOP_LOGPROBS: Field = number("top_logprobs", 0.0, 100.0, "with `logprobs`");
const TRUNCATE: Field = harmless(
    "truncate",
    "a prompt that is too long is refused, never truncated",
);
const SHIFT: Field = harmless(
    "shift",
    "an answer that fills the context ends with `length`",
);
const RENDER_ONLY: Field = refused(
    "_debug_render_only",
    "leave it out: it is for debugging Ollama",
);

/// `POST /api/chat`.
pub const OLLAMA_CHAT: Table = Table {
    title: "`/api/chat`",
    source: SOURCE,
    fields: &[
        MODEL,
        honored("messages", ""),
        STREAM,
        FORMAT,
        KEEP_ALIVE,
        honored("tools", ""),
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
        honored("prompt", ""),
        refused(
            "suffix",
            "write the model's own tokens for filling in into `prompt`, with \"raw\": true",
        ),
        honored("system", ""),
        refused(
            "template",
            "send the complete formatted prompt with \"raw\": true",
        ),
        refused("context", "send the conversation to /api/chat"),
        STREAM,
        honored("raw", ""),
        FORMAT,
        KEEP_ALIVE,
        asking(
            r#"["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"]"#,
            honored("images", ""),
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
        honored("num_predict", ""),
        TEMPERATURE,
        honored("top_k", ""),
        TOP_P,
        MIN_P,
        TYPICAL_P,
        honored("repeat_penalty", ""),
        honored("repeat_last_n", WHOLE_CONTEXT),
        PRESENCE_PENALTY,
        FREQUENCY_PENALTY,
        honored("seed", ""),
        honored("stop", ""),
        honored("mirostat", "older"),
        honored("mirostat_tau", "older"),
        honored("mirostat_eta", "older"),
        harmless("num_keep", "prompts are never truncated"),
        harmless("draft_num_predict", "it only speeds up an answer"),
        harmless(
            "num_ctx",
            "the tier's context applies; a prompt that exceeds it is refused",
        ),
        harmless("num_batch", AT_LOAD),
        harmless("num_gpu", AT_LOAD),
        harmless("main_gpu", AT_LOAD),
        harmless("use_mmap", AT_LOAD),
        harmless("num_thread", AT_LOAD),
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
        honored("tool_choice", "of `/api/chat`"),
        honored("parallel_tool_calls", "of `/api/chat`"),
        honored("max_tokens", AS_NUM_PREDICT),
        honored("max_completion_tokens", AS_NUM_PREDICT),
        honored("max_output_tokens", AS_NUM_PREDICT),
        as_option(TEMPERATURE),
        honored("top_k", AS_OPTION),
        as_option(TOP_P),
        as_option(PRESENCE_PENALTY),
        as_option(FREQUENCY_PENALTY),
        honored("seed", AS_OPTION),
        honored("stop", AS_OPTION),
    ],
};

/// `POST /api/embed`.
pub const OLLAMA_EMBED: Table = Table {
    title: "`/api/embed`",
    source: SOURCE,
    fields: &[
        MODEL,
        honored("input", ""),
        KEEP_ALIVE,
        asking(
            "false",
            honored(
                "truncate",
                "without it or with `true`, a text that is too long is truncated",
            ),
        ),
        honored("dimensions", "only the model's own; otherwise `400`"),
        harmless("options", AT_LOAD),
    ],
};

/// `POST /api/embeddings`.
pub const OLLAMA_EMBEDDINGS: Table = Table {
    title: "`/api/embeddings`",
    source: SOURCE,
    fields: &[
        MODEL,
        honored("prompt", ""),
        KEEP_ALIVE,
        harmless("options", AT_LOAD),
    ],
};
