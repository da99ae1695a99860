use crate::testing::{Bench, json, text};
use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use http_body_util::BodyExt;
use serde_json::json;
use tierbar_core::{
    TierId,
    journal::{Entry, Kind, LogEvent},
};

const ADDRESS: &str = "127.0.0.1:11435";

#[tokio::test]
async fn any_model_name_can_be_part_of_a_path() {
    let bench = Bench::new(ADDRESS).await;
    for (method, path, asked) in [
        ("DELETE", "models/gemma%3A4b", "remove gemma:4b false"),
        (
            "DELETE",
            "models/%2Fm%2Fa%20b.gguf?permanently=true",
            "remove /m/a b.gguf true",
        ),
        ("DELETE", "models/%2E%2E%2Ftoken", "remove ../token false"),
        ("POST", "models/M%C3%B6we/verify", "verify Möwe"),
        ("GET", "hub/search?q=gemma%204+it", "search gemma 4 it"),
        ("GET", "hub/repository?id=a%2Fb", "repository a/b"),
        ("GET", "hub/readme?id=a%2Fb", "readme a/b"),
        ("DELETE", "downloads/7", "remove download 7"),
        ("GET", "catalog", "catalog"),
        ("POST", "catalog/refresh", "refresh catalog"),
        ("GET", "models", "list"),
    ] {
        let response = bench
            .ask(method, &format!("/tierbar/v1/{path}"), Body::empty())
            .await;
        assert_eq!(response.status(), 409, "{path}");
        assert_eq!(json(response).await["error"]["code"], "model_in_use");
        assert_eq!(bench.asked.take(), [asked], "{path}");
    }
}

#[tokio::test]
async fn invalid_input_is_refused_before_the_host_is_called() {
    let bench = Bench::new(ADDRESS).await;
    for (method, path, body, part) in [
        ("GET", "models/fit", "", "missing field `model`"),
        ("GET", "models/fit?model=m&context=many", "", "context"),
        ("GET", "hub/search", "", "missing field `q`"),
        (
            "GET",
            "history?minutes=0",
            "",
            "minutes is 0; it must be between 1 and",
        ),
        ("GET", "history?minutes=43201", "", "minutes is 43201"),
        ("GET", "history?minutes=-1", "", "minutes"),
        (
            "GET",
            "log?limit=0",
            "",
            "limit is 0; it must be between 1 and 1000",
        ),
        ("GET", "log?limit=1001", "", "limit is 1001"),
        ("GET", "log?before=-1", "", "before"),
        ("GET", "log?tier=F%20st", "", "cannot name a tier"),
        ("DELETE", "models/m?permanently=perhaps", "", "permanently"),
        ("DELETE", "models/%FF", "", "not UTF-8"),
        ("POST", "models/import", "{}", "missing field `path`"),
        ("POST", "downloads", "", "missing field `reference`"),
        (
            "POST",
            "downloads",
            r#"{"reference":"a/b","priority":"urgent"}"#,
            "unknown variant `urgent`",
        ),
        (
            "PATCH",
            "downloads/1",
            r#"{"state":"gone"}"#,
            "unknown variant `gone`",
        ),
    ] {
        let response = bench
            .ask(method, &format!("/tierbar/v1/{path}"), body)
            .await;
        assert!(response.status().is_client_error(), "{path}");
        let body = json(response).await;
        let error = body["error"]["message"].as_str().unwrap();
        assert!(error.contains(part), "{path}: {error}");
        assert_eq!(bench.asked.take(), [""; 0]);
    }
}

#[tokio::test]
async fn history_covers_the_requested_minutes() {
    let bench = Bench::new(ADDRESS).await;
    for (query, minutes) in [("", 10), ("?minutes=1", 1), ("?minutes=43200", 43_200)] {
        let history = json(bench.get(&format!("/tierbar/v1/history{query}")).await).await;
        assert_eq!(history["step_seconds"], minutes);
        assert_eq!(history["points"][0]["at"], 60);
    }
    let since = bench.get("/tierbar/v1/history?minutes=60&since=61").await;
    let since = json(since).await;
    assert_eq!(since["points"].as_array().unwrap().len(), 1);
    assert_eq!(since["points"][0]["at"], 120);
}

