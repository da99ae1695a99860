//! The queue behind the API, with a worker and a receiver of webhooks that are real servers.

use crate::testing::{Bench, json, text, tier};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Request, Response, StatusCode, header},
    middleware,
    response::IntoResponse,
    routing::post,
};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tierbar_core::{Code, Error, TierState};
use tierbar_http::error::Failure;
use tierbar_inference::dispatch::QueuePermission;
use tokio::{net::TcpListener, sync::mpsc};

mod owners;

const CHAT: &str = "/v1/chat/completions";

async fn bench() -> Bench {
    Bench::new("127.0.0.1:11435").await
}

impl Bench {
    fn jobs(&self) -> Arc<tierbar_jobs::Jobs> {
        Arc::clone(&self.runner.as_ref().unwrap().jobs)
    }

    fn run(&mut self) {
        tokio::spawn(self.runner.take().unwrap().run());
    }

    async fn waiting(&self, headers: &[(&str, &str)], body: &str) -> Response<Body> {
        let mut request = Request::post(CHAT).header(header::HOST, "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.to_owned().into()).unwrap())
            .await
    }

    /// Queues a request and returns its id.
    async fn queued(&self, headers: &[(&str, &str)], body: &str) -> String {
        let headers = [headers, &[("x-tierbar-queue", "only")]].concat();
        let accepted = self.waiting(&headers, body).await;
        assert_eq!(accepted.status(), 202);
        let url = accepted.headers()[header::LOCATION]
            .to_str()
            .unwrap()
            .to_owned();
        let reply = json(accepted).await;
        assert_eq!(
            (&reply["object"], &reply["url"]),
            (&json!("queued.request"), &json!(url))
        );
        reply["id"].as_str().unwrap().to_owned()
    }

    /// The states of a request until its end.
    async fn states(&self, id: &str) -> Vec<Value> {
        let events = text(self.get(&format!("/v1/queue/{id}/events")).await).await;
        let states = events
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        states
            .map(|state| serde_json::from_str(state).unwrap())
            .collect()
    }

    /// What it came to, once it has ended.
    async fn outcome(&self, id: &str) -> Value {
        self.states(id).await;
        json(self.get(&format!("/v1/queue/{id}")).await).await
    }
}

/// A worker that answers with what it was asked, and how often it has been.
fn echo() -> Router {
    let count = Arc::new(AtomicUsize::new(0));
    let answer = |State(count): State<Arc<AtomicUsize>>, body: String| async move {
        let body: Value = serde_json::from_str(&body).unwrap();
        let count = count.fetch_add(1, Ordering::SeqCst) + 1;
        Json(json!({"asked": body, "count": count}))
    };
    Router::new().route(CHAT, post(answer)).with_state(count)
}

#[tokio::test]
async fn a_queued_request_is_answered_later_in_each_way() {
    let mut bench = bench().await;
    let body = r#"{"model":"fast","stream":true,"seed":1}"#;
    let id = bench.queued(&[], body).await;
    let path = format!("/v1/queue/{id}");
    let before = json(bench.get(&path).await).await;
    assert_eq!(
        (&before["state"], &before["result"]),
        (&json!("waiting"), &Value::Null)
    );
    let early = bench.get(&format!("{path}/result")).await;
    assert_eq!(early.status(), 202);
    bench.load(echo());
    bench.run();
    let states = bench.states(&id).await;
    let last = states.last().unwrap();
    assert_eq!(
        (&last["state"], &last["attempts"]),
        (&json!("done"), &json!(1))
    );
    let reply = json(bench.get(&path).await).await;
    let result = &reply["result"];
    assert_eq!(
        (&result["status"], &result["content_type"]),
        (&json!(200), &json!("application/json"))
    );
    assert_eq!(
        result["body"]["asked"],
        json!({"model": "fast", "stream": false, "seed": 1})
    );
    let raw = bench.get(&format!("{path}/result")).await;
    assert_eq!(
        (raw.status(), &raw.headers()["x-tierbar-tier"]),
        (StatusCode::OK, &"fast".parse().unwrap())
    );
    assert_eq!(json(raw).await["count"], 1);
    assert_eq!(bench.get("/v1/queue/none").await.status(), 404);
}

#[tokio::test]
async fn a_queueable_request_may_be_answered_or_refused_now() {
    let bench = bench().await;
    bench.load(echo());
    let allow = [("x-tierbar-queue", "allow"), ("idempotency-key", "k")];
    assert_eq!(bench.waiting(&allow, r#"{"seed":1}"#).await.status(), 200);
    let unknown = bench.waiting(&allow, r#"{"model":"gpt-5"}"#).await;
    assert_eq!(unknown.status(), 404);
    let odd = bench.waiting(&[("x-tierbar-queue", "perhaps")], "{}").await;
    assert_eq!(odd.status(), 400);
    let no_json = bench.waiting(&[("x-tierbar-queue", "only")], "[1]").await;
    assert_eq!(no_json.status(), 400);
    assert_eq!(bench.store.count_jobs().await.unwrap().1, 0);
}

#[tokio::test]
async fn a_transient_failure_is_queued_only_if_allowed() {
    let mut bench = bench().await;
    let short = Error::new(Code::Overloaded, "memory is low");
    bench.loaded.send_replace(Some(Err(short)));
    assert_eq!(bench.waiting(&[], "{}").await.status(), 429);
    let allow = [("x-tierbar-queue", "allow")];
    let accepted = bench.waiting(&allow, r#"{"seed":7}"#).await;
    assert_eq!(accepted.status(), 202);
    let id = json(accepted).await["id"].as_str().unwrap().to_owned();
    bench.load(echo());
    bench.run();
    assert_eq!(
        bench.outcome(&id).await["result"]["body"]["asked"]["seed"],
        7
    );
}

#[tokio::test]
async fn a_queued_failure_is_shown_and_respects_retry_after() {
    let mut bench = bench().await;
    let limited = || async {
        let after = [(header::RETRY_AFTER, "600")];
        (StatusCode::TOO_MANY_REQUESTS, after, "{}")
    };
    let endpoint = Router::new().route(CHAT, post(limited));
    bench.endpoint("cloud", endpoint).await;
    bench.tiers(|tiers| tiers.push(tier("cloud", Some("m"), TierState::Ready)));
    let allow = [("x-tierbar-queue", "allow")];
    let accepted = bench.waiting(&allow, r#"{"model":"cloud"}"#).await;
    assert_eq!(accepted.status(), 202);
    let reply = json(accepted).await;
    let pause = reply["not_before_ms"].as_u64().unwrap() - reply["created_ms"].as_u64().unwrap();
    assert!((599_000..=601_000).contains(&pause), "{reply}");
    assert!(
        reply["reason"].as_str().is_some_and(|why| !why.is_empty()),
        "{reply}"
    );
    bench.run();
}

#[tokio::test]
async fn a_task_can_be_queued() {
    let mut bench = bench().await;
    let request = Request::post("/v1/summarize")
        .header(header::HOST, "localhost")
        .header("x-tierbar-queue", "only");
    let body = r#"{"text":"Short enough as it is.","words":100}"#;
    let accepted = bench.send(request.body(body.into()).unwrap()).await;
    assert_eq!(accepted.status(), 202);
    let id = json(accepted).await["id"].as_str().unwrap().to_owned();
    bench.load(echo());
    bench.run();
    let reply = bench.outcome(&id).await;
    assert!(reply["result"]["status"].is_number(), "{reply}");
}

#[tokio::test]
async fn a_follower_counts_toward_requests_at_once() {
    let bench = Bench::configured("127.0.0.1:11435", |config| {
        config.server.requests_at_once = 1
    })
    .await;
    let id = bench.queued(&[], "{}").await;
    let watching = bench.get(&format!("/v1/queue/{id}/events")).await;
    assert_eq!(watching.status(), 200);
    assert_eq!(
        bench.get(&format!("/v1/queue/{id}/events")).await.status(),
        429
    );
    assert_eq!(bench.get(&format!("/v1/queue/{id}")).await.status(), 200);
    drop(watching);
    assert_eq!(
        bench.get(&format!("/v1/queue/{id}/events")).await.status(),
        200
    );
}

#[tokio::test]
async fn another_servers_transient_failure_is_queued() {
    let mut bench = bench().await;
    let refused = |status: u16| {
        let status = StatusCode::from_u16(status).unwrap();
        move || async move { (status, Json(json!({"error": "theirs"}))) }
    };
    let worker = Router::new()
        .route("/v1/completions", post(refused(529)))
        .route(CHAT, post(refused(422)));
    bench.load(worker);
    let request = Request::post("/v1/completions")
        .header(header::HOST, "localhost")
        .header("x-tierbar-queue", "allow")
        .header("x-tierbar-attempts", "1");
    let accepted = bench.send(request.body("{}".into()).unwrap()).await;
    assert_eq!(accepted.status(), 202);
    let passing = json(accepted).await["id"].as_str().unwrap().to_owned();
    let refused = bench.queued(&[], "{}").await;
    bench.run();
    for (id, status) in [(passing, 529), (refused, 422)] {
        let reply = bench.outcome(&id).await;
        assert_eq!(
            (&reply["state"], &reply["result"]["status"]),
            (&json!("failed"), &json!(status))
        );
        assert_eq!(reply["result"]["body"], json!({"error": "theirs"}));
        assert_eq!(
            bench.get(&format!("/v1/queue/{id}/result")).await.status(),
            status
        );
    }
}

#[tokio::test]
async fn a_transient_failure_is_retried_until_it_ends() {
    let mut bench = bench().await;
    let count = Arc::new(AtomicUsize::new(0));
    let answer = |State(count): State<Arc<AtomicUsize>>| async move {
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            _ => Json(json!({"ok": true})).into_response(),
        }
    };
    bench.load(Router::new().route(CHAT, post(answer)).with_state(count));
    let id = bench.queued(&[], "{}").await;
    bench.run();
    let states = bench.states(&id).await;
    assert!(
        states.iter().any(|state| state["state"] == "waiting"
            && state["attempts"] == 1
            && state["reason"].as_str().unwrap().contains("503")),
        "{states:?}"
    );
    let last = states.last().unwrap();
    assert_eq!(
        (&last["state"], &last["attempts"]),
        (&json!("done"), &json!(2))
    );
}

#[tokio::test]
async fn an_idempotency_key_names_one_request() {
    let bench = bench().await;
    let key = [("idempotency-key", "night")];
    let first = bench.queued(&key, r#"{"seed":1}"#).await;
    assert_eq!(bench.queued(&key, r#"{"seed":1}"#).await, first);
    for options in ["only", "allow"] {
        let headers = [("x-tierbar-queue", options), key[0]];
        let other = bench.waiting(&headers, r#"{"seed":2}"#).await;
        assert_eq!(other.status(), 409);
        assert_eq!(json(other).await["error"]["code"], "conflict");
        let same = bench.waiting(&headers, r#"{"seed":1}"#).await;
        assert_eq!(json(same).await["id"], first);
    }
}

#[tokio::test]
async fn a_job_cancelled_while_it_runs_is_never_answered() {
    let mut bench = bench().await;
    let (asked, mut asking) = mpsc::unbounded_channel();
    let never = move || {
        asked.send(()).unwrap();
        std::future::pending::<()>()
    };
    bench.load(Router::new().route(CHAT, post(never)));
    let id = bench.queued(&[], "{}").await;
    bench.run();
    asking.recv().await.unwrap();
    let path = format!("/v1/queue/{id}");
    let cancelled = json(bench.ask("DELETE", &path, Body::empty()).await).await;
    assert_eq!(cancelled["state"], "cancelled");
    bench.released().await;
    let reply = bench.outcome(&id).await;
    assert_eq!(
        (&reply["state"], &reply["error"]["code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    assert_eq!(bench.get(&format!("{path}/result")).await.status(), 409);
    for (asked, status) in [("keep=ended", 409), ("keep=all", 400)] {
        let refused = bench
            .ask("DELETE", &format!("{path}?{asked}"), Body::empty())
            .await;
        assert_eq!(refused.status(), status, "{asked}");
    }
    let removed = bench.ask("DELETE", &path, Body::empty()).await;
    assert_eq!(removed.status(), 204);
    assert_eq!(bench.get(&path).await.status(), 404);
}

#[tokio::test]
async fn no_job_starts_in_a_pause_and_running_ones_are_returned() {
    let mut bench = bench().await;
    bench.ask("POST", "/tierbar/v1/pause", "{}").await;
    let (asked, mut asking) = mpsc::unbounded_channel();
    let never = move || {
        asked.send(()).unwrap();
        std::future::pending::<()>()
    };
    bench.load(Router::new().route(CHAT, post(never)));
    let late = bench.queued(&[("x-tierbar-deadline", "1s")], "{}").await;
    let id = bench.queued(&[], "{}").await;
    let runner = tokio::spawn(bench.runner.take().unwrap().run());
    // Deadlines pass in a pause too, and nothing was tried meanwhile.
    let last = bench.states(&late).await.pop().unwrap();
    assert_eq!(
        (&last["state"], &last["attempts"]),
        (&json!("expired"), &json!(0))
    );
    assert_eq!(bench.store.job(&id).await.unwrap().attempts, 0);
    bench.ask("POST", "/tierbar/v1/resume", "{}").await;
    asking.recv().await.unwrap();
    assert_eq!(bench.store.job(&id).await.unwrap().attempts, 1);
    bench.closing.cancel();
    runner.await.unwrap();
    let job = bench.store.job(&id).await.unwrap();
    assert_eq!((job.attempts, job.reason), (0, None));
    assert!(!job.state.has_ended());
}

#[tokio::test]
async fn a_deadline_ends_a_running_job() {
    let mut bench = bench().await;
    bench.load(Router::new().route(CHAT, post(std::future::pending::<()>)));
    let id = bench.queued(&[("x-tierbar-deadline", "1s")], "{}").await;
    bench.run();
    let reply = bench.outcome(&id).await;
    assert_eq!(reply["state"], "expired");
    let result = bench.get(&format!("/v1/queue/{id}/result")).await;
    assert_eq!(result.status(), 504);
}

/// A receiver that takes nothing at first.
async fn receiver(refusals: usize) -> (String, mpsc::UnboundedReceiver<(HeaderMap, Bytes)>) {
    let (reply, hearing) = mpsc::unbounded_channel();
    let count = Arc::new(AtomicUsize::new(0));
    let hear = move |headers: HeaderMap, body: Bytes| async move {
        reply.send((headers, body)).unwrap();
        if count.fetch_add(1, Ordering::SeqCst) < refusals {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        StatusCode::NO_CONTENT
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let routes = Router::new().route("/hook", post(hear));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, hearing)
}

#[tokio::test]
async fn a_webhook_is_signed_and_retried_until_accepted() {
    use hmac::{Hmac, KeyInit, Mac};
    let mut bench = bench().await;
    bench.load(echo());
    let (url, mut hearing) = receiver(1).await;
    let owner = format!("Bearer {}", bench.token.as_str());
    let headers = [("x-tierbar-webhook", &*url), ("authorization", &owner)];
    let id = bench.queued(&headers, r#"{"seed":3}"#).await;
    bench.run();
    let secret = json(bench.get("/tierbar/v1/queue/secret").await).await;
    let secret = secret["secret"].as_str().unwrap().to_owned();
    let (first, again) = (hearing.recv().await.unwrap(), hearing.recv().await.unwrap());
    for (headers, body) in [&first, &again] {
        let signed = headers["x-tierbar-signature"].to_str().unwrap();
        let (at, hash) = signed
            .strip_prefix("t=")
            .unwrap()
            .split_once(",v1=")
            .unwrap();
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("{at}.").as_bytes());
        mac.update(body);
        assert_eq!(HEXLOWER.encode(&mac.finalize().into_bytes()), hash);
        let reply: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(
            (&reply["id"], &reply["state"]),
            (&json!(id), &json!("done"))
        );
        assert_eq!(reply["result"]["body"]["asked"]["seed"], 3);
    }
    let reply = bench.outcome(&id).await;
    assert_eq!(
        reply["attempts"], 1,
        "a webhook that was not taken is no attempt"
    );
}

#[tokio::test]
async fn a_failed_answer_may_name_its_queued_request() {
    let mut bench = bench().await;
    // Stands for a sender that has tried everything else.
    let refuse = || async {
        let error = Error::new(Code::BadRequest, "no tier could");
        let mut response = Failure(error).into_response();
        response.extensions_mut().insert(QueuePermission);
        response
    };
    let jobs = bench.jobs();
    let keep = middleware::from_fn_with_state(jobs.clone(), tierbar_jobs::queue::keep);
    bench.router = Router::new()
        .route(CHAT, post(refuse))
        .route_layer(keep)
        .with_state(jobs);
    assert_eq!(bench.waiting(&[], "{}").await.status(), 202);
}

#[tokio::test]
async fn queued_requests_are_listed_for_the_owner() {
    let bench = bench().await;
    let id = bench.queued(&[("x-tierbar-priority", "high")], "{}").await;
    let listed = json(bench.get("/tierbar/v1/queue?state=waiting&limit=5").await).await;
    assert_eq!(listed["counts"], json!({"waiting": 1}));
    assert_eq!(
        (&listed["jobs"][0]["id"], &listed["jobs"][0]["priority"]),
        (&json!(id), &json!("high"))
    );
    let none = json(bench.get("/tierbar/v1/queue?state=done").await).await;
    assert_eq!(none["jobs"], json!([]));
    for odd in ["state=odd", "limit=0", "limit=1001"] {
        let refused = bench.get(&format!("/tierbar/v1/queue?{odd}")).await;
        assert_eq!(refused.status(), 400, "{odd}");
    }
    let request = Request::get("/tierbar/v1/queue").header(header::HOST, "localhost");
    let stranger = bench.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(stranger.status(), 401);
}
