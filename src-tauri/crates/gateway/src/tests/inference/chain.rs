use crate::testing::{Bench, json, text, tier};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    http::{Request, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::sync::Arc;
use std::{
    convert::Infallible,
    sync::{
        Mutex as StdMutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tierbar_core::{
    Code, Error, TierId, TierState,
    config::{ChainBudget, Span},
    config::{ChainConfig, Engine, Step},
};
use tierbar_inference::chain::credential;
use tierbar_tasks::triage::exam::PROBES;

mod dialects;
mod triage;

const CHAT: &str = tierbar_inference::CHAT;

/// A cloud that does as the test says, and counts its requests.
#[derive(Clone)]
struct Cloud {
    name: &'static str,
    does: Arc<StdMutex<Does>>,
    asked: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Does {
    Answer,
    Refuse(u16),
    /// With so many seconds of `Retry-After`.
    Limit(u64),
    Hang,
    /// A word at once, and some more with pauses, for longer than its first word may take.
    Dawdle,
    /// In a stream, for its account's sake.
    Fail,
    /// With words of its proxy's before and beside its own.
    Comment,
    /// With a success that is none: so of this type and this text.
    Page(&'static str, &'static str),
    /// Whole, whatever it is asked for.
    Whole,
    /// In a stream, much that is no word, and then nothing.
    Babble,
    /// In a stream, before its first word or behind it.
    Cut {
        spoken: bool,
    },
    /// In a stream, at once with its first words.
    Regret(&'static str),
    /// In a stream, and keeps the connection open behind the end.
    Linger,
    /// To a question with a schema with this, and otherwise with its name. It knows the types of the examination.
    Triage(&'static str),
    /// The same, but answers with this in the examination, too.
    Guess(&'static str),
}

impl Cloud {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            does: Arc::new(StdMutex::new(Does::Answer)),
            asked: Arc::default(),
        }
    }

    fn does(&self, what: Does) {
        *self.does.lock().unwrap() = what;
    }

    /// How often it was asked since the last call.
    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    fn routes(&self) -> Router {
        let cloud = self.clone();
        let answer = move |body: String| async move {
            cloud.asked.fetch_add(1, Ordering::SeqCst);
            let does = *cloud.does.lock().unwrap();
            cloud.answer(does, &body).await
        };
        Router::new().route(CHAT, post(answer))
    }

    async fn answer(&self, does: Does, body: &str) -> Response {
        let stream = body.contains("\"stream\":true") || body.contains("\"stream\": true");
        match does {
            Does::Triage(verdict) | Does::Guess(verdict) if body.contains("json_schema") => {
                let probe = PROBES.iter().find(|(text, _)| body.contains(text));
                let content = match (does, probe) {
                    (Does::Triage(_), Some((_, kind))) => {
                        json!({"type": kind, "urgency": 0, "needs_cloud": false}).to_string()
                    }
                    _ => verdict.to_owned(),
                };
                let message = json!({"role": "assistant", "content": content});
                Json(json!({"choices": [{"message": message}]})).into_response()
            }
            Does::Triage(_) | Does::Guess(_) => {
                events(&[&content_event(self.name), "data: [DONE]\n\n"])
            }
            Does::Hang => std::future::pending().await,
            Does::Refuse(status) => {
                let status = StatusCode::from_u16(status).unwrap();
                (status, Json(json!({"error": {"message": "no"}}))).into_response()
            }
            Does::Limit(seconds) => {
                let after = [(header::RETRY_AFTER, seconds.to_string())];
                (StatusCode::TOO_MANY_REQUESTS, after, "{}").into_response()
            }
            Does::Dawdle => dawdling(self.name),
            Does::Answer if stream => events(&[&content_event(self.name), "data: [DONE]\n\n"]),
            Does::Comment => events(&[
                ": PROCESSING\n\n",
                &content_event("one "),
                &format!(": PROCESSING\n\n{}", content_event("two ")),
                &format!("{}: PROCESSING\n\n", content_event("three")),
                ": done\n\ndata: [DONE]\n\n",
            ]),
            Does::Page(kind, text) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
            Does::Answer | Does::Whole => {
                let message = json!({"role": "assistant", "content": self.name});
                Json(json!({"choices": [{"message": message, "finish_reason": "stop"}]}))
                    .into_response()
            }
            Does::Fail => {
                let error = json!({"error": {"message": "no credit left", "code": 402}});
                events(&[&format!("data: {error}\n\ndata: [DONE]\n\n")])
            }
            Does::Babble => {
                let event = format!(
                    "data: {}\n\n",
                    json!({"choices": [], "more": "?".repeat(1 << 16)})
                );
                let much = stream::repeat(Bytes::from(event)).take(20);
                let much = much.map(Ok::<_, Infallible>);
                let body = Body::from_stream(much.chain(stream::pending()));
                ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
            }
            Does::Regret(code) => {
                let error = json!({"error": {"message": "no more", "code": code}});
                events(&[&format!("{}data: {error}\n\n", content_event(self.name))])
            }
            Does::Linger => {
                let all = format!("{}data: [DONE]\n\n", content_event(self.name));
                let all = stream::iter([Ok::<_, Infallible>(Bytes::from(all))]);
                let body = Body::from_stream(all.chain(stream::pending()));
                ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
            }
            Does::Cut { spoken: true } => events(&[&content_event(self.name)]),
            Does::Cut { spoken: false } => {
                events(&["data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"])
            }
        }
    }
}

fn content_event(text: &str) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"delta": {"content": text}}]})
    )
}

