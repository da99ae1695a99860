//! Requests that were left with an API key.

use super::*;
use crate::tests::edge::sessions::Browser;
use tierbar_edge::{now_ms, sessions::FRESH_MS};

const EVERYWHERE: &str = "0.0.0.0:11435";

/// Creates a key, and returns the header that presents it.
async fn key(bench: &Bench, name: &str, mut limits: Value) -> String {
    limits["name"] = name.into();
    let made = bench
        .ask("POST", "/tierbar/v1/keys", limits.to_string())
        .await;
    assert_eq!(made.status(), 201);
    format!("Bearer {}", json(made).await["key"].as_str().unwrap())
}

async fn left(bench: &Bench, key: &str, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let shown = [("authorization", key), ("x-tierbar-queue", "only")];
    bench.waiting(&[&shown, headers].concat(), body).await
}

async fn id(accepted: Response<Body>) -> String {
    assert_eq!(accepted.status(), 202);
    json(accepted).await["id"].as_str().unwrap().to_owned()
}

/// What a request came to, asked with the owner's token.
async fn came_to(bench: &Bench, id: &str) -> Value {
    let path = format!("/v1/queue/{id}");
    text(
        bench
            .ask("GET", &format!("{path}/events"), Body::empty())
            .await,
    )
    .await;
    json(bench.ask("GET", &path, Body::empty()).await).await
}

