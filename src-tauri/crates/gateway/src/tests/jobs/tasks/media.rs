//! Images and sound in tasks.

use super::*;
use crate::testing::{json, tier};
use tierbar_core::{Modality, TierState};
use tierbar_jobs::tasks::message::MEDIA_INSTRUCTIONS;

const CALM: &str = r#"{"type": "fyi", "urgency": 1, "needs_cloud": false}"#;
const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

fn sound() -> Value {
    json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})
}

/// Jobs of a fast tier for text, and an everyday tier for more.
async fn bench_and_requests(
    script: impl Fn(usize, &Value) -> Response + Clone + Send + Sync + 'static,
    modalities: &[Modality],
) -> (Bench, Requests) {
    let (bench, requests) = scripted(script).await;
    bench.tiers(|tiers| {
        tiers[0].input_modalities = vec![Modality::Text];
        let mut primary = tier("primary", Some("seeing"), TierState::Ready);
        primary.input_modalities = modalities.to_vec();
        tiers.push(primary);
    });
    (bench, requests)
}

fn answers(_: usize, request: &Value) -> Response {
    let usage = json!({"prompt_tokens": 300, "completion_tokens": 10});
    let text = match request["response_format"].to_string() {
        form if form.contains("urgency") => CALM.to_owned(),
        _ => json!({"text": "A note."}).to_string(),
    };
    let message = json!({"role": "assistant", "content": text});
    Json(json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}))
        .into_response()
}

const ALL: [Modality; 3] = [Modality::Text, Modality::Image, Modality::Audio];

#[tokio::test]
async fn media_go_to_a_tier_that_takes_them() {
    let (bench, requests) = bench_and_requests(answers, &ALL).await;
    let texts = json!([
        "Text",
        {"content": "See", "images": [PNG]},
        [{"type": "text", "text": "Hear"}, sound()],
    ]);
    let asked = json!({"texts": texts}).to_string();
    let answer = json(bench.post("/v1/triage", asked).await).await;
    let tiers: Vec<_> = (0..3).map(|at| &answer["results"][at]["tier"]).collect();
    assert_eq!(tiers, ["fast", "primary", "primary"], "{answer}");
    let all = requests.all();
    let of = |kind: &str| {
        let has = |request: &&Value| request["messages"][1]["content"].to_string().contains(kind);
        all.iter().find(has).unwrap()
    };
    let parts = &of("input_audio")["messages"][1]["content"];
    assert_eq!(parts[1], sound());
    assert_eq!(parts[0]["text"], "Message:\n=====\nHear\n");
    let system = of("image_url")["messages"][0]["content"].to_string();
    assert!(system.contains(MEDIA_INSTRUCTIONS.trim_end()), "{system}");
    let plain = all
        .iter()
        .find(|request| request["messages"][1]["content"].is_string());
    assert!(
        !plain.unwrap()["messages"][0]["content"]
            .to_string()
            .contains("screenshot")
    );
}

#[tokio::test]
async fn media_without_such_a_tier_get_a_clear_answer() {
    let (bench, requests) = bench_and_requests(answers, &[Modality::Text]).await;
    for (path, message) in [
        (
            "/v1/triage",
            "small of the fast tier takes text, and the request has images",
        ),
        (
            "/v1/summarize",
            "seeing of the primary tier takes text, and the request has images",
        ),
    ] {
        let asked = json!({"text": "What is this?", "images": [PNG]}).to_string();
        let refused = bench.post(path, asked).await;
        assert_eq!(refused.status(), 400);
        let error = json(refused).await["error"].clone();
        assert_eq!(error["code"], "bad_request");
        let rendered = error.to_string();
        assert!(rendered.contains(message), "{rendered}");
    }
    assert!(requests.all().is_empty());
    let beside = json!({"texts": ["a"], "images": [PNG]}).to_string();
    let refused = bench.post("/v1/triage", beside).await;
    assert!(
        json(refused)
            .await
            .to_string()
            .contains("images belongs to text")
    );
    let compressed = json!({"text": [sound()], "words": 10}).to_string();
    assert_eq!(bench.post("/v1/compress", compressed).await.status(), 400);
}

#[tokio::test]
async fn a_summary_reads_media_alone_if_they_do_not_fit_together() {
    let together = |request: &Value| {
        let parts = request["messages"][1]["content"].as_array();
        let media = parts
            .into_iter()
            .flatten()
            .filter(|part| part["text"].is_null());
        media.count() > 1
    };
    let script = move |before: usize, request: &Value| {
        if together(request) {
            let error =
                json!({"code": "context_length_exceeded", "message": "too long", "type": "x"});
            return refuses(StatusCode::BAD_REQUEST, json!({"error": error}));
        }
        answers(before, request)
    };
    let (bench, requests) = bench_and_requests(script, &ALL).await;
    let asked = json!({"text": [{"type": "text", "text": "Two notes:"}, sound(), sound()]});
    let response = bench.post("/v1/summarize", asked.to_string()).await;
    let answer = json(response).await;
    assert_eq!(answer["summary"], "A note.", "{answer}");
    assert_eq!(
        (&answer["pieces"], &answer["levels"]),
        (&json!(3), &json!(2))
    );
    let last = requests.all().pop().unwrap();
    let text = data(&last);
    assert_eq!(text, "A note.\n\nA note.\n\nTwo notes:");
}
