use crate::testing::{Bench, json};
use axum::{
    Router,
    body::Body,
    http::{Request, Response, header},
    routing::post,
};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tower::ServiceExt;

const CHAT: &str = "/v1/chat/completions";
const HERE: &str = "127.0.0.1:11435";
const EVERYWHERE: &str = "0.0.0.0:11435";

/// Makes a key, and tells its text.
async fn key(bench: &Bench, name: &str, limits: Value) -> String {
    let mut body = limits;
    body["name"] = name.into();
    let made = bench
        .ask("POST", "/tierbar/v1/keys", body.to_string())
        .await;
    assert_eq!(made.status(), 201);
    json(made).await["key"].as_str().unwrap().to_owned()
}

async fn send(bench: &Bench, method: &str, path: &str, header: (&str, &str)) -> Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "localhost")
        .header(header.0, header.1);
    let body = if method == "POST" {
        Body::from(r#"{"model": "fast", "stream": true, "messages": []}"#)
    } else {
        Body::empty()
    };
    bench.send(request.body(body).unwrap()).await
}

async fn chat(bench: &Bench, key: &str) -> Response<Body> {
    send(
        bench,
        "POST",
        CHAT,
        ("authorization", &format!("Bearer {key}")),
    )
    .await
}

/// A worker that answers whole, and says what it took.
fn answers(usage: Value) -> Router {
    let answer = json!({"choices": [], "usage": usage}).to_string();
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Router::new().route(CHAT, post(move || async move { (kind, answer) }))
}

#[tokio::test]
async fn a_key_allows_inference_but_never_admin() {
    let bench = Bench::new(EVERYWHERE).await;
    bench.load(answers(json!({})));
    let key = key(&bench, "laptop", json!({})).await;
    assert!(key.starts_with("tb-"));
    let bearer = format!("Bearer {key}");
    for header in [("authorization", bearer.as_str()), ("x-api-key", &key)] {
        assert_eq!(send(&bench, "POST", CHAT, header).await.status(), 200);
        assert_eq!(
            send(&bench, "GET", "/v1/models", header).await.status(),
            200
        );
        for (method, path) in [
            ("GET", "/tierbar/v1/status"),
            ("GET", "/tierbar/v1/keys"),
            ("POST", "/tierbar/v1/keys"),
            ("POST", "/tierbar/v1/session"),
            ("POST", "/tierbar/v1/tiers/fast/stop"),
        ] {
            let refused = send(&bench, method, path, header).await;
            assert_eq!(refused.status(), 401, "{path}");
        }
    }
    let owner = send(&bench, "POST", CHAT, ("x-api-key", bench.token.as_str())).await;
    assert_eq!(owner.status(), 200);
    for wrong in [
        "tb-wrong",
        "sk-none",
        "",
        &key[..key.len() - 1],
        &format!("{key}x"),
    ] {
        let refused = chat(&bench, wrong).await;
        assert_eq!(refused.status(), 401, "{wrong}");
        assert_eq!(json(refused).await["error"]["code"], "unauthorized");
    }
    assert_eq!(bench.post(CHAT, "{}").await.status(), 401);
}