/// A worker whose answers take 7 tokens.
fn dear() -> Router {
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2});
    let answer = move || async move { Json(json!({"choices": [], "usage": usage})) };
    Router::new().route(CHAT, post(answer))
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_its_api_key() {
    let bench = Bench::new(EVERYWHERE).await;
    let (a, b) = (
        key(&bench, "a", json!({})).await,
        key(&bench, "b", json!({})).await,
    );
    let same = [("idempotency-key", "night")];
    let first = id(left(&bench, &a, &same, "{}").await).await;
    assert_eq!(id(left(&bench, &a, &same, "{}").await).await, first);
    assert_ne!(id(left(&bench, &b, &same, "{}").await).await, first);
    assert_eq!(left(&bench, &b, &same, r#"{"seed":1}"#).await.status(), 409);
}

/// This machine reaches servers that keys, pages and sandboxed programs do not.
#[tokio::test]
async fn only_the_owner_names_any_host_for_webhooks() {
    let bench = Bench::configured("127.0.0.1:11435", |config| {
        config.queue.webhook_hosts = vec!["hooks.example.com".to_owned()];
    })
    .await;
    let key = key(&bench, "a", json!({})).await;
    let old = Browser::begun(&bench, now_ms() - 2 * FRESH_MS).await;
    let new = Browser::begun(&bench, now_ms()).await;
    let session = |browser: &Browser| {
        let page = ("x-tierbar-session", browser.page.clone());
        vec![("cookie", browser.cookie.clone()), page]
    };
    let owner = format!("Bearer {}", bench.token.as_str());
    for (sender, may) in [
        (vec![("authorization", key)], false),
        (vec![], false),
        (vec![("origin", "app://obsidian.md".to_owned())], false),
        (vec![("origin", "https://friend.example".to_owned())], false),
        (session(&old), false),
        (session(&new), true),
        (vec![("authorization", owner)], true),
    ] {
        let sender: Vec<_> = sender
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        for (webhook, is_listed) in [
            ("https://HOOKS.example.com/x?y", true),
            ("http://127.0.0.1:22/", false),
            ("http://localhost/", false),
            ("http://192.168.1.1/x", false),
            ("https://hooks.example.com.evil.example/", false),
        ] {
            let queue = [("x-tierbar-queue", "only"), ("x-tierbar-webhook", webhook)];
            let answer = bench.waiting(&[&sender[..], &queue].concat(), "{}").await;
            let expected = if may || is_listed { 202 } else { 403 };
            assert_eq!(answer.status(), expected, "{sender:?} {webhook}");
        }
    }
}

#[tokio::test]
async fn a_queued_request_is_charged_to_its_key() {
    let mut bench = Bench::new(EVERYWHERE).await;
    bench.load(dear());
    let (poor, rich) = (
        key(&bench, "poor", json!({"tokens_per_day": 6})).await,
        key(&bench, "rich", json!({})).await,
    );
    let (first, second) = (
        id(left(&bench, &poor, &[], "{}").await).await,
        id(left(&bench, &poor, &[], "{}").await).await,
    );
    let other = id(left(&bench, &rich, &[], "{}").await).await;
    bench.run();
    assert_eq!(came_to(&bench, &first).await["state"], "done");
    // It is the third's turn only once the second was put off.
    assert_eq!(came_to(&bench, &other).await["state"], "done");
    let waits = bench.store.job(&second).await.unwrap();
    assert!(!waits.state.has_ended());
    assert_eq!(waits.attempts, 0, "no tier was asked");
    assert!(waits.not_before_ms > waits.created_ms + 60_000, "{waits:?}");
    assert!(waits.reason.unwrap().contains("6 tokens per day"));
}

#[tokio::test]
async fn a_revoked_keys_jobs_are_not_answered() {
    let mut bench = Bench::new(EVERYWHERE).await;
    bench.load(dear());
    let shown = key(&bench, "lost", json!({})).await;
    let left = id(left(&bench, &shown, &[], "{}").await).await;
    let revoked = bench
        .ask("DELETE", "/tierbar/v1/keys/lost", Body::empty())
        .await;
    assert!(revoked.status().is_success());
    bench.run();
    let reply = came_to(&bench, &left).await;
    assert_eq!(
        (&reply["state"], &reply["error"]["code"]),
        (&json!("failed"), &json!("unauthorized"))
    );
}

#[tokio::test]
async fn a_new_key_of_a_revoked_keys_name_sees_none_of_its_jobs() {
    let mut bench = Bench::new(EVERYWHERE).await;
    bench.load(dear());
    let old = key(&bench, "job", json!({})).await;
    let same = [("idempotency-key", "night")];
    let of_old = id(left(&bench, &old, &same, "{}").await).await;
    bench
        .ask("DELETE", "/tierbar/v1/keys/job", Body::empty())
        .await;
    let new = key(&bench, "job", json!({})).await;
    let seen = Request::get(format!("/v1/queue/{of_old}"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, &new);
    let seen = bench.send(seen.body(Body::empty()).unwrap()).await;
    assert_eq!(seen.status(), 404);
    assert_ne!(id(left(&bench, &new, &same, "{}").await).await, of_old);
    // Nor is the new key charged for it.
    bench.run();
    assert_eq!(came_to(&bench, &of_old).await["state"], "failed");
}

#[tokio::test]
async fn a_queued_request_is_open_to_its_own_key_alone() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let (a, b) = (
        key(&bench, "a", json!({})).await,
        key(&bench, "b", json!({})).await,
    );
    let of_a = id(left(&bench, &a, &[], "{}").await).await;
    let path = format!("/v1/queue/{of_a}");
    let send = async |method: &str, path: &str, key: Option<&str>| {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(header::HOST, "localhost");
        if let Some(key) = key {
            request = request.header(header::AUTHORIZATION, key);
        }
        let answer = bench.send(request.body(Body::empty()).unwrap()).await;
        answer.status()
    };
    for (method, path) in [
        ("GET", path.clone()),
        ("GET", format!("{path}/result")),
        ("GET", format!("{path}/events")),
        ("DELETE", path.clone()),
    ] {
        for other in [Some(&*b), None] {
            let status = send(method, &path, other).await;
            assert_eq!(status, 404, "{method} {path} {other:?}");
        }
    }
    assert_eq!(send("GET", &path, Some(&a)).await, 200);
    assert_eq!(bench.get(&path).await.status(), 200);
    assert_eq!(send("DELETE", &path, Some(&a)).await, 200);
}
