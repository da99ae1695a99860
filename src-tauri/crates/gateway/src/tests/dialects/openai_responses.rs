use crate::testing::{Bench, json, text};
use axum::{
    Router,
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tierbar_core::{Code, Error};

mod passing;

const STREAM: &str = "data: {\"model\":\"small\",\"choices\":[{\"delta\":{\"content\":\"Paris\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n\
    data: [DONE]\n\n";

fn whole() -> Response {
    let choice =
        json!({"message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"});
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 2});
    let sampling = json!({"temperature": 0.8, "top_p": 0.95, "presence_penalty": 1.5, "frequency_penalty": 0.0});
    axum::Json(json!({"model": "small", "choices": [choice], "usage": usage, "sampling": sampling}))
        .into_response()
}

fn streamed() -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], STREAM).into_response()
}

/// A worker that answers so, and what it was asked last.
fn worker(answer: fn() -> Response) -> (Router, Arc<Mutex<Value>>) {
    let asked = Arc::new(Mutex::new(Value::Null));
    let note = Arc::clone(&asked);
    let answer = move |body: String| {
        *note.lock().unwrap() = serde_json::from_str(&body).unwrap();
        std::future::ready(answer())
    };
    (
        Router::new().route("/v1/chat/completions", post(answer)),
        asked,
    )
}

async fn bench(answer: fn() -> Response) -> (Bench, Arc<Mutex<Value>>) {
    let bench = Bench::new("127.0.0.1:11435").await;
    let (routes, asked) = worker(answer);
    bench.load(routes);
    (bench, asked)
}

async fn ask(bench: &Bench, request: &Value) -> Response {
    bench.post("/v1/responses", request.to_string()).await
}