#[tokio::test]
async fn loopback_is_open_except_for_invalid_keys() {
    let open = Bench::new(HERE).await;
    open.load(answers(json!({})));
    for dummy in ["ollama", "sk-none", ""] {
        assert_eq!(chat(&open, dummy).await.status(), 200, "{dummy}");
    }
    assert_eq!(chat(&open, "tb-unknown").await.status(), 401);

    let closed = Bench::configured(HERE, |config| config.server.require_keys = true).await;
    closed.load(answers(json!({})));
    assert_eq!(chat(&closed, "ollama").await.status(), 401);
    assert_eq!(closed.post(CHAT, "{}").await.status(), 401);
    let key = key(&closed, "mine", json!({})).await;
    assert_eq!(chat(&closed, &key).await.status(), 200);
    let begun = closed.ask("POST", "/tierbar/v1/session", "").await;
    let half = |name: &str| begun.headers()[name].clone();
    let request = Request::post(CHAT)
        .header(header::HOST, "localhost")
        .header("cookie", half("set-cookie"))
        .header("x-tierbar-session", half("x-tierbar-session"));
    let body = Body::from(r#"{"model": "fast", "messages": []}"#);
    let browser = closed.send(request.body(body).unwrap()).await;
    assert_eq!(browser.status(), 200);
}

#[tokio::test]
async fn a_key_is_shown_once_listed_without_its_text_and_revoked() {
    let bench = Bench::new(HERE).await;
    bench.load(answers(json!({})));
    let key = key(&bench, "job", json!({"at_once": 2})).await;
    let again = bench
        .ask("POST", "/tierbar/v1/keys", r#"{"name": "job"}"#)
        .await;
    assert_eq!(again.status(), 409);
    for wrong in [
        r#"{"name": "a b"}"#,
        r#"{}"#,
        r#"{"name": "a", "at_once": 0}"#,
        r#"{"name": "a", "at_onec": 1}"#,
        r#"{"name": "a", "requests_per_minute": -1}"#,
    ] {
        let refused = bench.ask("POST", "/tierbar/v1/keys", wrong).await;
        assert_eq!(refused.status(), 400, "{wrong}");
    }
    assert_eq!(chat(&bench, &key).await.status(), 200);
    let listed = json(bench.get("/tierbar/v1/keys").await).await;
    assert!(!listed.to_string().contains(&key[3..]), "{listed}");
    let reply = &listed["keys"][0];
    assert_eq!(
        (&reply["name"], &reply["at_once"]),
        (&json!("job"), &json!(2))
    );
    assert!(
        reply["last_used_ms"].as_u64() >= reply["created_ms"].as_u64(),
        "{reply}"
    );
    assert_eq!(reply["revoked_ms"], Value::Null);

    for expected in [204, 404] {
        let revoked = bench.ask("DELETE", "/tierbar/v1/keys/job", "").await;
        assert_eq!(revoked.status(), expected);
    }
    let refused = chat(&bench, &key).await;
    assert_eq!(refused.status(), 401);
    let message = json(refused).await["error"]["message"].clone();
    assert_eq!(message, "the key job has been revoked");
    let next = self::key(&bench, "job", json!({})).await;
    assert_eq!(chat(&bench, &next).await.status(), 200);
    assert_eq!(chat(&bench, &key).await.status(), 401);
}

#[tokio::test]
async fn requests_per_minute_are_counted_per_key() {
    let bench = Bench::new(HERE).await;
    bench.load(answers(json!({})));
    let limited = key(&bench, "limited", json!({"requests_per_minute": 2})).await;
    let other = key(&bench, "other", json!({"requests_per_minute": 2})).await;
    for _ in 0..2 {
        assert_eq!(chat(&bench, &limited).await.status(), 200);
        // What only lists is not counted.
        let listed = send(&bench, "GET", "/v1/models", ("x-api-key", &limited)).await;
        assert_eq!(listed.status(), 200);
    }
    let refused = chat(&bench, &limited).await;
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    let error = json(refused).await;
    assert_eq!(error["error"]["code"], "overloaded");
    assert_eq!(error["error"]["retry_after_seconds"], wait);
    assert_eq!(chat(&bench, &other).await.status(), 200);
}

#[tokio::test]
async fn tokens_per_day_survive_a_restart() {
    let bench = Bench::new(HERE).await;
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
        data: {\"choices\":[],\"timings\":{\"prompt_n\":100,\"cache_n\":300,\"predicted_n\":200}}\n\ndata: [DONE]\n\n";
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    let whole = json!({"choices": [], "usage": {"total_tokens": 500}}).to_string();
    bench.load(
        Router::new()
            .route(CHAT, post(move || async move { (kind, stream) }))
            .route(
                "/v1/completions",
                post(|| async move { ([(header::CONTENT_TYPE, "application/json")], whole) }),
            ),
    );
    let key = key(&bench, "daily", json!({"tokens_per_day": 1000})).await;
    let streamed = chat(&bench, &key).await;
    assert_eq!(streamed.status(), 200);
    assert!(crate::testing::text(streamed).await.contains("[DONE]"));
    let bearer = ("authorization", format!("Bearer {key}"));
    let bearer = (bearer.0, bearer.1.as_str());
    let whole = send(&bench, "POST", "/v1/completions", bearer).await;
    assert_eq!(whole.status(), 200);
    drop(whole);
    // 1100 of 1000 are used.
    let refused = chat(&bench, &key).await;
    assert_eq!(refused.status(), 429);
    let error = json(refused).await["error"].clone();
    let wait = error["retry_after_seconds"].as_u64().unwrap();
    assert!((8_000..=8_800).contains(&wait), "{error}");

    bench.keys.save().await;
    let again = tierbar_edge::Keys::open(bench.store.clone()).await.unwrap();
    let again = std::sync::Arc::new(again);
    let found = again.find(&key).unwrap();
    assert_eq!(
        again
            .enter(Some(found), again.weigh(None), 9)
            .unwrap_err()
            .code,
        tierbar_core::Code::Overloaded
    );
}

#[tokio::test]
async fn answers_without_usage_and_disconnects_are_charged() {
    let bench = Bench::new(HERE).await;
    let words = "word ".repeat(1000);
    let reply = json!([{"role": "user", "content": words}]);
    let ask = json!({"model": "fast", "messages": reply}).to_string();
    let asked = async |bench: &Bench, key: &str| {
        let request = Request::post(CHAT)
            .header(header::HOST, "localhost")
            .header("x-api-key", key)
            .body(Body::from(ask.clone()));
        bench.send(request.unwrap()).await.status()
    };
    // The prompt alone is 1,250.
    let limits = json!({"tokens_per_day": 2000});
    let whole = json!({"choices": [{"message": {"content": words}}]}).to_string();
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let answer = move || async move { (kind, whole) };
    bench.load(Router::new().route(CHAT, post(answer)));
    let wordy = key(&bench, "wordy", limits.clone()).await;
    assert_eq!(asked(&bench, &wordy).await, 200);
    assert_eq!(asked(&bench, &wordy).await, 429);

    let mut bench = Bench::new(HERE).await;
    let (came, mut comes) = mpsc::unbounded_channel();
    let hangs = move || {
        let _ = came.send(());
        std::future::pending::<()>()
    };
    bench.load(Router::new().route(CHAT, post(hangs)));
    let hasty = key(&bench, "hasty", json!({"tokens_per_day": 1000})).await;
    {
        let mut asking = std::pin::pin!(asked(&bench, &hasty));
        tokio::select! {
            _ = &mut asking => panic!("it answers"),
            came = comes.recv() => came.unwrap(),
        }
    }
    bench.released().await;
    assert_eq!(asked(&bench, &hasty).await, 429);
}

/// A worker whose answers stream until the test ends them.
fn streaming() -> (Router, mpsc::UnboundedSender<String>) {
    let (events, receive) = mpsc::unbounded_channel::<String>();
    let receive = std::sync::Arc::new(tokio::sync::Mutex::new(Some(receive)));
    let answer = move || async move {
        let receive = receive.lock().await.take();
        let events = receive.map(UnboundedReceiverStream::new).unwrap();
        let events = tokio_stream::StreamExt::map(events, Ok::<_, std::convert::Infallible>);
        (
            [(header::CONTENT_TYPE, "text/event-stream")],
            Body::from_stream(events),
        )
    };
    (Router::new().route(CHAT, post(answer)), events)
}

#[tokio::test]
async fn a_place_is_taken_until_the_answer_or_client_ends() {
    let mut bench = Bench::configured(HERE, |config| config.server.requests_at_once = 1).await;
    let (worker, events) = streaming();
    bench.load(worker);
    let key = key(&bench, "one", json!({"at_once": 1, "tokens_per_day": 3})).await;
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    events.send(event.repeat(3)).unwrap();
    let answer = chat(&bench, &key).await;
    assert_eq!(answer.status(), 200);
    let mut body = answer.into_body().into_data_stream();
    tokio_stream::StreamExt::next(&mut body)
        .await
        .unwrap()
        .unwrap();
    let refused = bench.post(CHAT, r#"{"messages": []}"#).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "2");
    let listed = bench.get("/v1/models").await;
    assert_eq!(listed.status(), 200);

    // Broken off, and paid for: each piece counts.
    drop(body);
    bench.released().await;
    let refused = json(chat(&bench, &key).await).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(message, "the key one has used its 3 tokens per day");
}

#[tokio::test]
async fn one_key_does_not_take_all_places() {
    let bench = Bench::new(HERE).await;
    let (worker, events) = streaming();
    bench.load(worker);
    let key = key(&bench, "one", json!({"at_once": 1})).await;
    events
        .send("data: {\"choices\":[]}\n\n".to_owned())
        .unwrap();
    let answer = chat(&bench, &key).await;
    assert_eq!(answer.status(), 200);
    let refused = json(chat(&bench, &key).await).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the key one has 1 requests in progress"),
        "{message}"
    );
    drop(answer);
}

#[tokio::test]
async fn bodies_take_no_place_and_limited_memory() {
    let bench = Bench::configured(HERE, |config| config.server.requests_at_once = 1).await;
    bench.load(answers(json!({})));
    let (rest, body) = mpsc::unbounded_channel::<Result<String, std::convert::Infallible>>();
    rest.send(Ok("{\"messages\"".to_owned())).unwrap();
    let slow = bench.post(CHAT, Body::from_stream(UnboundedReceiverStream::new(body)));
    let mut slow = Box::pin(slow);
    assert!((&mut slow).now_or_never().is_none());
    assert_eq!(bench.post(CHAT, r#"{"messages": []}"#).await.status(), 200);
    rest.send(Ok(": []}".to_owned())).unwrap();
    drop(rest);
    assert_eq!(slow.await.status(), 200);

    let mut most = bench.keys.weigh(None);
    most.grow(tierbar_edge::keys::BODIES / 8 * 7).unwrap();
    let refused = bench.post(CHAT, r#"{"messages": []}"#).await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    // The rest is the owner's.
    let owner = bench.ask("POST", CHAT, r#"{"messages": []}"#);
    assert_eq!(owner.await.status(), 200);
    drop(most);
    assert_eq!(bench.post(CHAT, r#"{"messages": []}"#).await.status(), 200);
}

#[tokio::test]
async fn one_key_has_a_share_of_memory_and_values_are_bounded() {
    let bench = Bench::new(EVERYWHERE).await;
    bench.load(answers(json!({})));
    let shown = key(&bench, "greedy", json!({})).await;
    let found = bench.keys.find(&shown).unwrap();
    let mut share = bench.keys.weigh(Some(found));
    share.grow(tierbar_edge::keys::BODIES / 2).unwrap();
    let refused = chat(&bench, &shown).await;
    assert_eq!(refused.status(), 429);
    let owner = send(&bench, "POST", CHAT, ("x-api-key", bench.token.as_str())).await;
    assert_eq!(owner.status(), 200);
    drop(share);
    assert_eq!(chat(&bench, &shown).await.status(), 200);

    let many = format!(r#"{{"messages":[],"x":[{}0]}}"#, "0,".repeat(1 << 20));
    let text = json!({"messages": [], "x": ",".repeat(2 << 20)}).to_string();
    let nested = format!(r#"{{"messages":[],"x":[{}0]}}"#, "[0],".repeat(150_000));
    for (body, status) in [(many, 413), (nested, 413), (text, 200)] {
        let answer = bench.ask("POST", CHAT, body).await;
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn a_request_for_several_answers_counts_as_many() {
    for (path, body) in [
        (CHAT, json!({"model": "fast", "n": 3, "messages": []})),
        (
            "/v1/completions",
            json!({"model": "fast", "prompt": ["a", "b", "c"]}),
        ),
        (
            "/v1/embeddings",
            json!({"model": "fast", "input": ["a", "b", "c"]}),
        ),
        (
            "/api/embed",
            json!({"model": "fast", "input": ["a", "b", "c"]}),
        ),
        ("/v1/triage", json!({"texts": ["a", "b", "c"]})),
    ] {
        let bench = Bench::new(EVERYWHERE).await;
        bench.load(answers(json!({})));
        let shown = key(&bench, "batch", json!({"requests_per_minute": 3})).await;
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header("x-api-key", &shown);
        let request = request.body(Body::from(body.to_string())).unwrap();
        let first = bench.send(request).await;
        assert_ne!(first.status(), 429, "{path}");
        assert_eq!(chat(&bench, &shown).await.status(), 429, "{path}");
    }
}

#[tokio::test]
async fn what_no_server_answers_is_refused_before_it_counts() {
    for (path, body) in [
        (
            CHAT,
            json!({"model": "fast", "n": 1_000_000_000, "messages": []}),
        ),
        (
            CHAT,
            json!({"model": "fast", "n": u64::MAX, "messages": []}),
        ),
        (
            "/v1/embeddings",
            json!({"model": "fast", "input": vec!["a"; 3000]}),
        ),
        ("/v1/triage", json!({"texts": vec!["a"; 1000]})),
    ] {
        let bench = Bench::new(EVERYWHERE).await;
        bench.load(answers(json!({})));
        let shown = key(&bench, "batch", json!({"requests_per_minute": 2})).await;
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header("x-api-key", &shown);
        let request = request.body(Body::from(body.to_string())).unwrap();
        assert_eq!(bench.send(request).await.status(), 400, "{path}");
        assert_eq!(chat(&bench, &shown).await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn an_oversized_brief_gets_a_hint_to_send_lines() {
    let bench = Bench::new(HERE).await;
    let body = format!(r#"{{"entries":[{}0]}}"#, "0,".repeat(1 << 20));
    let refused = bench.post("/v1/brief", body).await;
    assert_eq!(refused.status(), 413);
    let error = json(refused).await;
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("application/x-ndjson"), "{hint}");
}

#[tokio::test]
async fn places_are_kept_for_the_owner() {
    let bench = Bench::configured(HERE, |config| config.server.requests_at_once = 8).await;
    bench.load(answers(json!({})));
    let body = r#"{"messages": []}"#;
    let enter = |most| {
        bench
            .keys
            .enter(None, bench.keys.weigh(None), most)
            .unwrap()
    };
    let mut inside: Vec<_> = (0..7).map(|_| enter(8)).collect();
    assert_eq!(bench.post(CHAT, body).await.status(), 429);
    assert_eq!(bench.ask("POST", CHAT, body).await.status(), 200);
    inside.push(enter(8));
    assert_eq!(bench.ask("POST", CHAT, body).await.status(), 429);
    inside.truncate(6);
    assert_eq!(bench.post(CHAT, body).await.status(), 200);
}

#[tokio::test]
async fn an_apps_page_needs_a_key_where_programs_do() {
    let app = |bench: &Bench, name: &str, value: &str| {
        let request = Request::post(CHAT)
            .header(header::HOST, "localhost")
            .header(header::ORIGIN, "app://obsidian.md")
            .header(name, value);
        let body = Body::from(r#"{"model": "fast", "messages": []}"#);
        let request = request.body(body).unwrap();
        let router = bench.router.clone();
        async move { router.oneshot(request).await.unwrap().status() }
    };
    let open = Bench::new(HERE).await;
    open.load(answers(json!({})));
    assert_eq!(app(&open, "x-none", "").await, 200);
    let keyed = Bench::configured(HERE, |config| config.server.require_keys = true).await;
    keyed.load(answers(json!({})));
    let shown = key(&keyed, "app", json!({})).await;
    assert_eq!(app(&keyed, "x-none", "").await, 401);
    assert_eq!(app(&keyed, "x-api-key", &shown).await, 200);
}