fn dawdling(name: &'static str) -> Response {
    let words = stream::unfold(0, move |reply| async move {
        let word = match reply {
            0 => content_event(name),
            1..=4 => {
                tokio::time::sleep(std::time::Duration::from_millis(800)).await;
                let end = if reply == 4 { "data: [DONE]\n\n" } else { "" };
                format!("{}{end}", content_event(name))
            }
            _ => return None,
        };
        Some((Ok::<_, Infallible>(word), reply + 1))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(words)).into_response()
}

fn events(events: &[&str]) -> Response {
    let events: Vec<_> = events
        .iter()
        .map(|event| Ok::<_, Infallible>(Bytes::from((*event).to_owned())))
        .collect();
    let body = Body::from_stream(stream::iter(events));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Two clouds and the tier of this machine, in a chain `night`.
struct Night {
    bench: Bench,
    a: Cloud,
    b: Cloud,
    here: Cloud,
}

impl Night {
    async fn new(change: impl FnOnce(&mut ChainConfig)) -> Self {
        let bench = Bench::new("127.0.0.1:11435").await;
        let (a, b, here) = (Cloud::new("a"), Cloud::new("b"), Cloud::new("here"));
        bench.endpoint("cloud-a", a.routes()).await;
        bench.endpoint("cloud-b", b.routes()).await;
        bench.load(here.routes());
        let steps = ["cloud-a", "cloud-b", "fast"];
        let mut chain = ChainConfig {
            steps: steps
                .map(|step| Step::try_from(step.to_owned()).unwrap())
                .into(),
            retries: 0,
            ..ChainConfig::default()
        };
        change(&mut chain);
        let name = TierId::new("night").unwrap();
        bench.config.lock().unwrap().chains.insert(name, chain);
        Self { bench, a, b, here }
    }

    /// Sets both prices of an endpoint.
    fn price(&self, tier: &str, dollars: f64) {
        let tier = TierId::new(tier).unwrap();
        let mut config = self.bench.config.lock().unwrap();
        let Engine::Endpoint(engine) = &mut config.tiers.get_mut(&tier).unwrap().engine else {
            panic!("an endpoint");
        };
        let price = Some(dollars.try_into().unwrap());
        (engine.input_price, engine.output_price) = (price, price);
    }

    async fn ask(&self) -> Response {
        self.bench
            .post(CHAT, r#"{"model": "night", "messages": []}"#)
            .await
    }

    async fn stream(&self) -> Response {
        let ask = r#"{"model": "night", "stream": true, "messages": []}"#;
        self.bench.post(CHAT, ask).await
    }

    fn asked(&self) -> [usize; 3] {
        [self.a.asked(), self.b.asked(), self.here.asked()]
    }
}

async fn content(answer: Response) -> Value {
    json(answer).await["choices"][0]["message"]["content"].take()
}

#[tokio::test]
async fn the_first_step_answers_while_available() {
    let night = Night::new(|_| ()).await;
    let answer = night.ask().await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(answer.headers()["x-tierbar-chain"], "night");
    assert!(!answer.headers().contains_key("x-tierbar-fallback-from"));
    let body = json(answer).await;
    assert_eq!(body["choices"][0]["message"]["content"], "a");
    assert_eq!(body["tierbar"]["fallback_from"], Value::Null);
    assert_eq!(night.asked(), [1, 0, 0]);
}

#[tokio::test]
async fn a_rate_limited_step_is_skipped_meanwhile() {
    let night = Night::new(|chain| chain.mark = true).await;
    night.a.does(Does::Limit(60));
    let answer = night.ask().await;
    assert_eq!(answer.headers()["x-tierbar-fallback-from"], "cloud-a");
    assert_eq!(answer.headers()["x-tierbar-tried"], "cloud-a=overloaded");
    // Another cloud's answer is no poorer: the mark is for this machine's.
    assert_eq!(content(answer).await, "b");
    let again = night.ask().await;
    assert_eq!(again.headers()["x-tierbar-tried"], "cloud-a=passed over");
    assert_eq!(night.asked(), [1, 2, 0]);
}

#[tokio::test]
async fn if_all_are_limited_the_shortest_wait_is_returned() {
    let night = Night::new(|chain| {
        chain.steps.pop();
    })
    .await;
    let direct = async |tier: &str| {
        let ask = json!({"model": tier, "messages": []}).to_string();
        let refused = night.bench.post(CHAT, ask).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        refused.headers()[header::RETRY_AFTER].clone()
    };
    night
        .bench
        .tiers(|tiers| tiers.push(tier("cloud-a", Some("m"), TierState::Ready)));
    night.a.does(Does::Limit(600));
    night.b.does(Does::Limit(300));
    assert_eq!(direct("cloud-a").await, "600");
    for asked in [[1, 1, 0], [0, 0, 0]] {
        night.asked();
        let refused = night.ask().await;
        let wait = refused.headers()[header::RETRY_AFTER].to_str().unwrap();
        assert!((1..=300).contains(&wait.parse::<u32>().unwrap()), "{wait}");
        assert_eq!(night.asked(), asked);
    }
    // It may answer at any moment: the time is unknown.
    let night = Night::new(|chain| {
        chain.steps.pop();
    })
    .await;
    night.a.does(Does::Limit(600));
    night.b.does(Does::Refuse(500));
    let refused = night.ask().await;
    assert!(!refused.headers().contains_key(header::RETRY_AFTER));
}

#[tokio::test]
async fn a_whole_answer_may_exceed_the_first_token_timeout() {
    let night = Night::new(|chain| chain.wait = Span::seconds(2)).await;
    night.a.does(Does::Dawdle);
    let answer = night.ask().await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/json");
    let body = json(answer).await;
    assert_eq!(body["choices"][0]["message"]["content"], "aaaaa", "{body}");
    assert_eq!(body["tierbar"]["tier"], "cloud-a");
    assert_eq!(night.asked(), [1, 0, 0]);
    // If an answer breaks off before any of it was sent, the next step answers.
    night.a.does(Does::Cut { spoken: true });
    assert_eq!(content(night.ask().await).await, "b");
}

#[tokio::test]
async fn a_clouds_comments_do_not_affect_its_answer() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Comment);
    assert_eq!(content(night.ask().await).await, "one two three");
}

#[tokio::test]
async fn a_success_without_a_valid_answer_is_a_failure() {
    for does in [
        Does::Page("text/html", "<html>Login</html>"),
        Does::Page("application/json", "{}"),
        Does::Page(
            "application/json",
            "{\"error\": {\"message\": \"no credit\"}}",
        ),
        Does::Page("text/plain", "data: {\"choices\": []}"),
        Does::Page("text/event-stream", "data: [DONE]\n\n"),
        Does::Page("text/event-stream", ""),
    ] {
        let night = Night::new(|_| ()).await;
        night.a.does(does);
        for _ in 0..3 {
            let answer = night.ask().await;
            assert_eq!(answer.headers()["x-tierbar-fallback-from"], "cloud-a");
            assert_eq!(content(answer).await, "b");
        }
        let broken = night.ask().await;
        assert_eq!(broken.headers()["x-tierbar-tried"], "cloud-a=passed over");
        assert_eq!(night.asked(), [3, 4, 0]);
    }
}

#[tokio::test]
async fn a_cloud_that_breaks_within_an_answer_counts_as_failed() {
    for streams in [false, true] {
        let night = Night::new(|_| ()).await;
        night.a.does(Does::Cut { spoken: true });
        for _ in 0..3 {
            if streams {
                let reply = text(night.stream().await).await;
                assert!(reply.contains("unreachable"), "{reply}");
            } else {
                assert_eq!(content(night.ask().await).await, "b");
            }
        }
        night.asked();
        assert_eq!(content(night.ask().await).await, "b");
        assert_eq!(night.asked(), [0, 1, 0]);
    }
}

#[tokio::test]
async fn an_error_after_the_first_tokens_counts_by_its_kind() {
    for (code, asked) in [
        ("no_credit", [0, 1, 0]),
        ("rate_limit_exceeded", [0, 1, 0]),
        ("context_length_exceeded", [1, 0, 0]),
    ] {
        let night = Night::new(|_| ()).await;
        night.a.does(Does::Regret(code));
        for _ in 0..3 {
            text(night.stream().await).await;
        }
        // A limit is kept to from the first on.
        let times = if code == "rate_limit_exceeded" { 1 } else { 3 };
        assert_eq!(night.asked()[0], times, "{code}");
        night.a.does(Does::Answer);
        text(night.stream().await).await;
        assert_eq!(night.asked(), asked, "{code}");
    }
}

#[tokio::test]
async fn a_late_success_does_not_lift_a_newer_limit() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Dawdle);
    let mut body = night.stream().await.into_body().into_data_stream();
    body.next().await.unwrap().unwrap();
    night.a.does(Does::Limit(60));
    assert_eq!(content(night.ask().await).await, "b");
    while let Some(piece) = body.next().await {
        piece.unwrap();
    }
    drop(body);
    night.asked();
    assert_eq!(content(night.ask().await).await, "b");
    assert_eq!(night.asked(), [0, 1, 0]);
}

