//! What vLLM, SGLang and llama-server add to OpenAI's fields.

use super::{
    EFFORTS, MIN_P, TYPICAL_P, Table, WHOLE_CONTEXT, asking, harmless, honored, number, refused,
    refused_unless, word,
};

const SAMPLING: &str = "leave it out: use the documented sampling fields";
const ADD_STOP: &str = "add the `stop_reason` to the text";
const MERGE: &str = "merge the adapter into a model, and name that";
const SOURCE: &str = "vLLM's protocol (2025-08), llama-server's parameters (2026-02) and SGLang's sampling parameters";

/// Of chats and completions.
pub const GENERATION_ADDITIONS: Table = Table {
    title: "Additions to both",
    source: SOURCE,
    fields: &[
        // Sampling.
        honored("top_k", ""),
        MIN_P,
        TYPICAL_P,
        honored("top_n_sigma", ""),
        number("xtc_probability", 0.0, 1.0, ""),
        number("xtc_threshold", 0.0, 1.0, ""),
        honored("dynatemp_range", ""),
        honored("dynatemp_exponent", ""),
        honored("mirostat", ""),
        honored("mirostat_tau", ""),
        honored("mirostat_eta", ""),
        honored("dry_multiplier", ""),
        honored("dry_base", ""),
        honored("dry_allowed_length", ""),
        honored("dry_penalty_last_n", WHOLE_CONTEXT),
        honored("dry_sequence_breakers", ""),
        honored("repeat_penalty", ""),
        honored("repeat_last_n", WHOLE_CONTEXT),
        honored(
            "repetition_penalty",
            "a `repeat_penalty` for the whole text",
        ),
        refused("adaptive_target", SAMPLING),
        refused(
            "allowed_token_ids",
            "use `logit_bias`, `grammar` or `guided_choice`",
        ),
        refused("bad_words", "use `logit_bias`"),
        refused_unless(
            "length_penalty",
            &["null", "1"],
            "leave it out: there is no beam search",
        ),
        refused("logits_processors", SAMPLING),
        refused("custom_logit_processor", SAMPLING),
        refused("min_keep", SAMPLING),
        refused("samplers", SAMPLING),
        refused("use_beam_search", SAMPLING),
        // The form of the answer.
        honored("grammar", "GBNF"),
        honored("json_schema", ""),
        honored("guided_json", ""),
        honored(
            "guided_regex",
            "matched as a whole; `\\w`, `\\d` and `\\s` mean ASCII; without look-around, back-references, word boundaries and classes of more than 300 ranges, which are `400`",
        ),
        honored("guided_choice", ""),
        honored("guided_grammar", "GBNF"),
        honored(
            "structured_outputs",
            "`json`, `regex`, `choice`, `grammar` and `json_object`; others are `400`",
        ),
        refused("guided_whitespace_pattern", "use `grammar`"),
        refused("structural_tag", "use `grammar`"),
        // SGLang's.
        refused("regex", "use `guided_regex`"),
        refused("ebnf", "use `grammar`, which is GBNF"),
        refused(
            "grammar_lazy",
            "leave it out: a `grammar` holds from the first token on",
        ),
        refused(
            "grammar_triggers",
            "leave it out: a `grammar` holds from the first token on",
        ),
        refused(
            "preserved_tokens",
            "leave it out: the chat template says which are shown",
        ),
        harmless("guided_decoding_backend", "there is one"),
        // Where it ends.
        honored("n_predict", "as `max_tokens`"),
        honored(
            "min_tokens",
            "stop strings count behind them; with `tools`, a grammar or a schema `400`",
        ),
        honored("stop_token_ids", ""),
        honored("ignore_eos", ""),
        refused("n_indent", "use `stop`"),
        refused("stop_regex", "use `stop`"),
        refused(
            "t_max_predict_ms",
            "use `max_tokens`, or close the connection",
        ),
        refused("include_stop_str_in_output", ADD_STOP),
        refused("no_stop_trim", ADD_STOP),
        // What it shows.
        honored("n_probs", "as `logprobs`"),
        refused(
            "post_sampling_probs",
            "leave it out: probabilities are those before sampling",
        ),
        refused(
            "return_tokens_as_token_ids",
            "use `logprobs`, which have the bytes of each token",
        ),
        refused(
            "return_token_ids",
            "use `logprobs`, which have the text of each token",
        ),
        refused("return_tokens", "use `logprobs`"),
        refused(
            "return_progress",
            "leave it out: a waiting stream sends comment lines",
        ),
        refused(
            "response_fields",
            "leave it out, and read the fields of the whole answer",
        ),
        refused_unless(
            "skip_special_tokens",
            &["null", "true"],
            "leave it out: special tokens are not shown",
        ),
        refused_unless(
            "detokenize",
            &["null", "true"],
            "leave it out: answers are text",
        ),
        harmless(
            "spaces_between_special_tokens",
            "special tokens are not shown",
        ),
        harmless("timings_per_token", "the last chunk has `timings`"),
        harmless("verbose", "it is for debugging a server"),
        // The prompt, and how it is computed.
        honored("cache_prompt", ""),
        refused(
            "truncate_prompt_tokens",
            "shorten the prompt: it is never truncated",
        ),
        refused("n_discard", "shorten the prompt: it is never truncated"),
        refused("lora", MERGE),
        refused("lora_path", MERGE),
        refused("kv_transfer_params", "leave it out: there is one server"),
        refused("vllm_xargs", "leave it out: it is for extensions of vLLM"),
        harmless("n_keep", "prompts are never truncated"),
        harmless("n_cache_reuse", "it only speeds up prefill"),
        harmless("id_slot", "it only says where a prompt is cached"),
        harmless(
            "backend_sampling",
            "it only says where sampling is computed",
        ),
        harmless("speculative.n_max", "it only speeds up an answer"),
        harmless("speculative.n_min", "it only speeds up an answer"),
        harmless("speculative.p_min", "it only speeds up an answer"),
        harmless("priority", "requests are answered in order"),
        harmless("request_id", "the header `x-request-id` names a request"),
        harmless("cache_salt", "cached results equal computed ones"),
    ],
};

