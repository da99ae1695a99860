//! The log probabilities of a prompt's tokens, as evaluation harnesses ask for them: `echo` with `logprobs`, and vLLM's
//! `prompt_logprobs`.

use crate::support::{GEMMA, Worker, model, numbers};
use serde_json::{Value, json};

/// Batches of other sizes round otherwise, and the weights have 4 bits. A neighbor's probability is further away.
const NEAR: f64 = 0.3;

async fn tokens(worker: &Worker, text: &str) -> Vec<i64> {
    let request = json!({"content": text, "add_special": true});
    let (_, body) = worker.post("/tokenize", &request).await;
    serde_json::from_value(body["tokens"].clone()).unwrap()
}

/// The log probability of each token from this one on, computed one by one: each is forced upon the model after those before it.
async fn one_by_one(worker: &Worker, tokens: &[i64], from: usize) -> Vec<f64> {
    let mut found = Vec::new();
    for at in from..tokens.len() {
        let request = json!({"prompt": tokens[..at], "max_tokens": 1, "temperature": 0, "logprobs": 0,
                             "logit_bias": [[tokens[at], 1000]], "ignore_eos": true});
        let (_, answer) = worker.post("/v1/completions", &request).await;
        let logprob = &answer["choices"][0]["logprobs"]["token_logprobs"][0];
        found.push(logprob.as_f64().unwrap_or_else(|| panic!("{answer}")));
    }
    found
}

fn list(choice: &Value, name: &str) -> Vec<Value> {
    choice["logprobs"][name].as_array().unwrap().clone()
}

fn assert_near(found: &[Value], expected: &[f64]) {
    assert_eq!(
        found[0],
        Value::Null,
        "nothing comes before the first token"
    );
    assert_eq!(found.len(), expected.len() + 1);
    for (at, (found, expected)) in found[1..].iter().zip(expected).enumerate() {
        let distance = (found.as_f64().unwrap() - expected).abs();
        assert!(
            distance < NEAR,
            "token {}: {found} is not {expected}",
            at + 1
        );
    }
}

#[tokio::test]
async fn an_echo_has_the_probabilities_of_its_prompt() {
    let worker = Worker::smollm().await;
    let text = "The capital of France is Paris, and the capital of Spain is Madrid.";
    let tokens = tokens(&worker, text).await;
    let expected = one_by_one(&worker, &tokens, 1).await;
    // Its second prompt begins as the first one does: nothing of it may come out of the cache.
    let request = json!({"prompt": [text, tokens, text], "echo": true, "logprobs": 1, "max_tokens": 0, "temperature": 0});
    let (status, answer) = worker.post("/v1/completions", &request).await;
    assert_eq!(status, 200, "{answer}");
    for choice in answer["choices"].as_array().unwrap() {
        assert_eq!(choice["text"], text);
        assert_near(&list(choice, "token_logprobs"), &expected);
        let pieces = list(choice, "tokens");
        let joined: String = pieces.iter().filter_map(Value::as_str).collect();
        assert_eq!(joined, text);
        assert_eq!(
            list(choice, "text_offset")[1],
            pieces[0].as_str().unwrap().len()
        );
        let top = list(choice, "top_logprobs");
        assert_eq!(top[0], Value::Null);
        for (top, (piece, own)) in top
            .iter()
            .zip(pieces.iter().zip(list(choice, "token_logprobs")))
            .skip(1)
        {
            let top = top.as_object().unwrap();
            assert_eq!(top[piece.as_str().unwrap()], own);
            let best = top
                .values()
                .filter_map(Value::as_f64)
                .fold(f64::NEG_INFINITY, f64::max);
            assert!(own.as_f64().unwrap() <= best);
            assert!((1..=2).contains(&top.len()), "{top:?}");
        }
    }
}

#[tokio::test]
async fn prompt_logprobs_are_named_by_token() {
    let worker = Worker::smollm().await;
    let text = "1, 2, 3, 4, 5";
    let tokens = tokens(&worker, text).await;
    let expected = one_by_one(&worker, &tokens, 1).await;
    let request = json!({"prompt": text, "prompt_logprobs": 2, "max_tokens": 2, "temperature": 0});
    let (_, answer) = worker.post("/v1/completions", &request).await;
    let choice = &answer["choices"][0];
    assert!(choice["logprobs"].is_null(), "not asked for: {choice}");
    assert!(!choice["text"].as_str().unwrap().starts_with('1'));
    let listed = choice["prompt_logprobs"].as_array().unwrap();
    let own = |(at, token): (usize, &i64)| listed[at][&token.to_string()]["logprob"].clone();
    let found: Vec<_> = tokens.iter().enumerate().map(own).collect();
    assert_near(&found, &expected);
    let ranked = listed[1..]
        .iter()
        .flat_map(|one| one.as_object().unwrap().values());
    assert!(
        ranked.clone().any(|one| one["rank"] == 1) && ranked.clone().any(|one| one["rank"] == 2)
    );
}