#[tokio::test]
async fn a_request_is_a_chat_for_the_worker_and_its_answer_a_response() {
    let (bench, asked) = bench(whole).await;
    let response = ask(
        &bench,
        &json!({
            "model": "fast", "instructions": "Be brief.", "input": "Capital of France?", "max_output_tokens": 9,
            "temperature": 0.5, "top_p": 0.9, "parallel_tool_calls": false, "store": true, "truncation": "auto",
            "client_metadata": {"session": "1"},
            "metadata": {"job": "7"}, "reasoning": {"effort": "low", "summary": "auto"},
            "include": ["message.output_text.logprobs"], "top_logprobs": 2, "n": 1, "messages": [],
            "text": {"format": {"type": "json_schema", "name": "city", "strict": true, "schema": {"type": "object"}}, "verbosity": "low"},
            "tools": [{"type": "function", "name": "look"}, {"type": "web_search"}], "tool_choice": "auto",
            "cache_prompt": false, "grammar": null, "user": "me", "frequency_penalty": 0.25, "max_tool_calls": 3,
            "prompt_cache_key": "job-7", "safety_identifier": "me", "service_tier": "flex",
        }),
    )
    .await;
    assert_eq!(response.headers()["x-tierbar-tier"], "fast");
    assert_eq!(
        *asked.lock().unwrap(),
        json!({
            "temperature": 0.5, "top_p": 0.9, "parallel_tool_calls": false, "cache_prompt": false, "grammar": null, "user": "me",
            "frequency_penalty": 0.25, "prompt_cache_key": "job-7", "safety_identifier": "me", "service_tier": "flex",
            "model": "fast", "max_tokens": 9, "logprobs": true, "top_logprobs": 2, "reasoning_effort": "low", "verbosity": "low",
            "response_format": {"type": "json_schema", "json_schema": {"name": "city", "strict": true, "schema": {"type": "object"}}},
            "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
            "tool_choice": "auto",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital of France?"}],
        })
    );
    let mut reply = json(response).await;
    for (field, prefix) in [("/id", "resp_"), ("/output/0/id", "msg_")] {
        let id = reply.pointer_mut(field).unwrap().take();
        assert!(id.as_str().unwrap().starts_with(prefix), "{id}");
    }
    for field in ["/created_at", "/completed_at"] {
        assert!(reply.pointer_mut(field).unwrap().take().as_u64() > Some(0));
    }
    assert_eq!(
        reply,
        json!({
            "id": null, "object": "response", "created_at": null, "completed_at": null, "status": "completed", "error": null,
            "incomplete_details": null, "model": "small",
            "output": [{"id": null, "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "Paris", "annotations": [], "logprobs": []}]}],
            "usage": {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 9},
            "background": false, "instructions": "Be brief.", "max_output_tokens": 9, "metadata": {"job": "7"},
            "parallel_tool_calls": false, "previous_response_id": null, "reasoning": {"effort": "low", "summary": null},
            "store": false, "temperature": 0.5,
            "text": {"format": {"type": "json_schema", "name": "city", "strict": true, "schema": {"type": "object"}}, "verbosity": "low"},
            "tool_choice": "auto", "tools": [{"type": "function", "name": "look", "description": null,
                "parameters": {"type": "object", "properties": {}}, "strict": false}],
            "top_logprobs": 2, "top_p": 0.9, "presence_penalty": 1.5, "frequency_penalty": 0.25, "max_tool_calls": 3,
            "prompt_cache_key": "job-7", "safety_identifier": "me", "service_tier": "default",
            "truncation": "disabled", "user": "me", "tierbar": {"left_out": ["tools[1]: web_search"]},
        })
    );
}

#[tokio::test]
async fn a_file_for_a_model_of_this_machine_is_refused() {
    let (bench, asked) = bench(whole).await;
    let data = "data:application/pdf;base64,AAAA";
    let part = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": data}});
    let input = json!({"type": "input_file", "filename": "a.pdf", "file_data": data});
    let user = |part: &Value| json!([{"role": "user", "content": [part]}]);
    for (path, request) in [
        (
            "/v1/chat/completions",
            json!({"model": "auto", "messages": user(&part)}),
        ),
        (
            "/v1/responses",
            json!({"model": "fast", "input": user(&input)}),
        ),
    ] {
        let refused = bench.post(path, request.to_string()).await;
        assert_eq!(refused.status(), 400, "{path}");
        let error = &json(refused).await["error"];
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.starts_with("send its text"), "{hint}");
        assert!(hint.contains("/tierbar/v1/documents/text"), "{hint}");
    }
    let gone = || Err(Error::new(Code::Unreachable, "not asked"));
    for (name, url) in [
        ("near", "http://192.168.0.2"),
        ("sonnet", "https://api.example.com"),
    ] {
        let engine = serde_json::from_value(json!({"endpoint": url})).unwrap();
        bench.other(name, gone(), engine);
    }
    let request = json!({"model": "auto", "messages": user(&part)});
    let refused = bench
        .post("/v1/chat/completions", request.to_string())
        .await;
    let error = &json(refused).await["error"];
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.starts_with("name the sonnet tier"), "{hint}");
    assert_eq!(*asked.lock().unwrap(), Value::Null);
}

#[tokio::test]
async fn a_bare_input_leaves_the_worker_its_own_settings() {
    let (bench, asked) = bench(whole).await;
    let reply = json(ask(&bench, &json!({"input": "Hi"})).await).await;
    assert_eq!(
        *asked.lock().unwrap(),
        json!({"messages": [{"role": "user", "content": "Hi"}]})
    );
    for (field, value) in [
        ("temperature", json!(0.8)),
        ("top_p", json!(0.95)),
        ("presence_penalty", json!(1.5)),
        ("frequency_penalty", json!(0.0)),
        ("max_tool_calls", json!(null)),
        ("prompt_cache_key", json!(null)),
        ("safety_identifier", json!(null)),
        ("service_tier", json!("default")),
        ("instructions", json!(null)),
        ("metadata", json!({})),
        ("tool_choice", json!("auto")),
        ("parallel_tool_calls", json!(true)),
        ("tools", json!([])),
    ] {
        assert_eq!(reply[field], value, "{field}");
    }
    assert_eq!(reply["text"], json!({"format": {"type": "text"}}));
}

