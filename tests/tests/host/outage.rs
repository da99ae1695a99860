//! A chain through an outage and back: two simulated clouds, one of each dialect; a tier that cannot be loaded; our engine,
//! or a server nearby; then the queue.

use super::Events;
use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tierbar_tests::{
    serving::{Data, Serving},
    wait::{until, within},
};
use tokio::net::TcpListener;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Answer,
    /// Fails once, then answers.
    FailOnce,
    /// Limits requests for this many seconds.
    Limit(u64),
    Hang,
    /// Breaks off a stream before or after its first token.
    Cut {
        spoken: bool,
    },
}

/// A simulated cloud that accepts one key.
#[derive(Clone)]
struct Cloud {
    name: &'static str,
    url: String,
    does: Arc<Mutex<(Does, usize)>>,
}

impl Cloud {
    async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cloud = Self {
            name,
            url: format!("http://{}", listener.local_addr().unwrap()),
            does: Arc::new(Mutex::new((Does::Answer, 0))),
        };
        let routes = Router::new()
            .route("/v1/chat/completions", post(openai))
            .route("/v1/messages", post(anthropic))
            .with_state(cloud.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        cloud
    }

    fn server(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    fn key(&self) -> String {
        format!("key-of-{}", self.name)
    }

    fn does(&self, what: Does) {
        self.does.lock().unwrap().0 = what;
    }

    /// Returns the number of requests since the last call.
    fn requests(&self) -> usize {
        std::mem::take(&mut self.does.lock().unwrap().1)
    }

    /// Returns what it does with a request, and the refusal if there is one.
    async fn takes(&self, headers: &HeaderMap) -> (Does, Option<Response>) {
        let does = {
            let mut now = self.does.lock().unwrap();
            now.1 += 1;
            let does = now.0;
            if does == Does::FailOnce {
                now.0 = Does::Answer;
            }
            does
        };
        let shown = |name| headers.get(name).and_then(|key| key.to_str().ok());
        let key = self.key();
        let is_ours = shown("authorization") == Some(&format!("Bearer {key}"))
            || shown("x-api-key") == Some(&key);
        let refuse = |status: StatusCode, after: &str| {
            let body = json!({"type": "error", "error": {"type": "some", "message": "no"}});
            let after = [(header::RETRY_AFTER, after.to_owned())];
            Some((status, after, Json(body)).into_response())
        };
        let refusal = match does {
            _ if !is_ours => refuse(StatusCode::UNAUTHORIZED, ""),
            Does::Limit(seconds) => refuse(StatusCode::TOO_MANY_REQUESTS, &seconds.to_string()),
            Does::FailOnce => refuse(StatusCode::INTERNAL_SERVER_ERROR, ""),
            Does::Hang => std::future::pending().await,
            Does::Answer | Does::Cut { .. } => None,
        };
        (does, refusal)
    }
}

fn events(events: Vec<String>) -> Response {
    let events = stream::iter(events.into_iter().map(Ok::<_, Infallible>));
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(events)).into_response()
}

async fn openai(
    State(cloud): State<Cloud>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let (does, refusal) = cloud.takes(&headers).await;
    if let Some(refusal) = refusal {
        return refusal;
    }
    let piece = |delta: Value| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"index": 0, "delta": delta}]})
        )
    };
    let (role, word) = (
        piece(json!({"role": "assistant"})),
        piece(json!({"content": cloud.name})),
    );
    match does {
        Does::Cut { spoken: false } => events(vec![role]),
        Does::Cut { spoken: true } => events(vec![role, word]),
        _ if body["stream"] == true => events(vec![role, word, "data: [DONE]\n\n".to_owned()]),
        _ => {
            let message = json!({"role": "assistant", "content": cloud.name});
            Json(json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
                .into_response()
        }
    }
}

async fn anthropic(
    State(cloud): State<Cloud>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    if let (_, Some(refusal)) = cloud.takes(&headers).await {
        return refusal;
    }
    assert!(headers.contains_key("anthropic-version"));
    assert!(body["max_tokens"].is_number(), "{body}");
    let mut message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 1},
    });
    let text = json!({"type": "text", "text": cloud.name});
    let ends = json!({"stop_reason": "end_turn", "stop_sequence": null});
    if body["stream"] != true {
        message["content"] = json!([text]);
        message["stop_reason"] = ends["stop_reason"].clone();
        return Json(message).into_response();
    }
    let empty = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": cloud.name});
    let events_of_stream = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": empty}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": ends, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    let texts = events_of_stream.map(|event| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    });
    events(texts.into())
}

