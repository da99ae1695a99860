//! What vLLM, SGLang and llama-server add to OpenAI's fields.

use super::{
    EFFORTS, MIN_P, TYPICAL_P, Table, WHOLE_CONTEXT, harmless, honored, number, refused,
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
        honored("top_k", "3", ""),
        MIN_P,
        TYPICAL_P,
        honored("top_n_sigma", "1", ""),
        number("xtc_probability", "0.5", 0.0, 1.0, ""),
        number("xtc_threshold", "0.2", 0.0, 1.0, ""),
        honored("dynatemp_range", "0.5", ""),
        honored("dynatemp_exponent", "2", ""),
        honored("mirostat", "2", ""),
        honored("mirostat_tau", "4", ""),
        honored("mirostat_eta", "0.2", ""),
        honored("dry_multiplier", "0.8", ""),
        honored("dry_base", "1.5", ""),
        honored("dry_allowed_length", "3", ""),
        honored("dry_penalty_last_n", "64", WHOLE_CONTEXT),
        honored("dry_sequence_breakers", r#"["\n"]"#, ""),
        honored("repeat_penalty", "1.1", ""),
        honored("repeat_last_n", "32", WHOLE_CONTEXT),
        honored(
            "repetition_penalty",
            "1.1",
            "a `repeat_penalty` for the whole text",
        ),
        refused("adaptive_target", "0.5", SAMPLING),
        refused(
            "allowed_token_ids",
            "[7]",
            "use `logit_bias`, `grammar` or `guided_choice`",
        ),
        refused("bad_words", r#"["no"]"#, "use `logit_bias`"),
        refused_unless(
            "length_penalty",
            "0.5",
            &["null", "1"],
            "leave it out: there is no beam search",
        ),
        refused("logits_processors", r#"["a"]"#, SAMPLING),
        refused("custom_logit_processor", r#""a""#, SAMPLING),
        refused("min_keep", "2", SAMPLING),
        refused("samplers", r#"["top_k"]"#, SAMPLING),
        refused("use_beam_search", "true", SAMPLING),
        // The form of the answer.
        honored("grammar", r#""root ::= \"a\"""#, "GBNF"),
        honored("json_schema", r#"{"type": "object"}"#, ""),
        honored("guided_json", r#"{"type": "object"}"#, ""),
        honored(
            "guided_regex",
            r#""[0-9]+""#,
            "matched as a whole; `\\w`, `\\d` and `\\s` mean ASCII; without look-around, back-references, word boundaries and classes of more than 300 ranges, which are `400`",
        ),
        honored("guided_choice", r#"["a", "b"]"#, ""),
        honored("guided_grammar", r#""root ::= \"a\"""#, "GBNF"),
        honored(
            "structured_outputs",
            r#"{"choice": ["a"]}"#,
            "`json`, `regex`, `choice`, `grammar` and `json_object`; others are `400`",
        ),
        refused("guided_whitespace_pattern", r#"" ?""#, "use `grammar`"),
        refused("structural_tag", r#""{}""#, "use `grammar`"),
        // SGLang's.
        refused("regex", r#""[0-9]+""#, "use `guided_regex`"),
        refused(
            "ebnf",
            r#""root ::= \"a\"""#,
            "use `grammar`, which is GBNF",
        ),
        refused(
            "grammar_lazy",
            "true",
            "leave it out: a `grammar` holds from the first token on",
        ),
        refused(
            "grammar_triggers",
            "[{}]",
            "leave it out: a `grammar` holds from the first token on",
        ),
        refused(
            "preserved_tokens",
            r#"["<a>"]"#,
            "leave it out: the chat template says which are shown",
        ),
        harmless("guided_decoding_backend", r#""xgrammar""#, "there is one"),
        // Where it ends.
        honored("n_predict", "9", "as `max_tokens`"),
        honored(
            "min_tokens",
            "2",
            "stop strings count behind them; with `tools`, a grammar or a schema `400`",
        ),
        honored("stop_token_ids", "[7]", ""),
        honored("ignore_eos", "true", ""),
        refused("n_indent", "4", "use `stop`"),
        refused("stop_regex", r#""[.]""#, "use `stop`"),
        refused(
            "t_max_predict_ms",
            "100",
            "use `max_tokens`, or close the connection",
        ),
        refused("include_stop_str_in_output", "true", ADD_STOP),
        refused("no_stop_trim", "true", ADD_STOP),
        // What it shows.
        honored("n_probs", "2", "as `logprobs`"),
        refused(
            "post_sampling_probs",
            "true",
            "leave it out: probabilities are those before sampling",
        ),
        refused(
            "return_tokens_as_token_ids",
            "true",
            "use `logprobs`, which have the bytes of each token",
        ),
        refused(
            "return_token_ids",
            "true",
            "use `logprobs`, which have the text of each token",
        ),
        refused("return_tokens", "true", "use `logprobs`"),
        refused(
            "return_progress",
            "true",
            "leave it out: a waiting stream sends comment lines",
        ),
        refused(
            "response_fields",
            r#"["content"]"#,
            "leave it out, and read the fields of the whole answer",
        ),
        refused_unless(
            "skip_special_tokens",
            "false",
            &["null", "true"],
            "leave it out: special tokens are not shown",
        ),
        refused_unless(
            "detokenize",
            "false",
            &["null", "true"],
            "leave it out: answers are text",
        ),
        harmless(
            "spaces_between_special_tokens",
            "false",
            "special tokens are not shown",
        ),
        harmless("timings_per_token", "true", "the last chunk has `timings`"),
        harmless("verbose", "true", "it is for debugging a server"),
        // The prompt, and how it is computed.
        honored("cache_prompt", "false", ""),
        refused(
            "truncate_prompt_tokens",
            "9",
            "shorten the prompt: it is never truncated",
        ),
        refused(
            "n_discard",
            "9",
            "shorten the prompt: it is never truncated",
        ),
        refused("lora", r#"[{"id": 0, "scale": 1}]"#, MERGE),
        refused("lora_path", r#""a""#, MERGE),
        refused(
            "kv_transfer_params",
            r#"{"a": 1}"#,
            "leave it out: there is one server",
        ),
        refused(
            "vllm_xargs",
            r#"{"a": 1}"#,
            "leave it out: it is for extensions of vLLM",
        ),
        harmless("n_keep", "9", "prompts are never truncated"),
        harmless("n_cache_reuse", "9", "it only speeds up prefill"),
        harmless("id_slot", "0", "it only says where a prompt is cached"),
        harmless(
            "backend_sampling",
            "true",
            "it only says where sampling is computed",
        ),
        harmless("speculative.n_max", "9", "it only speeds up an answer"),
        harmless("speculative.n_min", "1", "it only speeds up an answer"),
        harmless("speculative.p_min", "0.5", "it only speeds up an answer"),
        harmless("priority", "1", "requests are answered in order"),
        harmless(
            "request_id",
            r#""a""#,
            "the header `x-request-id` names a request",
        ),
        harmless("cache_salt", r#""a""#, "cached results equal computed ones"),
    ],
};

/// Of chats.
pub const CHAT_ADDITIONS: Table = Table {
    title: "Additions to chats",
    source: SOURCE,
    fields: &[
        honored("keep_alive", r#""5m""#, "Ollama's"),
        word(honored("think", "true", "or a flag, as Ollama's"), EFFORTS),
        honored(
            "reasoning",
            r#"{"effort": "high"}"#,
            "OpenRouter's: `effort`, `enabled` and `max_tokens`; `exclude` is `400`",
        ),
        honored("thinking_budget_tokens", "9", ""),
        honored("chat_template_kwargs", r#"{"enable_thinking": true}"#, ""),
        honored("continue_final_message", "true", ""),
        honored(
            "add_generation_prompt",
            "false",
            "only with `continue_final_message`; otherwise `400`",
        ),
        refused(
            "echo",
            "true",
            "send the formatted prompt to /v1/completions",
        ),
        refused_unless(
            "prompt_logprobs",
            "1",
            &["null"],
            "send the formatted prompt to /v1/completions",
        ),
        refused(
            "add_special_tokens",
            "true",
            "leave it out: the chat template has them",
        ),
        refused("documents", r#"[{"text": "a"}]"#, "send them in a message"),
        refused(
            "chat_template",
            r#""{{ messages }}""#,
            "send the formatted prompt to /v1/completions",
        ),
        refused(
            "mm_processor_kwargs",
            r#"{"a": 1}"#,
            "leave it out: the projector determines how media are read",
        ),
        refused_unless(
            "include_reasoning",
            "false",
            &["null", "true"],
            "set `think` to false, or leave `reasoning_content` unread",
        ),
        refused_unless(
            "separate_reasoning",
            "false",
            &["null", "true"],
            "leave it out: thoughts arrive as `reasoning_content`",
        ),
        refused_unless(
            "reasoning_format",
            r#""none""#,
            &["null", r#""auto""#, r#""deepseek""#],
            "leave it out: thoughts arrive as `reasoning_content`",
        ),
        refused("thinking_forced_open", "true", "use `think`"),
        refused_unless(
            "parse_tool_calls",
            "false",
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
        word(honored("effort", r#""high""#, ""), EFFORTS),
        honored("enabled", "true", ""),
        honored("max_tokens", "9", ""),
        refused(
            "exclude",
            "true",
            "leave it out, and leave `reasoning_content` unread",
        ),
    ],
};

/// Of completions.
pub const COMPLETION_ADDITIONS: Table = Table {
    title: "Additions to completions",
    source: SOURCE,
    fields: &[
        honored("keep_alive", r#""5m""#, "Ollama's"),
        honored(
            "prompt_logprobs",
            "1",
            "up to 100; not of streams, for which `400`",
        ),
        honored("response_format", r#"{"type": "json_object"}"#, ""),
        refused_unless(
            "add_special_tokens",
            "false",
            &["null", "true"],
            "send the prompt as token ids",
        ),
        refused(
            "prompt_embeds",
            r#""AAAA""#,
            "send the prompt as a text or as token ids",
        ),
    ],
};

const UNCUT: &str = "a document that is too long is refused, never truncated";

/// `POST /v1/rerank`.
pub const RERANK: Table = Table {
    title: "`/v1/rerank`",
    source: "Jina's and Cohere's API references (2026-11)",
    fields: &[
        honored("model", r#""reranker""#, "a tier, a model or `auto`"),
        honored("query", r#""Hello""#, ""),
        honored(
            "documents",
            r#"["Hello", {"text": "you"}]"#,
            "texts, and objects with a `text`; up to 2048",
        ),
        honored("top_n", "3", ""),
        honored("return_documents", "true", ""),
        honored("keep_alive", r#""5m""#, "Ollama's"),
        refused(
            "rank_fields",
            r#"["title"]"#,
            "send the text to rank as the `text` of each document",
        ),
        harmless("max_tokens_per_doc", "512", UNCUT),
        harmless("max_chunks_per_doc", "2", UNCUT),
        harmless("truncation", "true", UNCUT),
        harmless("priority", "1", "requests are answered in order"),
    ],
};
