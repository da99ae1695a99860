//! The worker beside what upstream's llama-server answered on the same files, with the same templates.

use crate::support::{GEMMA, SMOLLM, Worker, model, oracle, recorded, template};
use serde_json::{Value, json};

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

/// How many bytes are those that llama-server wrote, up to a place where both ways were nearly as good: it was recorded on
/// another CPU, whose kernels round otherwise.
fn same_bytes<'a>(choice: &'a Value, expected: &'a str) -> Result<usize, String> {
    const NEAR: f64 = 0.5;
    // Of a character that the limit cuts, llama-server leaves a mark.
    let whole = |text: &'a str| text.trim_end_matches('\u{fffd}');
    let (text, expected) = (whole(choice["text"].as_str().unwrap()), whole(expected));
    if text == expected {
        return Ok(expected.len());
    }
    let logprobs = &choice["logprobs"];
    let mut written = String::new();
    for (place, token) in logprobs["tokens"].as_array().unwrap().iter().enumerate() {
        let next = format!("{written}{}", token.as_str().unwrap());
        if expected.starts_with(&next) {
            written = next;
            continue;
        }
        let rest = &expected[written.len()..];
        let top = logprobs["top_logprobs"][place].as_object().unwrap();
        let chosen = logprobs["token_logprobs"][place].as_f64().unwrap();
        let near = |(other, value): (&String, &Value)| {
            !other.is_empty() && rest.starts_with(other) && chosen - value.as_f64().unwrap() < NEAR
        };
        if top.iter().any(near) {
            return Ok(written.len());
        }
        return Err(format!(
            "{text:?} and not {expected:?}, at {place} of {top:?}"
        ));
    }
    Err(format!("{text:?} and not {expected:?}"))
}

/// Of all that llama-server wrote, in tenths.
const LEAST_TENTHS: usize = 8;

async fn greedy_text_equals_llama_servers(name: &str) {
    let worker = Worker::start(&model(name), &["--context", "4096"]).await;
    let recorded = recorded(name);
    let completions = recorded["completions"].as_object().unwrap();
    assert!(completions.len() >= 20);
    let (mut longest, mut same, mut all) = (0, 0, 0);
    for (number, (prompt, expected)) in completions.iter().enumerate() {
        let text = expected["text"].as_str().unwrap();
        let mut request = json!({"prompt": prompt, "max_tokens": expected["tokens"], "temperature": 0, "logprobs": 5});
        // The second finds all of its prompt in the cache; some say as much of that as all.
        for cached in [false, true] {
            if cached && number % 4 > 0 {
                continue;
            }
            request["cache_prompt"] = json!(cached);
            let (status, answer) = worker.post("/v1/completions", &request).await;
            assert_eq!(status, 200, "{answer}");
            same += same_bytes(&answer["choices"][0], text)
                .unwrap_or_else(|why| panic!("{name}: {request}: {why}"));
            all += text.len();
            longest = longest.max(answer["usage"]["prompt_tokens"].as_u64().unwrap());
        }
    }
    assert!(longest > 1024, "several batches were read: {longest}");
    // A tie ends one comparison. Ties in all of them would be another model.
    assert!(
        same * 10 >= all * LEAST_TENTHS,
        "{name}: {same} of {all} bytes"
    );
}

#[tokio::test]
async fn smollm2_greedy_text_equals_llama_servers() {
    greedy_text_equals_llama_servers(SMOLLM).await;
}

#[tokio::test]
async fn gemma_3_greedy_text_equals_llama_servers() {
    greedy_text_equals_llama_servers(GEMMA).await;
}
