mod briefs;
mod chains;
mod choices;
mod compactions;
mod media;
mod scheduled;
mod summaries;
mod texts;

use crate::testing::Bench;
use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What the worker was asked, in order.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<Value>>>);

impl Requests {
    fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    /// The users' messages.
    fn texts(&self) -> Vec<String> {
        self.all().iter().map(user).collect()
    }
}

fn user(request: &Value) -> String {
    request["messages"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// What stands between the rules of a user's message.
fn data(request: &Value) -> String {
    let user = user(request);
    let begin = user.find("=====\n").unwrap() + 6;
    let end = user.rfind("\n=====").unwrap();
    user[begin..end].to_owned()
}

/// Jobs whose worker answers by the script, which gets the number of requests before.
async fn scripted(
    script: impl Fn(usize, &Value) -> Response + Clone + Send + Sync + 'static,
) -> (Bench, Requests) {
    let bench = Bench::new("127.0.0.1:11435").await;
    let requests = Requests::default();
    let seen = requests.clone();
    let answer = move |Json(request): Json<Value>| {
        let before = {
            let mut seen = seen.0.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        std::future::ready(script(before, &request))
    };
    bench.load(Router::new().route("/v1/chat/completions", post(answer)));
    (bench, requests)
}

/// Tokens of a request, as a worker of four bytes a token counts them.
fn tokens(request: &Value) -> u64 {
    let length = |at: usize| request["messages"][at]["content"].as_str().unwrap().len() as u64;
    (length(0) + length(1)) / 4
}

fn completion(request: &Value, content: &str, finish: &str) -> Response {
    let usage = json!({"prompt_tokens": tokens(request), "completion_tokens": 10});
    let choice =
        json!({"message": {"role": "assistant", "content": content}, "finish_reason": finish});
    Json(json!({"choices": [choice], "usage": usage})).into_response()
}

fn answer(request: &Value, content: impl AsRef<str>) -> Response {
    completion(request, content.as_ref(), "stop")
}

/// A text as a schema has it.
fn says_text(request: &Value, text: &str) -> Response {
    answer(request, json!({"text": text}).to_string())
}

fn refuses(status: StatusCode, body: Value) -> Response {
    (status, Json(body)).into_response()
}
