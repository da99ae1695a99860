//! OpenAI's fields.

use super::{
    EFFORTS, FREQUENCY_PENALTY, Field, MODEL, PRESENCE_PENALTY, TEMPERATURE, TOP_P, Table,
    harmless, honored, number, refused, refused_unless, word,
};

const SOURCE: &str = "OpenAI, by its Python package 3.57.0";

/// `POST /v1/chat/completions`.
pub const CHAT: Table = Table {
    title: "`/v1/chat/completions`",
    source: SOURCE,
    fields: &[
        honored("messages", r#"[{"role": "user", "content": "Hello"}]"#, ""),
        MODEL,
        refused("audio", r#"{"voice": "alloy", "format": "wav"}"#, ONLY_TEXT),
        FREQUENCY_PENALTY,
        honored("function_call", r#"{"name": "look"}"#, "as `tool_choice`"),
        honored("functions", r#"[{"name": "look"}]"#, "as `tools`"),
        honored("logit_bias", r#"{"7": 1}"#, "also as pairs, `[[7, 1]]`"),
        honored("logprobs", "true", ""),
        honored("max_completion_tokens", "9", ""),
        honored("max_tokens", "9", ""),
        harmless("metadata", r#"{"of": "me"}"#, "nothing is stored"),
        refused_unless(
            "modalities",
            r#"["text", "audio"]"#,
            &["null", r#"["text"]"#, "[]"],
            ONLY_TEXT,
        ),
        refused("moderation", r#"{"model": "omni"}"#, NO_MODERATION),
        honored("n", "2", "up to 16"),
        honored("parallel_tool_calls", "false", ""),
        harmless(
            "prediction",
            r#"{"type": "content", "content": "Hello"}"#,
            "it only speeds up an answer",
        ),
        PRESENCE_PENALTY,
        harmless("prompt_cache_key", r#""a""#, CACHED),
        harmless("prompt_cache_options", r#"{"mode": "explicit"}"#, CACHED),
        harmless("prompt_cache_retention", r#""24h""#, CACHED),
        word(
            honored(
                "reasoning_effort",
                r#""high""#,
                "turns thinking on, and is passed to the chat template",
            ),
            EFFORTS,
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
        TEMPERATURE,
        honored("tool_choice", r#""none""#, ""),
        honored(
            "tools",
            r#"[{"type": "function", "function": {"name": "look"}}]"#,
            "functions; described in the prompt if the chat template does not support tools",
        ),
        number(
            "top_logprobs",
            "3",
            0.0,
            100.0,
            "only with `logprobs`; otherwise `400`",
        ),
        TOP_P,
        harmless("user", r#""me""#, WHO),
        word(
            honored("verbosity", r#""low""#, "passed to the chat template"),
            &["low", "medium", "high"],
        ),
        refused_unless(
            "web_search_options",
            r#"{"search_context_size": "low"}"#,
            &["null"],
            "search the web in the client, and send the results",
        ),
    ],
};

/// `POST /v1/completions`.
pub const COMPLETIONS: Table = Table {
    title: "`/v1/completions`",
    source: SOURCE,
    fields: &[
        MODEL,
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
        FREQUENCY_PENALTY,
        honored("logit_bias", r#"{"7": 1}"#, "also as pairs, `[[7, 1]]`"),
        honored("logprobs", "1", "up to 100"),
        honored("max_tokens", "9", ""),
        honored("n", "2", "up to 16"),
        PRESENCE_PENALTY,
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
            "write the model's own tokens for filling in into `prompt`",
        ),
        TEMPERATURE,
        TOP_P,
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
        honored(
            "truncate_prompt_tokens",
            "-1",
            "vLLM's: longer texts are cut to so many tokens; -1: to the context",
        ),
    ],
};

/// `POST /v1/responses`.
pub const RESPONSES: Table = Table {
    title: "`/v1/responses`",
    source: SOURCE,
    fields: &[
        harmless(
            "access_programs",
            r#"{"a": 1}"#,
            "it says what OpenAI grants an account",
        ),
        refused(
            "background",
            "true",
            "leave it out, and read the answer as a stream",
        ),
        harmless(
            "background_options",
            r#"{"a": 1}"#,
            "it is for `background`, which is refused",
        ),
        harmless(
            "context_management",
            r#"[{"type": "compaction"}]"#,
            "a conversation that is too long is refused, never truncated",
        ),
        CONVERSATION,
        IMAGE,
        honored(
            "include",
            r#"["message.output_text.logprobs"]"#,
            "`message.output_text.logprobs` and `file_search_call.results`; the other published ones are of tools that run elsewhere, and unpublished ones are `400`",
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
        MODEL,
        refused("moderation", r#"{"model": "omni"}"#, NO_MODERATION),
        honored("parallel_tool_calls", "false", ""),
        PREVIOUS,
        refused(
            "prompt",
            r#"{"id": "pmpt_1"}"#,
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
        TEMPERATURE,
        honored(
            "text",
            r#"{"format": {"type": "json_object"}}"#,
            "`format` and `verbosity`",
        ),
        honored("tool_choice", r#""none""#, ""),
        honored(
            "tools",
            r#"[{"type": "function", "name": "look", "parameters": {}}]"#,
            "functions and `file_search`; others, which nothing here runs, are listed in `tierbar.left_out`",
        ),
        number("top_logprobs", "3", 0.0, 100.0, ""),
        TOP_P,
        word(
            harmless(
                "truncation",
                r#""auto""#,
                "a prompt that is too long is refused, never truncated",
            ),
            TRUNCATIONS,
        ),
        harmless("user", r#""me""#, WHO),
    ],
};

/// `POST /v1/responses/input_tokens`.
pub const INPUT_TOKENS: Table = Table {
    title: "`/v1/responses/input_tokens`",
    source: SOURCE,
    fields: &[
        CONVERSATION,
        honored("input", r#""Hello, you""#, ""),
        honored("instructions", r#""Be brief.""#, ""),
        MODEL,
        harmless("parallel_tool_calls", "false", IN_NO_PROMPT),
        refused(
            "personality",
            r#""friendly""#,
            "describe it in `instructions`",
        ),
        PREVIOUS,
        honored(
            "reasoning",
            r#"{"effort": "high"}"#,
            "`effort`, which some chat templates use",
        ),
        honored(
            "text",
            r#"{"format": {"type": "json_object"}}"#,
            "`verbosity`, which some chat templates use",
        ),
        honored("tool_choice", r#""none""#, ""),
        honored(
            "tools",
            r#"[{"type": "function", "name": "look", "parameters": {}}]"#,
            "functions; others are left out",
        ),
        word(
            harmless("truncation", r#""auto""#, "prompts are never truncated"),
            TRUNCATIONS,
        ),
    ],
};

/// `POST /v1/responses/compact`.
pub const COMPACT: Table = Table {
    title: "`/v1/responses/compact`",
    source: SOURCE,
    fields: &[
        IMAGE,
        honored("input", r#""Hello, you""#, ""),
        honored(
            "instructions",
            r#""Be brief.""#,
            "counted, and not summarized: send them again with the next request",
        ),
        honored(
            "model",
            r#""fast""#,
            "writes the summary: a tier, a chain, a model or `auto`",
        ),
        PREVIOUS,
        harmless("prompt_cache_key", r#""a""#, CACHED),
        harmless("prompt_cache_options", r#"{"mode": "explicit"}"#, CACHED),
        harmless("prompt_cache_retention", r#""24h""#, CACHED),
        harmless("service_tier", r#""flex""#, "there is one"),
    ],
};

/// `POST /v1/vector_stores`.
pub const VECTOR_STORES: Table = Table {
    title: "`/v1/vector_stores`",
    source: SOURCE,
    fields: &[
        harmless(
            "chunking_strategy",
            r#"{"type": "auto"}"#,
            "it is for `file_ids`, which is refused",
        ),
        harmless("description", r#""of me""#, "nothing is stored of it"),
        EXPIRES,
        refused("file_ids", r#"["file-1"]"#, ADD_DOCUMENTS),
        NO_METADATA,
        honored(
            "name",
            r#""Papers""#,
            "a collection that has documents; otherwise `400`",
        ),
    ],
};

/// `POST /v1/vector_stores/{id}`.
pub const VECTOR_STORE: Table = Table {
    title: "`/v1/vector_stores/{id}`",
    source: SOURCE,
    fields: &[
        EXPIRES,
        NO_METADATA,
        honored("name", r#""Papers""#, "only its own; otherwise `400`"),
    ],
};

/// `POST /v1/vector_stores/{id}/search`.
pub const VECTOR_STORE_SEARCH: Table = Table {
    title: "`/v1/vector_stores/{id}/search`",
    source: SOURCE,
    fields: &[
        FILTERS,
        number("max_num_results", "3", 1.0, 50.0, "10 without it"),
        honored("query", r#""renewal of the lease""#, "a text, or up to 8"),
        honored("ranking_options", r#"{"ranker": "none"}"#, "see below"),
        refused(
            "rewrite_query",
            "true",
            "write the query as it should be searched",
        ),
    ],
};

/// The tool `file_search` of `POST /v1/responses`.
pub const FILE_SEARCH: Table = Table {
    title: "`tools` of the type `file_search`, in `/v1/responses`",
    source: SOURCE,
    fields: &[
        FILTERS,
        number(
            "max_num_results",
            "3",
            1.0,
            50.0,
            "6 without it, or fewer if the context is small",
        ),
        honored("ranking_options", r#"{"ranker": "none"}"#, "see below"),
        honored("type", r#""file_search""#, ""),
        honored("vector_store_ids", r#"["vs_UGFwZXJz"]"#, "up to 8"),
    ],
};

/// How passages are ranked, in both.
pub const RANKING_OPTIONS: Table = Table {
    title: "`ranking_options`, in both",
    source: SOURCE,
    fields: &[
        refused(
            "hybrid_search",
            r#"{"embedding_weight": 1, "text_weight": 0}"#,
            "leave it out: words and meaning have equal weight",
        ),
        word(
            honored(
                "ranker",
                r#""none""#,
                "`none` does without the reranking model",
            ),
            &["auto", "none", "default-2024-11-15"],
        ),
        refused(
            "score_threshold",
            "0.5",
            "set `max_num_results`: scores of different searches cannot be compared",
        ),
    ],
};

const FILTERS: Field = refused(
    "filters",
    r#"{"type": "eq", "key": "year", "value": 2024}"#,
    "use a separate collection: documents have no attributes",
);
const EXPIRES: Field = refused(
    "expires_after",
    r#"{"anchor": "last_active_at", "days": 7}"#,
    "leave it out, and delete the store when you no longer need it",
);
const NO_METADATA: Field = refused(
    "metadata",
    r#"{"of": "me"}"#,
    "leave it out: a collection has only a name",
);
const ADD_DOCUMENTS: &str =
    "add files and folders with `tierbar documents add PATH --collection NAME`";

const CONVERSATION: Field = refused(
    "conversation",
    r#""conv_1""#,
    "send the whole conversation in `input`",
);
const PREVIOUS: Field = refused(
    "previous_response_id",
    r#""resp_1""#,
    "send the whole conversation in `input`, with the `output` of the responses before",
);
const IMAGE: Field = harmless(
    "image",
    r#"{"context_compression": "enabled"}"#,
    "the projector determines how images are read",
);
const TRUNCATIONS: &[&str] = &["auto", "disabled"];
const IN_NO_PROMPT: &str = "no prompt has it";
const ONLY_TEXT: &str = "leave it out: answers are text";
const NO_MODERATION: &str = "moderate the text in the client, or with a request of its own";
const CACHED: &str = "prompts are cached by their prefix";
pub(super) const WHO: &str = "it only identifies the user";