/// Of chats.
pub const CHAT_ADDITIONS: Table = Table {
    title: "Additions to chats",
    source: SOURCE,
    fields: &[
        honored("keep_alive", "Ollama's"),
        word(honored("think", "or a flag, as Ollama's"), EFFORTS),
        honored(
            "reasoning",
            "OpenRouter's: `effort`, `enabled` and `max_tokens`; `exclude` is `400`",
        ),
        honored("thinking_budget_tokens", ""),
        honored("chat_template_kwargs", ""),
        honored("continue_final_message", ""),
        honored(
            "add_generation_prompt",
            "only with `continue_final_message`; otherwise `400`",
        ),
        refused("echo", "send the formatted prompt to /v1/completions"),
        refused_unless(
            "prompt_logprobs",
            &["null"],
            "send the formatted prompt to /v1/completions",
        ),
        refused(
            "add_special_tokens",
            "leave it out: the chat template has them",
        ),
        refused("documents", "send them in a message"),
        refused(
            "chat_template",
            "send the formatted prompt to /v1/completions",
        ),
        refused(
            "mm_processor_kwargs",
            "leave it out: the projector determines how media are read",
        ),
        refused_unless(
            "include_reasoning",
            &["null", "true"],
            "set `think` to false, or leave `reasoning_content` unread",
        ),
        refused_unless(
            "separate_reasoning",
            &["null", "true"],
            "leave it out: thoughts arrive as `reasoning_content`",
        ),
        refused_unless(
            "reasoning_format",
            &["null", r#""auto""#, r#""deepseek""#],
            "leave it out: thoughts arrive as `reasoning_content`",
        ),
        refused("thinking_forced_open", "use `think`"),
        refused_unless(
            "parse_tool_calls",
            &["null", "true"],
            "leave it out, and set `tool_choice` to none for an answer without calls",
        ),
    ],
};

/// `reasoning` of a chat.
pub const REASONING: Table = Table {
    title: "`reasoning` of `/v1/chat/completions`",
    source: "OpenRouter's API reference (2026-11)",
    fields: &[
        word(honored("effort", ""), EFFORTS),
        honored("enabled", ""),
        honored("max_tokens", ""),
        refused(
            "exclude",
            "leave it out, and leave `reasoning_content` unread",
        ),
    ],
};

/// Of completions.
pub const COMPLETION_ADDITIONS: Table = Table {
    title: "Additions to completions",
    source: SOURCE,
    fields: &[
        honored("keep_alive", "Ollama's"),
        honored(
            "prompt_logprobs",
            "up to 100; not of streams, for which `400`",
        ),
        honored("response_format", ""),
        asking(
            "false",
            refused_unless(
                "add_special_tokens",
                &["null", "true"],
                "send the prompt as token ids",
            ),
        ),
        refused("prompt_embeds", "send the prompt as a text or as token ids"),
    ],
};

const UNCUT: &str = "a document that is too long is refused, never truncated";

/// `POST /v1/rerank`.
pub const RERANK: Table = Table {
    title: "`/v1/rerank`",
    source: "Jina's and Cohere's API references (2026-11)",
    fields: &[
        honored("model", "a tier, a model or `auto`"),
        honored("query", ""),
        asking(
            r#"["Hello", {"text": "you"}]"#,
            honored("documents", "texts, and objects with a `text`; up to 2048"),
        ),
        honored("top_n", ""),
        honored("return_documents", ""),
        honored("keep_alive", "Ollama's"),
        refused(
            "rank_fields",
            "send the text to rank as the `text` of each document",
        ),
        harmless("max_tokens_per_doc", UNCUT),
        harmless("max_chunks_per_doc", UNCUT),
        harmless("truncation", UNCUT),
        harmless("priority", "requests are answered in order"),
    ],
};