struct Night {
    host: Serving,
    a: Cloud,
    b: Cloud,
    near: Cloud,
    _data: Data,
}

impl Night {
    async fn new() -> Self {
        let (a, b) = (Cloud::start("a").await, Cloud::start("b").await);
        let near = Cloud::start("near").await;
        let config = format!(
            r#"
            [tiers.cloud-a]
            model = "m"
            engine = {{ endpoint = "{}" }}
            [tiers.cloud-b]
            model = "m"
            engine = {{ endpoint = "{}", dialect = "anthropic" }}
            [tiers.heavy]
            model = "gone.gguf"
            [tiers.fast]
            model = "SmolLM2-135M-Instruct.Q4_1.gguf"
            context = 2048
            [tiers.near]
            model = "m"
            engine = {{ endpoint = "{}" }}
            [chains.night]
            steps = ["cloud-a", "cloud-b", "heavy", "fast", "near", "queue"]
            wait = "4s"
            mark = true
            [chains.far]
            steps = ["cloud-a", "cloud-b", "heavy", "near", "queue"]
            "#,
            a.url, b.url, near.url
        );
        let data = Data::new(&config);
        let host = data.serve().await;
        let night = Self {
            host,
            a,
            b,
            near,
            _data: data,
        };
        for cloud in [&night.a, &night.b, &night.near] {
            night.give(cloud, &cloud.key()).await;
        }
        night
    }

    async fn give(&self, cloud: &Cloud, key: &str) {
        let path = format!("/tierbar/v1/secrets/{}", cloud.server());
        let given = self
            .host
            .send(Method::PUT, &path, Some(json!({"value": key})))
            .await;
        assert_eq!(given.status(), 204);
    }

    async fn ask(&self, fields: Value) -> reqwest::Response {
        let mut fields = fields;
        fields["max_tokens"] = 8.into();
        within("an answer", self.host.chat("night", fields)).await
    }

    /// Requests a whole answer; returns its text, and what the body says about its tier.
    async fn answer(&self) -> (String, Value) {
        let answer = self.ask(json!({})).await;
        assert_eq!(answer.status(), 200);
        let tier = answer.headers()["x-tierbar-tier"]
            .to_str()
            .unwrap()
            .to_owned();
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["tierbar"]["tier"], tier, "{body}");
        let words = &body["choices"][0]["message"]["content"];
        (words.as_str().unwrap().to_owned(), body["tierbar"].clone())
    }

    /// Checks that our own engine answers, and marks that; returns the results of the earlier steps, `null` for skipped
    /// ones.
    async fn is_answered_here(&self) -> Vec<(String, Value)> {
        let (words, trail) = self.answer().await;
        assert!(
            words.starts_with("[Local Fallback]") && words.len() > 20,
            "{words}"
        );
        assert_eq!(trail["tier"], "fast");
        let tried = trail["tried"].as_array().unwrap().iter();
        tried
            .map(|step| {
                (
                    step["tier"].as_str().unwrap().to_owned(),
                    step["code"].clone(),
                )
            })
            .collect()
    }

    async fn is_answered_by(&self, name: &str) -> Value {
        let (words, trail) = self.answer().await;
        assert_eq!(words, name, "{trail}");
        trail
    }

    /// Returns whether the step may get a request, and the seconds until then.
    async fn gate(&self, step: usize) -> (String, u64) {
        let (_, chains) = self.host.ask(Method::GET, "/tierbar/v1/chains", None).await;
        let step = &chains["chains"][0]["steps"][step];
        let gate = step["gate"].as_str().unwrap().to_owned();
        (gate, step["for_ms"].as_u64().unwrap_or(0).div_ceil(1000))
    }

    async fn opens(&self, step: usize) {
        until("the gate to open", async || {
            (self.gate(step).await.0 == "open").then_some(())
        })
        .await;
    }

    fn requests(&self) -> (usize, usize) {
        (self.a.requests(), self.b.requests())
    }
}

