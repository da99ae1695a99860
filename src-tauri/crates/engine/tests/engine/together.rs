//! Several generations on one context: that they do not disturb, starve or cost each other.

use crate::support::{GEMMA, HANG, SHALLOW, SMOLLM, Worker, first_chunk, model, numbers};
use futures_util::{StreamExt, future::join_all};
use serde_json::{Value, json};

fn text(answer: &Value) -> &str {
    answer["choices"][0]["text"].as_str().unwrap()
}

fn story(subject: &str, tokens: u32) -> Value {
    json!({"prompt": format!("A long story about {subject}. Once upon a time"), "max_tokens": tokens,
           "temperature": 0, "ignore_eos": true})
}

/// So many words that each is a token or two.
fn words(count: usize) -> String {
    (0..count).map(|number| format!("word{number} ")).collect()
}

/// Upstream llama-server's answer to each prompt, far from a tie: other kernels for larger batches do not change it.
async fn answers_are_those_of_each_alone(name: &str) {
    let worker = Worker::start(&model(name), &["--context", "2048", "--slots", "4"]).await;
    let mut completions = crate::support::completions(name, 1.5);
    completions.retain(|(prompt, _)| prompt.len() < 300);
    assert!(completions.len() >= 4);
    let requests: Vec<_> = completions
        .iter()
        .cycle()
        .take(8)
        .map(|(prompt, answer)| json!({"prompt": prompt, "max_tokens": answer["tokens"], "temperature": 0}))
        .collect();
    let together = join_all(
        requests
            .iter()
            .map(|request| worker.post("/v1/completions", request)),
    )
    .await;
    for ((status, answer), (prompt, recorded)) in together.iter().zip(completions.iter().cycle()) {
        assert_eq!(*status, 200, "{answer}");
        assert_eq!(text(answer), recorded["text"], "{name}: {prompt}");
    }
}

#[tokio::test]
async fn smollm2_answers_concurrent_requests_as_single_ones() {
    answers_are_those_of_each_alone(SMOLLM).await;
}

#[tokio::test]
async fn gemma_3_answers_concurrent_requests_as_single_ones() {
    answers_are_those_of_each_alone(GEMMA).await;
}

#[tokio::test]
async fn a_long_prompt_does_not_hold_up_a_stream() {
    let worker = Worker::start(&model(SMOLLM), &["--context", "4096"]).await;
    let mut request = story("a river", 400);
    request["stream"] = json!(true);
    let mut stream = first_chunk(worker.send("/v1/completions", request.to_string()).await).await;
    let long = json!({"prompt": words(300), "max_tokens": 1});
    let reading = worker.post("/v1/completions", &long);
    tokio::pin!(reading);
    let mut chunks = 0;
    let prompt = loop {
        tokio::select! {
            biased;
            chunk = stream.next() => {
                chunk.expect("the stream ended first").unwrap();
                chunks += 1;
            }
            (status, answer) = &mut reading => {
                assert_eq!(status, 200, "{answer}");
                break answer["timings"]["prompt_n"].as_u64().unwrap();
            }
        }
    };
    // In whole micro-batches there would be two words, or three.
    assert!(prompt > 600, "{prompt}");
    assert!(
        chunks >= 8,
        "{chunks} chunks while {prompt} tokens were read"
    );
}

#[tokio::test]
async fn requests_without_room_wait_and_complete() {
    let worker = Worker::start(&model(SHALLOW), &["--context", "512", "--slots", "3"]).await;
    // Together they need more than the context: some must give their place up and go on later.
    let requests = ["a", "the other", "one more"].map(|subject| story(subject, 300));
    let together = join_all(
        requests
            .iter()
            .map(|request| worker.post("/v1/completions", request)),
    )
    .await;
    for (status, answer) in together {
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["usage"]["completion_tokens"], 300);
        assert_eq!(answer["choices"][0]["finish_reason"], "length");
    }
}

#[tokio::test]
async fn alternating_conversations_keep_their_caches() {
    let worker = Worker::shallow().await;
    let ask = async |prompt: &str| {
        let request = json!({"prompt": prompt, "max_tokens": 1, "temperature": 0});
        let (_, answer) = worker.post("/v1/completions", &request).await;
        let timings = &answer["timings"];
        (
            timings["cache_n"].as_u64().unwrap(),
            timings["prompt_n"].as_u64().unwrap(),
        )
    };
    let (mut one, mut other) = (
        format!("First: {}", words(60)),
        format!("Second: {}", words(50)),
    );
    ask(&one).await;
    ask(&other).await;
    for _ in 0..3 {
        for conversation in [&mut one, &mut other] {
            conversation.push_str("and more");
            let (cached, read) = ask(conversation).await;
            assert!(cached > 100 && read < 8, "{cached} {read}");
        }
    }
}

