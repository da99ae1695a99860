//! Who answers, and for how long it is asked.

use super::*;
use crate::testing::{json, tier};
use axum::{
    body::Body,
    http::{Request, header},
};
use std::collections::BTreeMap;
use tierbar_core::{Code, Error, TierId, TierState};

const CALM: &str = r#"{"type": "fyi", "urgency": 1, "needs_cloud": false}"#;

async fn hinted(bench: &Bench, path: &str, hint: (&str, &str), body: &Value) -> Response {
    let request = Request::post(path)
        .header(header::HOST, "localhost")
        .header(hint.0, hint.1)
        .body(Body::from(body.to_string()))
        .unwrap();
    bench.send(request).await
}

#[tokio::test]
async fn a_text_is_split_for_the_contexts_of_possible_tiers() {
    let (bench, _) = scripted(|_, request| says_text(request, "In short.")).await;
    bench.tiers(|tiers| {
        tiers[0].context_tokens = 2048;
        let mut vectors = tier("vectors", Some("e"), TierState::Ready);
        vectors.context_tokens = 256;
        let mut failed = tier("heavy", Some("h"), TierState::Failed);
        failed.context_tokens = 256;
        tiers.extend([vectors, failed]);
    });
    let chains = |steps: &[&str]| {
        let chain = serde_json::from_value(json!({"steps": steps})).unwrap();
        let chains = BTreeMap::from([(TierId::new("work").unwrap(), chain)]);
        bench.config.lock().unwrap().chains = chains;
    };
    let status = async |model: &str| {
        let ask = json!({"text": "It rains.", "model": model}).to_string();
        bench.post("/v1/summarize", ask).await.status()
    };
    for model in ["", "auto", "fast", "small"] {
        assert_eq!(status(model).await, 200, "{model}");
    }
    assert_eq!(status("vectors").await, 400);
    chains(&["fast"]);
    assert_eq!(status("work").await, 200);
    chains(&["fast", "vectors"]);
    assert_eq!(status("work").await, 400);
}

#[tokio::test]
async fn a_tasks_headers_name_the_tier_and_the_chain() {
    let (bench, requests) = scripted(|_, request| answer(request, CALM)).await;
    bench.tiers(|tiers| tiers.push(tier("heavy", Some("large"), TierState::Ready)));
    let ask = json!({"text": "a"});
    let triage = async |hint| hinted(&bench, "/v1/triage", hint, &ask).await;
    let reply = json(triage(("x-tierbar-tier", "heavy")).await).await;
    assert_eq!(reply["tier"], "heavy");
    for hint in [("x-tierbar-tier", "none"), ("x-tierbar-chain", "none")] {
        let refused = triage(hint).await;
        assert_eq!(refused.status(), 404, "{hint:?}");
        assert_eq!(json(refused).await["error"]["code"], "model_unknown");
        for input in [json!("a"), json!([])] {
            let ask = json!({"input": input});
            let chain = hint.0 == "x-tierbar-chain";
            if chain && ask["input"] == json!([]) {
                continue;
            }
            let refused = hinted(&bench, "/api/embed", hint, &ask).await;
            assert_eq!(refused.status(), 404, "{hint:?} {ask}");
        }
    }
    // A chain's mark is for people.
    let chain = serde_json::from_value(json!({"steps": ["fast"], "mark": true})).unwrap();
    let name = TierId::new("work").unwrap();
    bench.config.lock().unwrap().chains.insert(name, chain);
    let reply = json(triage(("x-tierbar-chain", "work")).await).await;
    assert_eq!(reply["tier"], "fast", "{reply}");
    assert_eq!(requests.all().len(), 2);
}

/// Sentences for some ten pieces.
fn text() -> String {
    "It has happened on that day to a friend. ".repeat(1500)
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_loses_no_notes() {
    for (fails, code, status, asked) in [
        (vec![1, 2, 4], Code::WorkerCrashed, 200, None),
        (vec![1, 2, 3, 4], Code::Paused, 503, Some(5)),
        // Nothing is lost yet.
        (vec![0], Code::Paused, 503, Some(1)),
        // What does not pass by itself.
        (vec![1], Code::ModelMissing, 503, Some(2)),
    ] {
        let (bench, requests) = scripted(move |before, request| {
            if fails.contains(&before) {
                let error = Error::new(code, "not now");
                let status = StatusCode::from_u16(code.http_status()).unwrap();
                return refuses(status, error.openai_body());
            }
            says_text(request, "Something was.")
        })
        .await;
        let ask = json!({"text": text()}).to_string();
        let answer = bench.post("/v1/summarize", ask).await;
        let got = answer.status();
        let body = json(answer).await;
        assert_eq!(got, status, "{code:?} {body}");
        let count = requests.all().len();
        assert!(asked.is_none_or(|asked| asked == count), "{code:?} {count}");
    }
}