#[tokio::test]
async fn a_chain_survives_an_outage_and_recovers() {
    let night = Night::new().await;
    let trail = night.is_answered_by("a").await;
    assert_eq!(trail["fallback_from"], Value::Null);
    assert_eq!(night.requests(), (1, 0));

    // It fails once and answers the retry.
    night.a.does(Does::FailOnce);
    night.is_answered_by("a").await;
    assert_eq!(night.requests(), (2, 0));

    // 429: the other cloud, of the other dialect, answers until the limit ends, and then the first one again.
    night.a.does(Does::Limit(12));
    let trail = night.is_answered_by("b").await;
    assert_eq!(trail["fallback_from"], "cloud-a");
    assert_eq!(night.gate(0).await.0, "cooling");
    night.a.does(Does::Answer);
    night.is_answered_by("b").await;
    assert_eq!(night.requests(), (1, 2));
    night.opens(0).await;
    night.is_answered_by("a").await;

    // 401: that key is not used again; with another one, the first step answers at once.
    night.give(&night.a, "revoked").await;
    night.requests();
    for _ in 0..2 {
        night.is_answered_by("b").await;
    }
    assert_eq!(night.requests(), (1, 2));
    assert_eq!(night.gate(0).await.0, "refused");
    night.give(&night.b, "revoked").await;
    let tried = night.is_answered_here().await;
    assert!(
        tried[0].0 == "cloud-a" && tried.last().unwrap().0 == "heavy",
        "{tried:?}"
    );
    for cloud in [&night.a, &night.b] {
        night.give(cloud, &cloud.key()).await;
    }
    night.is_answered_by("a").await;

    // Both hang, and the largest tier's model is gone: our own engine answers, and marks that.
    night.a.does(Does::Hang);
    night.b.does(Does::Hang);
    let mut tried = night.is_answered_here().await;
    assert_eq!(tried.pop().unwrap().0, "heavy", "{tried:?}");
    // Each was retried.
    tried.dedup();
    let hung = |cloud: &str| (cloud.to_owned(), json!("worker_timeout"));
    assert_eq!(tried, [hung("cloud-a"), hung("cloud-b")]);
    night.a.does(Does::Answer);
    night.b.does(Does::Answer);
    night.is_answered_by("a").await;

    // Cut before the first token: the next step answers in the same stream. Cut after it: the stream ends with an error.
    night.a.does(Does::Cut { spoken: false });
    let mut stream = Events::of(night.ask(json!({"stream": true})).await);
    assert_eq!(stream.words().await, "b");
    assert_eq!(stream.rest().await.last().unwrap(), "[DONE]");
    night.a.does(Does::Answer);
    night.is_answered_by("a").await;
    night.a.does(Does::Cut { spoken: true });
    let mut stream = Events::of(night.ask(json!({"stream": true})).await);
    assert_eq!(stream.words().await, "a");
    let last = stream.rest().await.pop().unwrap();
    assert!(
        last.contains("\"error\"") && last.contains("unreachable"),
        "{last}"
    );

    // Without a tier of this machine: a server nearby.
    night.a.does(Does::Limit(4));
    night.b.does(Does::Limit(600));
    let answer = within("an answer", night.host.chat("far", json!({}))).await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "near");
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "near");

    // No step can answer: the request is queued, and the chain answers it once a step can.
    night.near.does(Does::Limit(600));
    let kept = within("an answer", night.host.chat("far", json!({}))).await;
    assert_eq!(kept.status(), 202);
    let kept: Value = kept.json().await.unwrap();
    let id = kept["id"].as_str().unwrap();
    let metrics = night.host.send(Method::GET, "/metrics", None).await;
    let metrics = metrics.text().await.unwrap();
    for line in [
        "tierbar_endpoint_gate{tier=\"cloud-b\",gate=\"cooling\"} 1",
        "tierbar_queue_requests{state=\"waiting\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    night.requests();
    night.a.does(Does::Answer);
    let events = night
        .host
        .send(Method::GET, &format!("/v1/queue/{id}/events"), None)
        .await;
    let events = within("its end", events.text()).await.unwrap();
    assert!(events.contains("\"state\":\"done\""), "{events}");
    let path = format!("/v1/queue/{id}/result");
    let (_, result) = night.host.ask(Method::GET, &path, None).await;
    assert_eq!(result["choices"][0]["message"]["content"], "a", "{result}");
    assert_eq!(
        night.requests(),
        (1, 0),
        "each was left alone for its retry-after"
    );
}
