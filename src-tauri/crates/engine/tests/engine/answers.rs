//! What the worker answers, and how.

use crate::support::{GEMMA, Worker, model};
use serde_json::{Value, json};

#[tokio::test]
async fn a_stream_equals_the_whole_answer() {
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
async fn ignore_eos_generates_to_the_limit() {
    let worker = Worker::smollm().await;
    let request = json!({"messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 120, "temperature": 0,
                         "ignore_eos": true});
    let (_, answer) = worker.post("/v1/chat/completions", &request).await;
    assert_eq!(answer["timings"]["predicted_n"], 120);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn a_shared_prefix_is_not_evaluated_again() {
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

#[tokio::test]
async fn a_chats_first_event_counts_cached_tokens() {
    let worker = Worker::smollm().await;
    let request = json!({"messages": [{"role": "user", "content": "Count to five."}], "max_tokens": 4,
                         "temperature": 0, "stream": true, "stream_options": {"include_usage": true}});
    for is_warm in [false, true] {
        let events = worker.stream("/v1/chat/completions", &request).await;
        let chunk = |at: usize| serde_json::from_str::<Value>(&events[at]).unwrap();
        let (first, usage) = (chunk(0), chunk(events.len() - 2)["usage"].take());
        assert_eq!(first["prompt_tokens"], usage["prompt_tokens"], "{first}");
        let cached = &usage["prompt_tokens_details"]["cached_tokens"];
        assert_eq!(first["cached_tokens"], *cached, "{first}");
        assert_eq!(cached.as_u64() > Some(0), is_warm, "{usage}");
    }
}

/// Gemma's sliding layers keep 512 tokens and a micro-batch. A prompt that goes on from further back than any mark is
/// evaluated anew.
#[tokio::test]
async fn tokens_outside_a_sliding_window_are_not_reused() {
    let words = |from: u32, to: u32| {
        let words = (from..to).map(|word| format!("word{word} "));
        words.collect::<String>()
    };
    let (begin, long) = (words(0, 100), words(0, 600));
    let near = format!("{long} and then the end of the story was");
    let far = format!("{begin} and then the end of the story was");
    let ask = async |worker: &Worker, prompt: &str| {
        let request = json!({"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 3});
        let answer = worker.post("/v1/completions", &request).await.1;
        let kept = answer["timings"]["cache_n"].as_u64().unwrap();
        (
            kept,
            answer["choices"][0]["logprobs"]["top_logprobs"][0].clone(),
        )
    };
    let worker = Worker::start(&model(GEMMA), &["--context", "4096", "--slots", "1"]).await;
    assert_eq!(ask(&worker, &long).await.0, 0);
    let (kept, _) = ask(&worker, &near).await;
    assert!(kept > 1024, "the window was kept: {kept}");
    let (kept, after) = ask(&worker, &far).await;
    assert_eq!(kept, 0);
    let fresh = Worker::start(&model(GEMMA), &["--context", "4096"]).await;
    assert_alike(&ask(&fresh, &far).await.1, &after);
}

/// The same tokens, as likely but for rounding: batches of other sizes are added up in another order.
fn assert_alike(one: &Value, other: &Value) {
    let (one, other) = (one.as_object().unwrap(), other.as_object().unwrap());
    for (token, probability) in one {
        let there = other.get(token).and_then(Value::as_f64);
        let distance = there.map(|there| (there - probability.as_f64().unwrap()).abs());
        assert!(
            distance.is_some_and(|distance| distance < 0.1),
            "{one:?} {other:?}"
        );
    }
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

#[tokio::test]
async fn several_answers_come_in_order() {
    let worker = Worker::smollm().await;
    let request = json!({"prompt": ["The sky is", "The grass is"], "n": 2, "max_tokens": 6, "temperature": 1.0,
                         "seed": 3, "echo": true});
    let (status, answer) = worker.post("/v1/completions", &request).await;
    assert_eq!(status, 200, "{answer}");
    let choices = answer["choices"].as_array().unwrap();
    let beginnings = ["The sky is", "The sky is", "The grass is", "The grass is"];
    assert_eq!(choices.len(), 4);
    for (index, (choice, beginning)) in choices.iter().zip(beginnings).enumerate() {
        assert_eq!(choice["index"], index);
        let text = choice["text"].as_str().unwrap();
        assert!(
            text.starts_with(beginning) && text.len() > beginning.len(),
            "{text}"
        );
    }
    assert_ne!(choices[0]["text"], choices[1]["text"]);
    assert!(answer["usage"]["completion_tokens"].as_u64().unwrap() <= 24);

    let mut request = json!({"messages": [{"role": "user", "content": "Name a colour."}], "n": 2, "max_tokens": 8,
                             "stream": true, "seed": 5});
    let events = worker.stream("/v1/chat/completions", &request).await;
    let mut texts = [String::new(), String::new()];
    let mut finished = 0;
    for event in &events[..events.len() - 1] {
        let chunk: Value = serde_json::from_str(event).unwrap();
        let choice = &chunk["choices"][0];
        let index = usize::try_from(choice["index"].as_u64().unwrap()).unwrap();
        texts[index] += choice["delta"]["content"].as_str().unwrap_or_default();
        finished += usize::from(choice["finish_reason"].is_string());
    }
    assert_eq!(finished, 2);
    request["stream"] = json!(false);
    let (_, whole) = worker.post("/v1/chat/completions", &request).await;
    assert_eq!(whole["choices"].as_array().unwrap().len(), 2);
    assert!(texts.iter().all(|text| !text.is_empty()), "{texts:?}");
}

#[tokio::test]
async fn an_answer_can_continue_an_assistant_message() {
    let worker = Worker::smollm().await;
    let question = json!({"role": "user", "content": "What is the capital of France?"});
    let begun = json!({"role": "assistant", "content": "The capital of France is"});
    let mut request = json!({"messages": [question, begun], "max_tokens": 3, "temperature": 0});
    let answer_text = async |request: &Value| {
        let (_, answer) = worker.post("/v1/chat/completions", request).await;
        answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let turn = answer_text(&request).await;
    assert!(!turn.starts_with(" Paris"), "{turn}");
    request["continue_final_message"] = json!(true);
    assert!(answer_text(&request).await.starts_with(" Paris"));
    request["messages"][1]["content"] =
        json!([{"type": "text", "text": "The capital of France is"}]);
    assert!(answer_text(&request).await.starts_with(" Paris"));
}

#[tokio::test]
async fn log_probabilities_have_tokens_and_alternatives() {
    let worker = Worker::smollm().await;
    let mut request = json!({"messages": [{"role": "user", "content": "What is the capital of France?"}],
                             "max_tokens": 10, "temperature": 0, "logprobs": true, "top_logprobs": 4});
    let (_, answer) = worker.post("/v1/chat/completions", &request).await;
    let tokens = answer["choices"][0]["logprobs"]["content"]
        .as_array()
        .unwrap();
    let reported: String = tokens
        .iter()
        .map(|token| token["token"].as_str().unwrap())
        .collect();
    assert_eq!(answer["choices"][0]["message"]["content"], reported);
    for token in tokens {
        let top = token["top_logprobs"].as_array().unwrap();
        assert_eq!(top.len(), 4);
        // Greedy: the chosen one is the likeliest.
        assert_eq!(
            (&top[0]["token"], &top[0]["logprob"]),
            (&token["token"], &token["logprob"])
        );
        let sum: f64 = top
            .iter()
            .map(|one| one["logprob"].as_f64().unwrap().exp())
            .sum();
        assert!(sum <= 1.0 + 1e-6 && top[0]["logprob"].as_f64() >= top[1]["logprob"].as_f64());
        assert!(token["bytes"].is_array());
    }
    request["stream"] = json!(true);
    let events = worker.stream("/v1/chat/completions", &request).await;
    let streamed: usize = events[..events.len() - 1]
        .iter()
        .map(|event| serde_json::from_str::<Value>(event).unwrap())
        .filter_map(|chunk| {
            chunk["choices"][0]["logprobs"]["content"]
                .as_array()
                .map(Vec::len)
        })
        .sum();
    assert_eq!(streamed, tokens.len());

    let request =
        json!({"prompt": "Two and two is", "max_tokens": 3, "temperature": 0, "logprobs": 2});
    let (_, answer) = worker.post("/v1/completions", &request).await;
    let reported = &answer["choices"][0]["logprobs"];
    assert_eq!(reported["tokens"].as_array().unwrap().len(), 3);
    assert_eq!(reported["token_logprobs"].as_array().unwrap().len(), 3);
    assert_eq!(reported["top_logprobs"][0].as_object().unwrap().len(), 2);
}

#[tokio::test]
async fn every_sampler_has_an_effect() {
    let worker = Worker::smollm().await;
    let ask = async |more: Value| {
        let mut request = json!({"prompt": "a b c a b c a b c a b c", "max_tokens": 24, "seed": 11, "temperature": 1.0,
                                 "cache_prompt": false, "ignore_eos": true});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        let (status, answer) = worker.post("/v1/completions", &request).await;
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let plain = ask(json!({})).await;
    for more in [
        json!({"top_k": 1}),
        json!({"top_p": 0.05}),
        json!({"min_p": 0.9}),
        json!({"typical_p": 0.05}),
        json!({"top_n_sigma": 0.1}),
        json!({"xtc_probability": 1.0, "xtc_threshold": 0.02}),
        json!({"dynatemp_range": 0.9}),
        json!({"mirostat": 1, "mirostat_tau": 1.0}),
        json!({"mirostat": 2, "mirostat_tau": 1.0}),
        json!({"repeat_penalty": 2.0}),
        json!({"presence_penalty": 2.0}),
        json!({"frequency_penalty": 2.0}),
        json!({"dry_multiplier": 4.0}),
    ] {
        assert_ne!(ask(more.clone()).await, plain, "{more} changes nothing");
    }
    // What the prompt repeats is penalized from the first token on.
    let letters = "a b c d e f g, a b c d e f g, a b c d e f g, a b c d";
    let greedy = ask(json!({"prompt": letters, "temperature": 0})).await;
    assert!(greedy.starts_with(" e"), "{greedy}");
    let dry = ask(json!({"prompt": letters, "temperature": 0, "dry_multiplier": 8.0})).await;
    assert!(!dry.starts_with(" e"), "{dry}");
}