#[tokio::test]
async fn an_answer_is_complete_before_the_connection_closes() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Linger);
    assert_eq!(content(night.ask().await).await, "a");
}

#[tokio::test]
async fn a_disconnect_does_not_count_against_the_cloud() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Dawdle);
    for _ in 0..4 {
        let mut body = night.stream().await.into_body().into_data_stream();
        body.next().await.unwrap().unwrap();
        drop(body);
    }
    assert_eq!(night.asked(), [4, 0, 0]);
}

#[tokio::test]
async fn a_cloud_without_streams_can_serve_a_stream() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Whole);
    assert_eq!(content(night.ask().await).await, "a");
    let streamed = night.stream().await;
    assert_eq!(
        streamed.headers()[header::CONTENT_TYPE],
        "text/event-stream"
    );
    let reply = text(streamed).await;
    let mut events = reply.split("\n\n");
    let event = events.next().unwrap().strip_prefix("data: ").unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!(event["object"], "chat.completion.chunk");
    assert_eq!(event["choices"][0]["delta"]["content"], "a");
    assert_eq!(event["choices"][0]["finish_reason"], "stop");
    assert_eq!(event["tierbar"]["tier"], "cloud-a");
    assert_eq!(events.next(), Some("data: [DONE]"));
}

#[tokio::test]
async fn a_request_no_step_can_answer_is_not_queued() {
    let night = Night::new(|chain| {
        let steps = ["cloud-a", "cloud-b", "queue"];
        chain.steps = steps
            .map(|step| Step::try_from(step.to_owned()).unwrap())
            .into();
    })
    .await;
    night.a.does(Does::Refuse(400));
    night.b.does(Does::Refuse(400));
    assert_eq!(night.ask().await.status(), 400);
    night.b.does(Does::Refuse(500));
    assert_eq!(night.ask().await.status(), 202);
}