/// Longer than a step has rows, and than a window of the model's sliding layers.
#[tokio::test]
async fn a_long_prompt_is_scored_in_parts_and_streams_alike() {
    let worker = Worker::start(&model(GEMMA), &["--context", "2048", "--slots", "2"]).await;
    let text = numbers(1, 180);
    let mut request =
        json!({"prompt": text, "echo": true, "logprobs": 2, "max_tokens": 3, "temperature": 0});
    let (_, whole) = worker.post("/v1/completions", &request).await;
    let choice = &whole["choices"][0];
    let count = usize::try_from(whole["usage"]["prompt_tokens"].as_u64().unwrap()).unwrap();
    assert!(count > 512, "{count}");
    assert_eq!(list(choice, "token_logprobs").len(), count + 3);
    // The last tokens, which the window of 512 precedes.
    let all = tokens(&worker, &text).await;
    assert_eq!(all.len(), count);
    let late = one_by_one(&worker, &all, count - 5).await;
    let found = list(choice, "token_logprobs")[count - 5..count].to_vec();
    for (found, expected) in found.iter().zip(&late) {
        assert!(
            (found.as_f64().unwrap() - expected).abs() < NEAR,
            "{found} is not {expected}"
        );
    }
    request["stream"] = json!(true);
    let events = worker.stream("/v1/completions", &request).await;
    let chunks = events
        .iter()
        .filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let chunks: Vec<_> = chunks.map(|chunk| chunk["choices"][0].clone()).collect();
    let streamed: String = chunks
        .iter()
        .filter_map(|one| one["text"].as_str())
        .collect();
    assert_eq!(choice["text"], streamed);
    for name in ["tokens", "text_offset"] {
        let parts = chunks
            .iter()
            .filter_map(|one| one["logprobs"][name].as_array());
        assert_eq!(
            parts.flatten().cloned().collect::<Vec<_>>(),
            list(choice, name),
            "{name}"
        );
    }
}

/// A harness takes the last token for the answer's, whatever it is, and drops it.
#[tokio::test]
async fn an_answer_that_ends_at_once_has_its_end_among_them() {
    let worker = Worker::smollm().await;
    let end = 2;
    let request = json!({"prompt": "1, 2, 3", "echo": true, "logprobs": 1, "max_tokens": 1, "temperature": 0,
                         "logit_bias": [[end, 1000]]});
    let (_, answer) = worker.post("/v1/completions", &request).await;
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["text"]),
        (&json!("stop"), &json!("1, 2, 3"))
    );
    let prompt = usize::try_from(answer["usage"]["prompt_tokens"].as_u64().unwrap()).unwrap();
    assert_eq!(list(choice, "token_logprobs").len(), prompt + 1);
}

#[tokio::test]
async fn scores_without_bound_and_in_chats_are_refused() {
    let worker = Worker::smollm().await;
    let many = vec![numbers(1, 90); 64];
    let messages = json!([{"role": "user", "content": "Hi"}]);
    for (path, request, named) in [
        (
            "/v1/completions",
            json!({"prompt": many, "prompt_logprobs": 100, "max_tokens": 0}),
            "1048576",
        ),
        (
            "/v1/completions",
            json!({"prompt": "a", "prompt_logprobs": 1, "stream": true}),
            "`prompt_logprobs`",
        ),
        ("/v1/completions", json!({"prompt": ["a", 1]}), "`prompt`"),
        (
            "/v1/chat/completions",
            json!({"messages": messages, "prompt_logprobs": 1}),
            "`prompt_logprobs`",
        ),
        (
            "/v1/chat/completions",
            json!({"messages": messages, "echo": true}),
            "`echo`",
        ),
    ] {
        let (status, body) = worker.post(path, &request).await;
        assert_eq!(status, 400, "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(named), "{message}");
    }
}
