//! OpenAI's fields.

use super::{
    EFFORTS, FREQUENCY_PENALTY, Field, MODEL, PRESENCE_PENALTY, TEMPERATURE, TOP_P, Table, asking,
    harmless, honored, number, refused, refused_unless, word,
};

const SOURCE: &str = "OpenAI, by its Python package 3.57.0";

/// `POST /v1/chat/completions`.
pub const CHAT: Table = Table {
    title: "`/v1/chat/completions`",
    source: SOURCE,
    fields: &[
        honored("messages", ""),
        MODEL,
        refused("audio", ONLY_TEXT),
        FREQUENCY_PENALTY,
        honored("function_call", "as `tool_choice`"),
        honored("functions", "as `tools`"),
        honored("logit_bias", "also as pairs, `[[7, 1]]`"),
        honored("logprobs", ""),
        honored("max_completion_tokens", ""),
        honored("max_tokens", ""),
        harmless("metadata", "nothing is stored"),
        refused_unless("modalities", &["null", r#"["text"]"#, "[]"], ONLY_TEXT),
        refused("moderation", NO_MODERATION),
        honored("n", "up to 16"),
        honored("parallel_tool_calls", ""),
        harmless("prediction", "it only speeds up an answer"),
        PRESENCE_PENALTY,
        harmless("prompt_cache_key", CACHED),
        harmless("prompt_cache_options", CACHED),
        harmless("prompt_cache_retention", CACHED),
        word(
            honored(
                "reasoning_effort",
                "turns thinking on, and is passed to the chat template",
            ),
            EFFORTS,
        ),
        honored("response_format", ""),
        harmless("safety_identifier", WHO),
        honored("seed", ""),
        harmless("service_tier", "there is one"),
        honored("stop", "up to 64 strings"),
        harmless("store", "nothing is stored"),
        honored("stream", ""),
        honored(
            "stream_options",
            "`include_usage`; `include_obfuscation` only pads a stream",
        ),
        TEMPERATURE,
        honored("tool_choice", ""),
        honored(
            "tools",
            "functions; described in the prompt if the chat template does not support tools",
        ),
        number(
            "top_logprobs",
            0.0,
            100.0,
            "only with `logprobs`; otherwise `400`",
        ),
        TOP_P,
        harmless("user", WHO),
        word(
            honored("verbosity", "passed to the chat template"),
            &["low", "medium", "high"],
        ),
        refused_unless(
            "web_search_options",
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
        asking(
            r#"["Hello", [1, 2]]"#,
            honored("prompt", "texts and lists of token ids, up to 64"),
        ),
        honored("best_of", "only as many as `n`; otherwise `400`"),
        honored(
            "echo",
            "with `logprobs`, also the prompt's log probabilities",
        ),
        FREQUENCY_PENALTY,
        honored("logit_bias", "also as pairs, `[[7, 1]]`"),
        asking("1", honored("logprobs", "up to 100")),
        honored("max_tokens", ""),
        honored("n", "up to 16"),
        PRESENCE_PENALTY,
        honored("seed", ""),
        honored("stop", "up to 64 strings"),
        honored("stream", ""),
        honored("stream_options", "`include_usage`"),
        refused(
            "suffix",
            "write the model's own tokens for filling in into `prompt`",
        ),
        TEMPERATURE,
        TOP_P,
        harmless("user", WHO),
    ],
};

/// `POST /v1/embeddings`.
pub const EMBEDDINGS: Table = Table {
    title: "`/v1/embeddings`",
    source: SOURCE,
    fields: &[
        asking(
            r#"["Hello", [1, 2]]"#,
            honored("input", "texts and lists of token ids, up to 2048"),
        ),
        honored("model", "a tier or a model"),
        honored("dimensions", "only the model's own; otherwise `400`"),
        honored("encoding_format", ""),
        harmless("user", WHO),
        honored(
            "truncate_prompt_tokens",
            "vLLM's: longer texts are cut to so many tokens; -1: to the context",
        ),
    ],
};

/// `POST /v1/responses`.
pub const RESPONSES: Table = Table {
    title: "`/v1/responses`",
    source: SOURCE,
    fields: &[
        harmless("access_programs", "it says what OpenAI grants an account"),
        refused(
            "background",
            "leave it out, and read the answer as a stream",
        ),
        harmless(
            "background_options",
            "it is for `background`, which is refused",
        ),
        harmless(
            "context_management",
            "a conversation that is too long is refused, never truncated",
        ),
        CONVERSATION,
        IMAGE,
        honored(
            "include",
            "`message.output_text.logprobs` and `file_search_call.results`; the other published ones are of tools that run elsewhere, and unpublished ones are `400`",
        ),
        honored("input", ""),
        honored("instructions", ""),
        honored("max_output_tokens", ""),
        harmless(
            "max_tool_calls",
            "it limits tools that run on OpenAI's servers",
        ),
        harmless("metadata", "returned with the response"),
        MODEL,
        refused("moderation", NO_MODERATION),
        honored("parallel_tool_calls", ""),
        PREVIOUS,
        refused("prompt", "send its text in `instructions` or `input`"),
        harmless("prompt_cache_key", CACHED),
        harmless("prompt_cache_options", CACHED),
        harmless("prompt_cache_retention", CACHED),
        honored("reasoning", "`effort`"),
        harmless("safety_identifier", WHO),
        harmless("service_tier", "there is one"),
        harmless("store", "nothing is stored, and the response says so"),
        honored("stream", ""),
        asking(
            r#"{"include_obfuscation": true}"#,
            harmless("stream_options", "it only pads a stream"),
        ),
        TEMPERATURE,
        honored("text", "`format` and `verbosity`"),
        honored("tool_choice", ""),
        asking(
            r#"[{"type": "function", "name": "look", "parameters": {}}]"#,
            honored(
                "tools",
                "functions and `file_search`; others, which nothing here runs, are listed in `tierbar.left_out`",
            ),
        ),
        number("top_logprobs", 0.0, 100.0, ""),
        TOP_P,
        word(
            harmless(
                "truncation",
                "a prompt that is too long is refused, never truncated",
            ),
            TRUNCATIONS,
        ),
        harmless("user", WHO),
    ],
};

/// `POST /v1/responses/input_tokens`.
pub const INPUT_TOKENS: Table = Table {
    title: "`/v1/responses/input_tokens`",
    source: SOURCE,
    fields: &[
        CONVERSATION,
        honored("input", ""),
        honored("instructions", ""),
        MODEL,
        harmless("parallel_tool_calls", IN_NO_PROMPT),
        refused("personality", "describe it in `instructions`"),
        PREVIOUS,
        honored("reasoning", "`effort`, which some chat templates use"),
        honored("text", "`verbosity`, which some chat templates use"),
        honored("tool_choice", ""),
        asking(
            r#"[{"type": "function", "name": "look", "parameters": {}}]"#,
            honored("tools", "functions; others are left out"),
        ),
        word(
            harmless("truncation", "prompts are never truncated"),
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
        honored("input", ""),
        honored(
            "instructions",
            "counted, and not summarized: send them again with the next request",
        ),
        honored(
            "model",
            "writes the summary: a tier, a chain, a model or `auto`",
        ),
        PREVIOUS,
        harmless("prompt_cache_key", CACHED),
        harmless("prompt_cache_options", CACHED),
        harmless("prompt_cache_retention", CACHED),
        harmless("service_tier", "there is one"),
    ],
};

/// `POST /v1/vector_stores`.
pub const VECTOR_STORES: Table = Table {
    title: "`/v1/vector_stores`",
    source: SOURCE,
    fields: &[
        harmless(
            "chunking_strategy",
            "it is for `file_ids`, which is refused",
        ),
        harmless("description", "nothing is stored of it"),
        EXPIRES,
        refused("file_ids", ADD_DOCUMENTS),
        NO_METADATA,
        honored("name", "a collection that has documents; otherwise `400`"),
    ],
};

/// `POST /v1/vector_stores/{id}`.
pub const VECTOR_STORE: Table = Table {
    title: "`/v1/vector_stores/{id}`",
    source: SOURCE,
    fields: &[
        EXPIRES,
        NO_METADATA,
        honored("name", "only its own; otherwise `400`"),
    ],
};

/// `POST /v1/vector_stores/{id}/search`.
pub const VECTOR_STORE_SEARCH: Table = Table {
    title: "`/v1/vector_stores/{id}/search`",
    source: SOURCE,
    fields: &[
        FILTERS,
        number("max_num_results", 1.0, 50.0, "10 without it"),
        honored("query", "a text, or up to 8"),
        honored("ranking_options", "see below"),
        refused("rewrite_query", "write the query as it should be searched"),
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
            1.0,
            50.0,
            "6 without it, or fewer if the context is small",
        ),
        honored("ranking_options", "see below"),
        honored("type", ""),
        honored("vector_store_ids", "up to 8"),
    ],
};

/// How passages are ranked, in both.
pub const RANKING_OPTIONS: Table = Table {
    title: "`ranking_options`, in both",
    source: SOURCE,
    fields: &[
        refused(
            "hybrid_search",
            "leave it out: words and meaning have equal weight",
        ),
        word(
            honored("ranker", "`none` does without the reranking model"),
            &["auto", "none", "default-2024-11-15"],
        ),
        refused(
            "score_threshold",
            "set `max_num_results`: scores of different searches cannot be compared",
        ),
    ],
};

const FILTERS: Field = refused(
    "filters",
    "use a separate collection: documents have no attributes",
);
const EXPIRES: Field = refused(
    "expires_after",
    "leave it out, and delete the store when you no longer need it",
);
const NO_METADATA: Field = refused("metadata", "leave it out: a collection has only a name");
const ADD_DOCUMENTS: &str =
    "add files and folders with `tierbar documents add PATH --collection NAME`";

const CONVERSATION: Field = refused("conversation", "send the whole conversation in `input`");
const PREVIOUS: Field = refused(
    "previous_response_id",
    "send the whole conversation in `input`, with the `output` of the responses before",
);
const IMAGE: Field = harmless("image", "the projector determines how images are read");
const TRUNCATIONS: &[&str] = &["auto", "disabled"];
const IN_NO_PROMPT: &str = "no prompt has it";
const ONLY_TEXT: &str = "leave it out: answers are text";
const NO_MODERATION: &str = "moderate the text in the client, or with a request of its own";
const CACHED: &str = "prompts are cached by their prefix";
pub(super) const WHO: &str = "it only identifies the user";