#[tokio::test]
async fn an_answer_with_a_schema_is_not_marked() {
    let night = Night::new(|chain| chain.mark = true).await;
    night.a.does(Does::Refuse(500));
    night.b.does(Does::Refuse(500));
    let form = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {}}});
    for (form, text) in [
        (json!({"type": "text"}), "[Local Fallback] here"),
        (form, "here"),
    ] {
        let ask = json!({"model": "night", "messages": [], "response_format": form});
        let answer = night.bench.post(CHAT, ask.to_string()).await;
        assert_eq!(answer.headers()["x-tierbar-fallback-from"], "cloud-a");
        assert_eq!(content(answer).await, text);
    }
}

#[tokio::test]
async fn no_hedge_is_waited_for_without_a_next_step() {
    let night = Night::new(|chain| {
        chain.hedge = Span::seconds(60);
        chain.steps.truncate(1);
    })
    .await;
    night.a.does(Does::Refuse(400));
    let begun = tokio::time::Instant::now();
    assert_eq!(night.ask().await.status(), 400);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60));
}

#[tokio::test]
async fn our_own_pause_does_not_count_against_an_endpoint() {
    let night = Night::new(|_| ()).await;
    let name = TierId::new("cloud-a").unwrap();
    let engine = night.bench.config.lock().unwrap().tiers[&name]
        .engine
        .clone();
    let paused = Error::new(Code::Paused, "Tierbar is paused");
    night.bench.other("cloud-a", Err(paused), engine);
    for _ in 0..4 {
        assert_eq!(content(night.ask().await).await, "b");
    }
    let chains = json(night.bench.get("/tierbar/v1/chains").await).await;
    assert_eq!(chains["chains"][0]["steps"][0]["gate"], "open");
}

