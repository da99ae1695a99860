//! What is fetched and deleted.

use super::{bench, lines, small};
use crate::testing::{Bench, json};
use axum::{
    body::Body,
    http::{Request, header},
};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::download::{DownloadState, DownloadStatus, Priority};

fn download(state: DownloadState, received_bytes: u64) -> DownloadStatus {
    DownloadStatus {
        id: "1".to_owned(),
        reference: "a/c".to_owned(),
        file: "m.gguf".to_owned(),
        files: Vec::new(),
        state,
        priority: Priority::Normal,
        received_bytes,
        total_bytes: Some(100),
        bytes_per_second: 0,
        eta_seconds: None,
        reason: (state == DownloadState::Failed).then(|| "the server is gone".to_owned()),
        warnings: Vec::new(),
    }
}

fn downloads(bench: &Bench, now: Vec<DownloadStatus>) {
    bench
        .status
        .send_modify(|status| Arc::make_mut(status).downloads = now);
}

fn without_token(method: &str, path: &str, model: &str) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "localhost");
    let body = json!({"model": model}).to_string();
    request.body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn without_the_token_nothing_is_pulled_or_deleted() {
    let bench = bench().await;
    for (method, path, message) in [
        (
            "POST",
            "/api/pull",
            "the token is required to download a model; send",
        ),
        ("DELETE", "/api/delete", "the token is required; send"),
    ] {
        let refused = bench.send(without_token(method, path, "a/c")).await;
        assert_eq!(refused.status(), 401, "{path}");
        let error = json(refused).await["error"].take();
        assert!(error.as_str().unwrap().starts_with(message), "{error}");
    }
    let asked = bench.asked.take();
    assert!(
        asked.iter().all(|asked| asked.starts_with("list")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn pulling_an_installed_model_succeeds_at_once() {
    let bench = bench().await;
    bench.asked.keep(vec![small()]);
    for name in ["fast", "small:latest", "a/b:Q4_1"] {
        let body = json!({"model": name}).to_string();
        let reply = lines(bench.ask("POST", "/api/pull", body).await).await;
        assert_eq!(reply, [json!({"status": "success"})], "{name}");
        // Programs pull before they ask, and this one has no token.
        let request = without_token("POST", "/api/pull", name);
        let reply = lines(bench.send(request).await).await;
        assert_eq!(reply, [json!({"status": "success"})], "{name}");
    }
    assert!(bench.asked.take().is_empty());
}

#[tokio::test]
async fn a_download_is_told_line_by_line_to_its_end() {
    let bench = bench().await;
    downloads(&bench, vec![download(DownloadState::Queued, 0)]);
    let answer = bench.ask("POST", "/api/pull", r#"{"name":"a/c"}"#).await;
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    let mut body = answer.into_body();
    let mut next = async || {
        let frame = body.frame().await?.unwrap().into_data().unwrap();
        Some(serde_json::from_slice::<Value>(&frame).unwrap())
    };
    assert_eq!(next().await.unwrap(), json!({"status": "pulling manifest"}));
    downloads(&bench, vec![download(DownloadState::Downloading, 40)]);
    let line = next().await.unwrap();
    assert_eq!(
        (&line["status"], &line["total"], &line["completed"]),
        (&json!("pulling m.gguf"), &json!(100), &json!(40))
    );
    let digest = line["digest"].as_str().unwrap().to_owned();
    assert!(
        digest.starts_with("sha256:") && digest.len() == 71,
        "{digest}"
    );
    downloads(&bench, vec![download(DownloadState::Waiting, 70)]);
    let line = next().await.unwrap();
    assert_eq!(
        (&line["digest"], &line["completed"]),
        (&json!(digest), &json!(70))
    );
    downloads(&bench, vec![download(DownloadState::Verifying, 100)]);
    assert_eq!(
        next().await.unwrap(),
        json!({"status": "verifying sha256 digest"})
    );
    downloads(&bench, vec![download(DownloadState::Done, 100)]);
    assert_eq!(next().await.unwrap(), json!({"status": "success"}));
    assert_eq!(next().await, None);
    let asked = bench.asked.take();
    assert!(
        asked
            .iter()
            .any(|asked| asked.contains("reference: \"a/c\"") && asked.contains("anyway: false"))
    );
}

#[tokio::test]
async fn a_stopped_download_ends_its_progress_stream() {
    for (now, code) in [
        (vec![download(DownloadState::Failed, 40)], "unreachable"),
        (vec![download(DownloadState::Paused, 40)], "paused"),
        (Vec::new(), "cancelled"),
    ] {
        let bench = bench().await;
        downloads(&bench, now);
        let reply = lines(bench.ask("POST", "/api/pull", r#"{"model":"a/c"}"#).await).await;
        assert_eq!(reply.len(), 2);
        assert_eq!(reply[1]["code"], code);
        let whole = bench
            .ask("POST", "/api/pull", r#"{"model":"a/c","stream":false}"#)
            .await;
        assert!(!whole.status().is_success());
        assert_eq!(json(whole).await["code"], code);
    }
    let bench = bench().await;
    downloads(&bench, vec![download(DownloadState::Done, 100)]);
    let whole = bench
        .ask("POST", "/api/pull", r#"{"model":"a/c","stream":false}"#)
        .await;
    assert_eq!(json(whole).await, json!({"status": "success"}));
}

#[tokio::test]
async fn a_model_is_deleted_and_a_name_for_one_is_not() {
    let bench = bench().await;
    for name in ["fast", "auto", "fast:latest"] {
        let body = json!({"model": name}).to_string();
        let refused = bench.ask("DELETE", "/api/delete", body).await;
        assert_eq!(refused.status(), 400, "{name}");
    }
    assert!(bench.asked.take().is_empty());
    // The bench refuses what it is asked.
    let refused = bench
        .ask("DELETE", "/api/delete", r#"{"model":"small:latest"}"#)
        .await;
    assert_eq!(refused.status(), 409);
    assert_eq!(bench.asked.take(), ["remove small false"]);
}