#[tokio::test]
async fn expect_names_a_tier_like_a_request() {
    let bench = Bench::new(ADDRESS).await;
    let expect = |body| bench.ask("POST", "/tierbar/v1/expect", body);
    for body in ["", "{}", r#"{"model":"auto"}"#, r#"{"model":"small"}"#] {
        // Nothing is loaded: a request would wait.
        let response = expect(body).await;
        assert_eq!(
            (response.status(), text(response).await.as_str()),
            (StatusCode::NO_CONTENT, "")
        );
        assert_eq!(bench.asked.take(), ["expect fast"], "{body}");
    }
    for (body, status) in [(r#"{"model":"large"}"#, 404), (r#"{"model":1}"#, 400)] {
        assert_eq!(expect(body).await.status(), status, "{body}");
        assert_eq!(bench.asked.take(), [""; 0]);
    }
    let stranger = Request::post("/tierbar/v1/expect").header("host", ADDRESS);
    let response = bench.send(stranger.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 401);
}

#[tokio::test]
async fn the_log_is_paged_and_filtered_by_tier() {
    let bench = Bench::new(ADDRESS).await;
    let entry = |id, tier| Entry {
        id,
        at_ms: 1000 * id,
        what: LogEvent::for_tier(
            Kind::Load,
            &TierId::new(tier).unwrap(),
            None,
            format!("{tier} loads"),
        ),
    };
    let reply = (1..=101).map(|id| entry(id, if id % 2 == 0 { "fast" } else { "heavy" }));
    bench.store.add_entries(reply.collect()).await.unwrap();
    let ids = async |query: &str| {
        let page = json(bench.get(&format!("/tierbar/v1/log{query}")).await).await;
        let entries = page["entries"].as_array().unwrap();
        let ids = entries.iter().map(|entry| entry["id"].as_u64().unwrap());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, (2..=101).rev().collect::<Vec<_>>());
    assert_eq!(ids("?before=2").await, [1]);
    assert_eq!(ids("?limit=2&tier=fast").await, [100, 98]);
    assert_eq!(ids("?limit=2&tier=fast&before=98").await, [96, 94]);
    assert_eq!(ids("?tier=gone").await, [0; 0]);
    let page = json(bench.get("/tierbar/v1/log?limit=1").await).await;
    let last = json!({"id": 101, "at_ms": 101_000, "kind": "load", "tier": "heavy", "model": null, "sentence": "heavy loads"});
    assert_eq!(page, json!({"entries": [last]}));
}

#[tokio::test]
async fn a_new_download_is_created_and_a_running_one_returned() {
    let bench = Bench::new(ADDRESS).await;
    let body = json!({"reference": "a/b:Q4", "priority": "high", "anyway": true}).to_string();
    for status in [201, 200] {
        let response = bench
            .ask("POST", "/tierbar/v1/downloads", body.clone())
            .await;
        assert_eq!(response.status(), status);
        assert_eq!(json(response).await["priority"], "high");
    }
    let asked = bench.asked.take();
    assert!(asked[0].contains("anyway: true"), "{asked:?}");
}

#[tokio::test]
async fn a_secret_is_stored_and_listed_but_never_returned() {
    let bench = Bench::new(ADDRESS).await;
    let path = "/tierbar/v1/secrets/hugging-face";
    let value = "hf_not_to_be_seen";
    let list = async |source: Option<&str>| {
        let listed = json(bench.get("/tierbar/v1/secrets").await).await;
        let expected = json!({"secrets": [
            {"name": "hugging-face", "source": source},
            {"name": "brave-search", "source": null},
        ]});
        assert_eq!(listed, expected);
    };
    list(None).await;
    let set = bench
        .ask("PUT", path, json!({"value": value}).to_string())
        .await;
    assert_eq!(set.status(), 204);
    list(Some("file")).await;
    assert_eq!(bench.ask("DELETE", path, "").await.status(), 204);
    list(None).await;

    for (path, body, status) in [
        (path, json!({"value": [value]}), 400),
        (path, json!({"value": format!("two {value}")}), 400),
        (path, json!(value), 400),
        ("/tierbar/v1/secrets/open-ai", json!({"value": value}), 404),
    ] {
        let refused = bench.ask("PUT", path, body.to_string()).await;
        assert_eq!(refused.status(), status, "{body}");
        let reply = text(refused).await;
        assert!(!reply.contains(value), "{reply}");
    }
    // The token guards all of it.
    let response = bench.post("/tierbar/v1/downloads", "{}").await;
    assert_eq!(response.status(), 401);
}

#[tokio::test]
async fn a_measurement_ends_with_its_client_and_runs_alone() {
    let bench = Bench::new(ADDRESS).await;
    for (path, body, reply) in [
        ("bench", r#"{"depths": [0, 7]}"#, "fast [0, 7]"),
        ("tune", r#"{"threads": [2]}"#, "fast Some([2])"),
        ("agent", "", "fast"),
    ] {
        let path = format!("/tierbar/v1/tiers/fast/{path}");
        // The one before hears in a task of its own that its client has gone.
        let running = loop {
            let begun = bench.ask("POST", &path, body).await;
            if begun.status() != 409 {
                break begun;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(running.status(), 200);
        let mut stream = running.into_body();
        let first = stream.frame().await.unwrap().unwrap();
        let first = String::from_utf8(first.into_data().unwrap().to_vec()).unwrap();
        assert!(first.starts_with("event: progress\ndata: "), "{first}");
        assert!(first.contains(reply), "{first}");
        let second = bench.ask("POST", &path, "").await;
        assert_eq!(second.status(), 409);
        assert_eq!(json(second).await["error"]["code"], "measuring");
        // What an agent's measurement finds is in the list of models.
        let last = if path.ends_with("agent") { 405 } else { 404 };
        assert_eq!(bench.get(&path).await.status(), last);
    }
}

#[tokio::test]
async fn an_impossible_measurement_is_refused_at_once() {
    let bench = Bench::new(ADDRESS).await;
    for (path, body, status, part) in [
        ("fast/bench", r#"{"runs": 1}"#, 400, "`runs` is 1"),
        (
            "fast/bench",
            r#"{"depth": [0]}"#,
            400,
            "unknown field `depth`",
        ),
        ("fast/tune", r#"{"batch": [1]}"#, 400, "`batch` is 1"),
        ("F%20st/tune", "", 404, "no tier named"),
    ] {
        let path = format!("/tierbar/v1/tiers/{path}");
        let refused = bench.ask("POST", &path, body).await;
        assert_eq!(refused.status(), status, "{path}");
        let error = json(refused).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(
        bench
            .post("/tierbar/v1/tiers/fast/bench", "")
            .await
            .status(),
        401
    );
}