#[tokio::test]
async fn a_refused_key_is_not_sent_until_replaced() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Refuse(401));
    // One server has both: one key opens them.
    let url = night.bench.config.lock().unwrap().tiers[&TierId::new("cloud-a").unwrap()]
        .engine
        .clone();
    let Engine::Endpoint(engine) = &url else {
        panic!("an endpoint");
    };
    let server = credential(&engine.endpoint).to_owned();
    let b = TierId::new("cloud-b").unwrap();
    night
        .bench
        .config
        .lock()
        .unwrap()
        .tiers
        .get_mut(&b)
        .unwrap()
        .engine = url;
    assert_eq!(content(night.ask().await).await, "here");
    assert_eq!(night.asked(), [1, 0, 1]);
    let chains = json(night.bench.get("/tierbar/v1/chains").await).await;
    let steps = &chains["chains"][0]["steps"];
    assert_eq!(steps[0]["gate"], "refused");
    assert_eq!(steps[1]["gate"], "refused");
    assert_eq!(steps[1]["server"], server);
    assert_eq!(steps[2], json!({"step": "fast"}));
    night.a.does(Does::Answer);
    let path = format!("/tierbar/v1/secrets/{server}");
    let given = night
        .bench
        .ask("PUT", &path, r#"{"value": "another"}"#)
        .await;
    assert_eq!(given.status(), 204);
    assert_eq!(content(night.ask().await).await, "a");
}

#[tokio::test]
async fn a_silent_step_is_given_up_and_a_failing_one_retried() {
    let night = Night::new(|chain| {
        chain.wait = Span::seconds(1);
        chain.retries = 1;
        chain.mark = true;
    })
    .await;
    night.a.does(Does::Hang);
    night.b.does(Does::Refuse(500));
    let answer = night.ask().await;
    assert_eq!(content(answer).await, "[Local Fallback] here");
    assert_eq!(night.asked(), [2, 2, 1]);
}

#[tokio::test]
async fn an_endpoint_that_keeps_failing_is_skipped() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Refuse(500));
    for _ in 0..5 {
        assert_eq!(content(night.ask().await).await, "b");
    }
    assert_eq!(night.asked(), [3, 5, 0]);
}