#[tokio::test]
async fn a_prefix_in_another_slot_is_shared() {
    let worker = Worker::smollm().await;
    let system = words(80);
    let mut request = json!({"prompt": format!("{system} A story:"), "max_tokens": 200, "temperature": 0,
                             "ignore_eos": true, "stream": true});
    let stream = first_chunk(worker.send("/v1/completions", request.to_string()).await).await;
    request = json!({"prompt": format!("{system} A poem:"), "max_tokens": 4, "temperature": 0});
    let (_, answer) = worker.post("/v1/completions", &request).await;
    assert!(
        answer["timings"]["cache_n"].as_u64().unwrap() > 150,
        "{answer}"
    );
    assert!(
        answer["timings"]["prompt_n"].as_u64().unwrap() < 8,
        "{answer}"
    );
    drop(stream);
    request["cache_prompt"] = json!(false);
    let (_, fresh) = worker.post("/v1/completions", &request).await;
    assert_eq!(text(&fresh), text(&answer));
}

#[tokio::test]
async fn checkpoints_go_back_beyond_a_sliding_window() {
    // A sliding layer keeps its window, of 512 tokens, and a batch.
    let worker = Worker::start(&model(GEMMA), &["--context", "4096", "--batch", "64"]).await;
    let ask = async |prompt: &str, tokens: u32| {
        let request =
            json!({"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": true});
        worker.post("/v1/completions", &request).await.1
    };
    let first = numbers(1, 300);
    let answer = ask(&first, 800).await;
    let length = answer["timings"]["prompt_n"].as_u64().unwrap();
    // The answer was longer than the window: what comes before it is gone from the cache, and the mark brings it back.
    let next = format!("{first} 300, 301,");
    let again = ask(&next, 8).await;
    let cached = again["timings"]["cache_n"].as_u64().unwrap();
    assert!(cached + 3 >= length, "{cached} of {length}");
    let request = json!({"prompt": next, "max_tokens": 8, "temperature": 0, "ignore_eos": true, "cache_prompt": false});
    let (_, fresh) = worker.post("/v1/completions", &request).await;
    assert_eq!(text(&again), text(&fresh));
}

#[tokio::test]
async fn a_disconnect_frees_the_slot() {
    let worker = Worker::start(&model(SMOLLM), &["--context", "8192"]).await;
    let mut request = story("a mountain", 200);
    request["stream"] = json!(true);
    let mut stream = first_chunk(worker.send("/v1/completions", request.to_string()).await).await;
    let long = json!({"prompt": words(1700), "max_tokens": 1}).to_string();
    let begun = async { while worker.get("/props").await["generations"]["running"] != 2 {} };
    tokio::select! {
        _ = worker.send("/v1/completions", long) => panic!("it was answered too soon to leave"),
        begun = tokio::time::timeout(HANG, begun) => begun.unwrap(),
    }
    let mut rest = String::new();
    while let Some(chunk) = tokio::time::timeout(HANG, stream.next()).await.unwrap() {
        rest += std::str::from_utf8(&chunk.unwrap()).unwrap();
    }
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
    assert!(rest.contains("\"predicted_n\":200"), "{rest}");
    let props = worker.get("/props").await;
    assert_eq!(props["generations"]["running"], 0, "{props}");
    assert_eq!(props["generations"]["cancelled"], 1, "{props}");
}

#[tokio::test]
async fn a_shared_system_prompt_keeps_both_caches() {
    for name in [SHALLOW, GEMMA] {
        let worker = Worker::start(&model(name), &["--context", "2048"]).await;
        worker.ready();
        let header = "You are a helpful assistant who answers in few words.";
        let long = format!("{header} {}", "The sea is wide and blue. ".repeat(60));
        let request = |prompt: &str| json!({"prompt": prompt, "max_tokens": 4, "temperature": 0});
        let path = "/v1/completions";
        worker.post(path, &request(&long)).await;
        let other = format!("{header} What is the capital of France?");
        worker.post(path, &request(&other)).await;
        let (_, again) = worker.post(path, &request(&long)).await;
        let read = again["timings"]["prompt_n"].as_u64().unwrap();
        assert!(read <= 8, "{name}: {again}");
    }
}