#[tokio::test]
async fn a_stream_is_events_that_end_with_the_response() {
    let (bench, asked) = bench(streamed).await;
    let response = ask(
        &bench,
        &json!({"input": "Hi", "stream": true, "stream_options": {"include_obfuscation": false}}),
    )
    .await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-tierbar-model"], "small");
    let events = text(response).await;
    assert!(events.starts_with(
        "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,"
    ));
    let last = events.trim_end().rsplit_once("data: ").unwrap().1;
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "Paris");
    assert_eq!(last["response"]["usage"]["total_tokens"], 9);
    // What a server does not say is assumed to be as OpenAI's API has it.
    assert_eq!(last["response"]["temperature"], 1.0);
    assert_eq!(last["response"]["presence_penalty"], 0.0);
    assert_eq!(
        asked.lock().unwrap()["stream_options"],
        json!({"include_usage": true})
    );
}

#[tokio::test(start_paused = true)]
async fn a_loading_tier_says_so_and_a_failed_load_ends_the_response() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let response = ask(&bench, &json!({"input": "Hi", "stream": true})).await;
    let mut body = response.into_body().into_data_stream();
    let next = async |body: &mut axum::body::BodyDataStream| {
        let bytes = futures_util::StreamExt::next(body).await.unwrap().unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    assert_eq!(next(&mut body).await, ": loading\n\n");
    bench
        .loaded
        .send_replace(Some(Err(Error::new(Code::TierFailed, "it did not load"))));
    let last = next(&mut body).await;
    assert!(
        last.contains("event: response.failed\n") && last.contains("tier_failed"),
        "{last}"
    );
}

#[tokio::test]
async fn a_refusal_of_the_workers_keeps_its_status_and_figures() {
    let refuse = || {
        let error = Error::new(Code::ContextExceeded, "too long").detail("prompt_tokens", 5000);
        tierbar_http::error::Failure(error).into_response()
    };
    let (bench, _) = bench(refuse).await;
    for stream in [false, true] {
        let refused = ask(&bench, &json!({"input": "Hi", "stream": stream})).await;
        assert_eq!(refused.status(), 400);
        let error = json(refused).await;
        assert_eq!(error["error"]["code"], "context_length_exceeded");
        assert_eq!(error["error"]["prompt_tokens"], 5000);
    }
}

#[tokio::test]
async fn what_needs_a_store_is_refused_with_what_to_do_instead() {
    let (bench, _) = bench(whole).await;
    for (field, value, hint) in [
        ("previous_response_id", json!("resp_1"), "WebSocket"),
        ("conversation", json!({"id": "conv_1"}), "`input`"),
        ("prompt", json!({"id": "pmpt_1"}), "`instructions`"),
        ("background", json!(true), "stream"),
    ] {
        let refused = ask(&bench, &json!({"input": "Hi", field: value})).await;
        assert_eq!(refused.status(), 400, "{field}");
        let error = json(refused).await["error"].take();
        assert!(
            error["message"].as_str().unwrap().contains(field),
            "{error}"
        );
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    }
    let nothing = json!({"input": "Hi", "previous_response_id": null, "conversation": null, "background": false});
    assert_eq!(ask(&bench, &nothing).await.status(), 200);
    for (method, path) in [
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/responses/resp_1/input_items"),
    ] {
        let missing = bench.ask(method, path, String::new()).await;
        assert_eq!(missing.status(), 404, "{method} {path}");
        assert!(
            json(missing).await["error"]["message"]
                .as_str()
                .unwrap()
                .contains("not stored")
        );
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_the_field() {
    let (bench, asked) = bench(whole).await;
    for (request, part) in [
        (json!({"model": "fast"}), "`input`"),
        (json!({"input": "Hi", "instructions": 7}), "`instructions`"),
        (
            json!({"input": "Hi", "max_output_tokens": "nine"}),
            "\"nine\"",
        ),
        (json!({"input": "Hi", "tools": {}}), "sequence"),
        (
            json!({"input": "Hi", "text": {"format": {"type": "xml"}}}),
            "`text.format`",
        ),
        (
            json!({"input": "Hi", "text": {"format": {"type": "json_schema"}}}),
            "`text.format`",
        ),
        (
            json!({"input": "Hi", "tool_choice": {"type": "mcp"}}),
            "`tool_choice`",
        ),
    ] {
        let refused = ask(&bench, &request).await;
        assert_eq!(refused.status(), 400, "{request}");
        let error = json(refused).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{request}: {message}");
    }
    assert_eq!(*asked.lock().unwrap(), Value::Null);
}