#[tokio::test]
async fn a_stream_falls_back_only_before_its_first_token() {
    let night = Night::new(|chain| chain.mark = true).await;
    night.a.does(Does::Cut { spoken: false });
    night.b.does(Does::Cut { spoken: false });
    let answer = night.stream().await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    let reply = text(answer).await;
    let first = reply
        .lines()
        .next()
        .unwrap()
        .strip_prefix("data: ")
        .unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["choices"][0]["delta"]["content"], "[Local Fallback] ");
    assert_eq!(first["tierbar"]["fallback_from"], "cloud-a");
    assert!(
        reply.contains("\"here\"") && reply.ends_with("data: [DONE]\n\n"),
        "{reply}"
    );

    night.b.does(Does::Cut { spoken: true });
    let reply = text(night.stream().await).await;
    assert!(
        reply.contains("\"b\"") && !reply.contains("here"),
        "{reply}"
    );
    assert!(reply.contains("\"unreachable\""), "{reply}");
}

#[tokio::test]
async fn a_stream_that_starts_with_an_error_is_that_error() {
    let night = Night::new(|chain| chain.steps.truncate(1)).await;
    night.a.does(Does::Fail);
    let refused = night.stream().await;
    assert_eq!(refused.status(), 502);
    assert_eq!(json(refused).await["error"]["message"], "no credit left");
}

#[tokio::test]
async fn data_held_before_the_first_token_is_limited() {
    let night = Night::new(|chain| chain.wait = Span::seconds(10)).await;
    night.a.does(Does::Babble);
    let answer = night.stream().await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(night.asked(), [1, 0, 0]);
}

