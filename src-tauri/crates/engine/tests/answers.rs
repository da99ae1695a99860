//! What the worker answers, beside what upstream's llama-server answered on the same files.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{GEMMA, SMOLLM, Worker, model};

fn recorded(model: &str) -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/fixtures/llama-server.json"
    );
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[model].clone()
}

async fn agrees_with_llama_server(name: &str) {
    let worker = Worker::start(&model(name), &["--context", "2048"]).await;
    let recorded = recorded(name);
    let templates = recorded["templates"].as_object().unwrap();
    assert!(templates.len() >= 5);
    for (case, expected) in templates {
        let (_, rendered) = worker
            .post(
                "/apply-template",
                &json!({"messages": expected["messages"]}),
            )
            .await;
        assert_eq!(rendered["prompt"], expected["prompt"], "{name}: {case}");
        let (_, tokenized) = worker
            .post(
                "/tokenize",
                &json!({"content": rendered["prompt"], "add_special": true}),
            )
            .await;
        assert_eq!(tokenized["tokens"], expected["tokens"], "{name}: {case}");
    }
    let completions = recorded["completions"].as_object().unwrap();
    assert!(completions.len() >= 2);
    for (prompt, expected) in completions {
        let request = json!({"prompt": prompt, "max_tokens": expected["tokens"], "temperature": 0,
                             "cache_prompt": false});
        let (status, first) = worker.post("/v1/completions", &request).await;
        assert_eq!(status, 200, "{first}");
        assert_eq!(
            first["choices"][0]["text"], expected["text"],
            "{name}: {prompt}"
        );
        let (_, second) = worker.post("/v1/completions", &request).await;
        assert_eq!(second["choices"][0]["text"], first["choices"][0]["text"]);
    }
}

#[tokio::test]
async fn smollm2_prompts_and_greedy_text_equal_llama_servers() {
    agrees_with_llama_server(SMOLLM).await;
}

#[tokio::test]
async fn gemma_3_prompts_and_greedy_text_equal_llama_servers() {
    agrees_with_llama_server(GEMMA).await;
}

#[tokio::test]
async fn a_stream_says_the_same_as_the_whole_answer_and_counts_it() {
    let worker = Worker::smollm().await;
    let mut request = json!({"messages": [{"role": "user", "content": "Count to five."}], "max_tokens": 24, "seed": 7,
                             "temperature": 0.7, "cache_prompt": false});
    let (_, whole) = worker.post("/v1/chat/completions", &request).await;
    request["stream"] = json!(true);
    request["stream_options"] = json!({"include_usage": true});
    let events = worker.stream("/v1/chat/completions", &request).await;
    assert_eq!(events.last().unwrap(), "[DONE]");
    let chunks: Vec<Value> = events[..events.len() - 1]
        .iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(whole["choices"][0]["message"]["content"], text);
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let (last, usage) = (&chunks[chunks.len() - 2], &chunks[chunks.len() - 1]);
    assert_eq!(
        last["choices"][0]["finish_reason"],
        whole["choices"][0]["finish_reason"]
    );
    assert_eq!(usage["usage"], whole["usage"]);
    let timings = &last["timings"];
    assert_eq!(timings["predicted_n"], whole["usage"]["completion_tokens"]);
    assert_eq!(timings["prompt_n"], whole["usage"]["prompt_tokens"]);
    for figure in [
        "prompt_ms",
        "prompt_per_second",
        "predicted_ms",
        "predicted_per_second",
    ] {
        assert!(timings[figure].as_f64().unwrap() > 0.0, "{timings}");
    }
}

#[tokio::test]
async fn a_seed_fixes_the_answer_and_another_seed_changes_it() {
    let worker = Worker::smollm().await;
    let ask = async |seed: u32| {
        let request = json!({"prompt": "Once upon a time", "max_tokens": 24, "seed": seed, "temperature": 1.2,
                             "cache_prompt": false});
        worker.post("/v1/completions", &request).await.1["choices"][0]["text"].clone()
    };
    let first = ask(1).await;
    assert_eq!(ask(1).await, first);
    assert_ne!(ask(2).await, first);
}

#[tokio::test]
async fn a_stop_string_ends_the_answer_and_is_not_in_it() {
    let worker = Worker::smollm().await;
    let request = json!({"prompt": "1, 2, 3, 4, 5, 6, 7, 8, 9,", "max_tokens": 40, "temperature": 0, "stop": ["12"]});
    let (_, answer) = worker.post("/v1/completions", &request).await;
    assert_eq!(answer["choices"][0]["text"], " 10, 11, ");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn ignore_eos_goes_on_to_the_limit() {
    let worker = Worker::smollm().await;
    let request = json!({"messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 120, "temperature": 0,
                         "ignore_eos": true});
    let (_, answer) = worker.post("/v1/chat/completions", &request).await;
    assert_eq!(answer["timings"]["predicted_n"], 120);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn the_shared_beginning_of_a_prompt_is_not_evaluated_again() {
    let worker = Worker::smollm().await;
    let ask = async |prompt: &str, cache: bool| {
        let request =
            json!({"prompt": prompt, "max_tokens": 1, "temperature": 0, "cache_prompt": cache});
        worker.post("/v1/completions", &request).await.1["timings"].clone()
    };
    let cold = ask("one two three four five six", true).await;
    assert_eq!(cold["cache_n"], 0);
    let warm = ask("one two three four five seven", true).await;
    assert_eq!(
        warm["cache_n"].as_u64().unwrap() + 1,
        cold["prompt_n"].as_u64().unwrap()
    );
    assert_eq!(warm["prompt_n"], 1);
    let uncached = ask("one two three four five seven", false).await;
    assert_eq!(uncached["cache_n"], 0);
}

/// Gemma's sliding layers keep 512 tokens and a micro-batch. A prompt that goes on from further back is evaluated anew.
#[tokio::test]
async fn what_a_sliding_window_has_forgotten_is_not_taken_for_kept() {
    let words = |from: u32, to: u32| {
        let words = (from..to).map(|word| format!("word{word} "));
        words.collect::<String>()
    };
    let (begin, long) = (words(0, 100), words(0, 600));
    let near = format!("{long} and then the end of the story was");
    let far = format!("{begin} and then the end of the story was");
    let ask = async |worker: &Worker, prompt: &str| {
        let request = json!({"prompt": prompt, "max_tokens": 12, "temperature": 0});
        let answer = worker.post("/v1/completions", &request).await.1;
        let kept = answer["timings"]["cache_n"].as_u64().unwrap();
        (kept, answer["choices"][0]["text"].clone())
    };
    let worker = Worker::start(&model(GEMMA), &["--context", "4096"]).await;
    assert_eq!(ask(&worker, &long).await.0, 0);
    let (kept, _) = ask(&worker, &near).await;
    assert!(kept > 1024, "the window was kept: {kept}");
    let (kept, after) = ask(&worker, &far).await;
    assert_eq!(kept, 0);
    let fresh = Worker::start(&model(GEMMA), &["--context", "4096"]).await;
    assert_eq!(ask(&fresh, &far).await.1, after);
}

#[tokio::test]
async fn a_json_schema_is_followed() {
    let worker = Worker::smollm().await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}},
                        "required": ["city"], "additionalProperties": false});
    let request = json!({"messages": [{"role": "user", "content": "Name a city."}], "max_tokens": 100, "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}});
    let (_, answer) = worker.post("/v1/chat/completions", &request).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let object: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(
        object["city"].is_string() && object.as_object().unwrap().len() == 1,
        "{text}"
    );
}
