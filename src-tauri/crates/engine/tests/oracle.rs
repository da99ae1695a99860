//! The worker beside what upstream's llama-server answered on the same files, with the same templates.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::{GEMMA, SMOLLM, Worker, model, oracle, recorded, template};

async fn rendered(worker: &Worker, request: &Value) -> Value {
    let (status, rendered) = worker.post("/apply-template", request).await;
    assert_eq!(status, 200, "{rendered}");
    rendered["prompt"].clone()
}

async fn prompts_equal_llama_servers(name: &str) {
    let worker = Worker::start(&model(name), &["--context", "1024"]).await;
    let (oracle, recorded) = (oracle(), recorded(name));
    let templates = recorded["templates"].as_object().unwrap();
    assert!(templates.len() >= 5);
    for (case, expected) in templates {
        let prompt = rendered(&worker, &oracle["conversations"][case]).await;
        assert_eq!(prompt, expected["prompt"], "{name}: {case}");
        let request = json!({"content": prompt, "add_special": true});
        let (_, tokenized) = worker.post("/tokenize", &request).await;
        assert_eq!(tokenized["tokens"], expected["tokens"], "{name}: {case}");
    }
}

#[tokio::test]
async fn smollm2_prompts_and_their_tokens_equal_llama_servers() {
    prompts_equal_llama_servers(SMOLLM).await;
}

#[tokio::test]
async fn gemma_3_prompts_and_their_tokens_equal_llama_servers() {
    prompts_equal_llama_servers(GEMMA).await;
}

/// On the weights of another model: a template's text is its own.
async fn template_renders_as_llama_servers(name: &str) {
    let path = template(name);
    let extra = ["--context", "512", "--chat-template"];
    let extra = [&extra[..], &[path.to_str().unwrap()]].concat();
    let worker = Worker::start(&model(SMOLLM), &extra).await;
    let oracle = oracle();
    let conversations = oracle["conversations"].as_object().unwrap();
    assert!(conversations.len() >= 15);
    for (case, request) in conversations {
        assert_eq!(
            rendered(&worker, request).await,
            oracle["templates"][name][case],
            "{name}: {case}"
        );
    }
}

#[tokio::test]
async fn gemma_4_template_renders_as_llama_servers() {
    template_renders_as_llama_servers("google-gemma-4-31B-it.jinja").await;
}

#[tokio::test]
async fn gemma_4_interleaved_template_renders_as_llama_servers() {
    template_renders_as_llama_servers("google-gemma-4-31B-it-interleaved.jinja").await;
}

#[tokio::test]
async fn qwen3_template_renders_as_llama_servers() {
    template_renders_as_llama_servers("Qwen-Qwen3-0.6B.jinja").await;
}

#[tokio::test]
async fn qwen3_5_template_renders_as_llama_servers() {
    template_renders_as_llama_servers("Qwen3.5-4B.jinja").await;
}

async fn greedy_text_equals_llama_servers(name: &str) {
    let worker = Worker::start(&model(name), &["--context", "4096"]).await;
    let recorded = recorded(name);
    let completions = recorded["completions"].as_object().unwrap();
    assert!(completions.len() >= 20);
    let mut longest = 0;
    for (prompt, expected) in completions {
        let mut request =
            json!({"prompt": prompt, "max_tokens": expected["tokens"], "temperature": 0});
        // The second finds all of its prompt in the cache.
        for cached in [false, true] {
            request["cache_prompt"] = json!(cached);
            let (status, answer) = worker.post("/v1/completions", &request).await;
            assert_eq!(status, 200, "{answer}");
            let text = &answer["choices"][0]["text"];
            assert_eq!(text, &expected["text"], "{name}: {request}");
            longest = longest.max(answer["usage"]["prompt_tokens"].as_u64().unwrap());
        }
    }
    assert!(longest > 1024, "several batches were read: {longest}");
}

#[tokio::test]
async fn smollm2_greedy_text_equals_llama_servers() {
    greedy_text_equals_llama_servers(SMOLLM).await;
}

#[tokio::test]
async fn gemma_3_greedy_text_equals_llama_servers() {
    greedy_text_equals_llama_servers(GEMMA).await;
}