#[tokio::test]
async fn if_all_steps_fail_each_has_a_reason() {
    let night = Night::new(|_| ()).await;
    night.a.does(Does::Refuse(500));
    night.b.does(Does::Limit(9));
    night.here.does(Does::Refuse(400));
    let refused = night.ask().await;
    assert_eq!(refused.status(), 502);
    let error = json(refused).await["error"].take();
    assert!(
        error["message"].as_str().unwrap().contains("cloud-b"),
        "{error}"
    );
    assert_eq!(error["tried"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_chain_that_ends_in_the_queue_answers_later() {
    let mut night = Night::new(|chain| chain.steps.push(Step::Queue)).await;
    night.a.does(Does::Refuse(500));
    night.b.does(Does::Hang);
    night.here.does(Does::Refuse(500));
    night
        .bench
        .config
        .lock()
        .unwrap()
        .chains
        .values_mut()
        .for_each(|chain| chain.wait = Span::seconds(1));
    let kept = night.ask().await;
    assert_eq!(kept.status(), 202);
    let id = json(kept).await["id"].as_str().unwrap().to_owned();
    night.b.does(Does::Answer);
    tokio::spawn(night.bench.runner.take().unwrap().run());
    let events = night.bench.get(&format!("/v1/queue/{id}/events")).await;
    assert!(text(events).await.contains("\"done\""));
    let result = night.bench.get(&format!("/v1/queue/{id}/result")).await;
    assert_eq!(content(result).await, "b");
}

#[tokio::test]
async fn unanswered_requests_of_any_dialect_are_queued() {
    let night = Night::new(|chain| chain.steps.push(Step::Queue)).await;
    for cloud in [&night.a, &night.b, &night.here] {
        cloud.does(Does::Refuse(500));
    }
    let said = json!([{"role": "user", "content": "Hi"}]);
    let ask = json!({"model": "night", "max_tokens": 5, "messages": said, "stream": false});
    let respond = json!({"model": "night", "input": said, "stream": false});
    for (path, ask) in [("/v1/messages", &ask), ("/v1/responses", &respond)] {
        let kept = night.bench.post(path, ask.to_string()).await;
        assert_eq!(kept.status(), 202, "{path}");
    }
    // A client that would take it for an empty answer gets the failure, unless it requested the queue.
    let mut streamed = ask.clone();
    streamed["stream"] = true.into();
    for (path, ask) in [
        ("/api/chat", &ask),
        ("/v1/messages", &streamed),
        (CHAT, &streamed),
    ] {
        let failed = night.bench.post(path, ask.to_string()).await;
        assert_eq!(failed.status(), 502, "{path}");
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header("x-tierbar-queue", "allow");
        let request = request.body(ask.to_string().into()).unwrap();
        assert_eq!(night.bench.send(request).await.status(), 202, "{path}");
    }
}

#[tokio::test]
async fn a_request_goes_to_a_step_within_its_cost_limit() {
    let night = Night::new(|chain| chain.cost = 0.01.try_into().unwrap()).await;
    assert_eq!(
        content(night.ask().await).await,
        "here",
        "no price is known"
    );
    night.price("cloud-a", 15.0);
    night.price("cloud-b", 0.5);
    assert_eq!(content(night.ask().await).await, "b");
    assert_eq!(night.asked(), [0, 1, 1]);
}

#[tokio::test]
async fn endpoints_beyond_the_chains_budget_are_skipped() {
    let budget = |text: &str| ChainBudget::try_from(text.to_owned()).ok();
    for (text, answers) in [("0.03 USD a month", "b"), ("0.001 USD a month", "here")] {
        let night = Night::new(|chain| chain.budget = budget(text)).await;
        assert_eq!(content(night.ask().await).await, "here", "without a price");
        // 4096 tokens cost 6 cents, and 0.2 cents.
        night.price("cloud-a", 15.0);
        night.price("cloud-b", 0.5);
        assert_eq!(content(night.ask().await).await, answers, "{text}");
    }
}

#[tokio::test]
async fn a_chain_without_a_tier_here_says_that_its_budget_is_spent() {
    let night = Night::new(|chain| {
        chain.steps.truncate(2);
        chain.budget = ChainBudget::try_from("0.001 USD a month".to_owned()).ok();
    })
    .await;
    night.price("cloud-a", 15.0);
    night.price("cloud-b", 0.5);
    let mut run = json!({"model": "night", "input": "Hi", "way": "calls"});
    for refused in [
        night.ask().await,
        night.bench.ask("POST", "/v1/agent", run.to_string()).await,
    ] {
        assert_eq!(refused.status(), 402);
        let error = json(refused).await["error"].take();
        assert_eq!(error["code"], "budget_spent", "{error}");
        assert_eq!(error["spent"], 0.0, "{error}");
        assert_eq!(error["budget"], 0.001, "{error}");
        assert!(error["cost"].as_f64().unwrap() > 0.001, "{error}");
        assert!(error["resets"].is_string(), "{error}");
    }
    run["stream"] = true.into();
    let events = night.bench.ask("POST", "/v1/agent", run.to_string()).await;
    let events = text(events).await;
    let failed = events.lines().find(|line| line.contains("budget_spent"));
    let failed = failed.and_then(|line| line.strip_prefix("data: "));
    let failed: Value = serde_json::from_str(failed.unwrap()).unwrap();
    assert_eq!(failed["details"]["budget"], 0.001, "{failed}");
    assert_eq!(night.asked(), [0, 0, 0]);
}

#[tokio::test]
async fn a_hedging_chain_starts_the_next_step_after_silence() {
    let night = Night::new(|chain| chain.hedge = Span::seconds(1)).await;
    night.a.does(Does::Hang);
    assert_eq!(content(night.ask().await).await, "b");
    assert_eq!(night.asked(), [1, 1, 0]);
}

#[tokio::test]
async fn the_whole_chain_has_a_timeout() {
    let night = Night::new(|chain| {
        chain.steps.truncate(2);
        chain.time = Span::seconds(1);
    })
    .await;
    night.a.does(Does::Hang);
    let late = night.ask().await;
    assert_eq!(late.status(), 504);
}

#[tokio::test]
async fn a_header_selects_a_chain_for_text_only() {
    let night = Night::new(|_| ()).await;
    let ask = |path: &str, chain: &str| {
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header("x-tierbar-chain", chain)
            .body(Body::from(r#"{"model": "fast", "messages": []}"#))
            .unwrap();
        night.bench.send(request)
    };
    assert_eq!(content(ask(CHAT, "night").await).await, "a");
    assert_eq!(ask(CHAT, "day").await.status(), 404);
    assert_eq!(ask("/v1/embeddings", "night").await.status(), 400);
}
