//! What models answer, and how their loads are asked for.

use super::{CHAT, bench, events, lines, worker};
use crate::testing::json;
use axum::{Json, Router, http::StatusCode, response::IntoResponse};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tierbar_core::{Code, Error, TierState};

#[tokio::test]
async fn a_chat_streams_lines_of_json_by_default() {
    let mut bench = bench().await;
    let (routes, asked) = worker(CHAT, || {
        events(
            "data: {\"choices\":[{\"delta\":{\"content\":\"Pa\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"ris\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"timings\":{\"prompt_ms\":1.0,\"predicted_ms\":2.0}}\n\n\
             data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        )
    });
    bench.load(routes);
    let tools = json!([{"type": "function", "function": {"name": "look"}}]);
    let ask = json!({
        "model": "fast:latest", "messages": [{"role": "user", "content": "Where?"}], "tools": tools, "think": "low",
        "options": {"num_predict": 8, "num_ctx": 99_999}, "keep_alive": "5m", "unknown": {},
    });
    let answer = bench.post("/api/chat", ask.to_string()).await;
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    let lines = lines(answer).await;
    let words: Vec<_> = lines
        .iter()
        .map(|line| line["message"]["content"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["Pa", "ris", ""]);
    assert!(lines.iter().all(|line| line["model"] == "fast:latest"));
    let last = &lines[2];
    assert_eq!(
        (&last["done"], &last["done_reason"]),
        (&json!(true), &json!("stop"))
    );
    assert_eq!(
        (&last["prompt_eval_count"], &last["eval_count"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(last["eval_duration"], 2_000_000);
    assert_eq!(
        *asked.lock().unwrap(),
        json!({
            "model": "fast", "stream": true, "stream_options": {"include_usage": true}, "keep_alive": "5m", "max_tokens": 8,
            "reasoning_effort": "low", "messages": [{"role": "user", "content": "Where?"}], "tools": tools,
        })
    );
    assert_eq!(bench.asked.take(), ["keep Some(300s)"]);
    bench.released().await;
}

#[tokio::test]
async fn a_completion_comes_whole_if_it_is_asked_to() {
    let bench = bench().await;
    let (routes, asked) = worker("/v1/completions", || {
        Json(json!({"choices": [{"text": " 10,", "finish_reason": "length"}]})).into_response()
    });
    bench.load(routes);
    let ask = json!({"model": "fast", "prompt": "8, 9,", "raw": true, "stream": false});
    let answer = json(bench.post("/api/generate", ask.to_string()).await).await;
    assert_eq!(
        (&answer["response"], &answer["done_reason"]),
        (&json!(" 10,"), &json!("length"))
    );
    assert_eq!(asked.lock().unwrap()["prompt"], "8, 9,");
}

#[tokio::test]
async fn failures_have_ollamas_form_before_and_within_a_stream() {
    let bench = bench().await;
    let refusal = || Error::new(Code::ContextExceeded, "too long").openai_body();
    let (routes, _) = worker(CHAT, move || {
        (StatusCode::BAD_REQUEST, Json(refusal())).into_response()
    });
    bench.load(routes);
    let ask = r#"{"model":"fast","messages":[{"role":"user","content":"Hi"}]}"#;
    let refused = bench.post("/api/chat", ask).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(
        json(refused).await,
        json!({"error": "too long (context_length_exceeded)", "code": "context_length_exceeded"})
    );
    for (path, body) in [
        ("/api/chat", "no json"),
        ("/api/chat", r#"{"messages":[{"content":"no role"}]}"#),
        ("/api/generate", r#"{"prompt":"Hi","options":{"seed":"x"}}"#),
        ("/api/generate", r#"{"prompt":"Hi","suffix":"there"}"#),
        ("/api/chat", r#"{"messages":[],"keep_alive":"soon"}"#),
        ("/api/embed", r#"{"input":7}"#),
    ] {
        let wrong = bench.post(path, body).await;
        assert_eq!(wrong.status(), 400, "{path} {body}");
        assert!(json(wrong).await["error"].is_string());
    }

    let bench = super::bench().await;
    let (routes, _) = worker(CHAT, || {
        events(
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":{\"message\":\"gone\"}}\n\n",
        )
    });
    bench.load(routes);
    let reply = lines(bench.post("/api/chat", ask).await).await;
    assert_eq!(reply.len(), 2);
    assert_eq!(reply[1]["error"], "gone");
}

#[tokio::test]
async fn an_empty_request_loads_and_keep_alive_zero_unloads() {
    let mut bench = bench().await;
    bench.load(Router::new());
    for (path, words) in [
        ("/api/chat", "\"messages\":[]"),
        ("/api/generate", "\"prompt\":\"\""),
    ] {
        let load = format!("{{\"model\":\"fast\",{words},\"keep_alive\":-1}}");
        let loaded = json(bench.post(path, load).await).await;
        assert_eq!(
            (&loaded["done"], &loaded["done_reason"]),
            (&json!(true), &json!("load"))
        );
        assert_eq!(bench.asked.take(), ["keep None"]);
        let unload = format!("{{\"model\":\"fast\",{words},\"keep_alive\":0}}");
        let unloaded = json(bench.post(path, unload).await).await;
        assert_eq!(unloaded["done_reason"], "unload");
        assert_eq!(bench.asked.take(), ["keep Some(0ns)"]);
        bench.released().await;
    }
}

#[tokio::test]
async fn nothing_is_loaded_to_be_unloaded() {
    let bench = bench().await;
    bench
        .status
        .send_modify(|status| Arc::make_mut(status).tiers[0].state = TierState::Stopped);
    // A lease would wait for ever: nothing says how the load went.
    let unload = r#"{"model":"fast","messages":[],"keep_alive":"0s"}"#;
    let unloaded = json(bench.post("/api/chat", unload).await).await;
    assert_eq!(unloaded["done_reason"], "unload");
}

#[tokio::test]
async fn a_failed_load_is_reported() {
    let bench = bench().await;
    let error = Error::new(Code::TierFailed, "it does not load");
    bench.loaded.send_replace(Some(Err(error)));
    for body in [
        r#"{"model":"fast"}"#,
        r#"{"model":"fast","messages":[{"role":"user"}]}"#,
    ] {
        let failed = bench.post("/api/chat", body).await;
        assert_eq!(failed.status(), 503);
        assert_eq!(json(failed).await["error"], "it does not load");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_a_tier_loads_and_its_failure_is_a_line() {
    let bench = bench().await;
    let ask = r#"{"model":"fast","messages":[{"role":"user","content":"Hi"}]}"#;
    let answer = bench.post("/api/chat", ask).await;
    assert_eq!(answer.status(), 200);
    let loaded = bench.loaded.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        loaded.send_replace(Some(Err(Error::new(Code::TierFailed, "it does not load"))));
    });
    assert_eq!(
        lines(answer).await,
        [json!({"error": "it does not load", "code": "tier_failed"})]
    );
}

#[tokio::test]
async fn texts_become_vectors_in_their_order() {
    let bench = bench().await;
    let (routes, asked) = worker("/v1/embeddings", || {
        Json(json!({
            "data": [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [0.5, 0.25]}],
            "usage": {"prompt_tokens": 7},
        }))
        .into_response()
    });
    bench.load(routes);
    let ask = json!({"model": "fast", "input": ["a", "b"], "truncate": true, "dimensions": 2});
    let reply = json(bench.post("/api/embed", ask.to_string()).await).await;
    assert_eq!(reply["embeddings"], json!([[0.5, 0.25], [0.0, 1.0]]));
    assert_eq!(
        (&reply["model"], &reply["prompt_eval_count"]),
        (&json!("fast"), &json!(7))
    );
    assert_eq!(
        *asked.lock().unwrap(),
        json!({"model": "fast", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2, "truncate_prompt_tokens": -1})
    );
    // Two vectors for one text are no answer.
    let one = bench
        .post("/api/embed", r#"{"model":"fast","input":"a"}"#)
        .await;
    assert_eq!(one.status(), 502);
    for (path, none) in [
        ("/api/embed", json!({"model": "fast", "input": []})),
        ("/api/embed", json!({"model": "fast", "input": ""})),
    ] {
        let reply = json(bench.post(path, none.to_string()).await).await;
        assert_eq!(reply["embeddings"], json!([]));
    }
}

#[tokio::test]
async fn the_older_request_for_a_vector_is_answered_too() {
    let bench = bench().await;
    let (routes, _) = worker("/v1/embeddings", || {
        Json(json!({"data": [{"embedding": [0.5, 0.25]}]})).into_response()
    });
    bench.load(routes);
    let reply = bench
        .post("/api/embeddings", r#"{"model":"fast","prompt":"a"}"#)
        .await;
    assert_eq!(json(reply).await, json!({"embedding": [0.5, 0.25]}));
    let none = bench.post("/api/embeddings", r#"{"model":"fast"}"#).await;
    assert_eq!(json(none).await, json!({"embedding": []}));
}
