use crate::testing::{Bench, json, tier};
use axum::{
    Json, Router,
    body::Body,
    http::{Request, Response, header},
    routing::post,
};
use serde_json::Value;
use serde_json::json;
use tierbar_core::TierState::{self, Ready, Stopped};
use tierbar_inference::{CHAT, TEXT};
use tierbar_routing::classifier::PROBES;
use tokio::sync::mpsc;

/// What no rule knows, and a question of many words.
const UNKNOWN: &str = "Our neighbour's cat has been sitting on our roof since the storm and will not come down for anyone.";

async fn bench(fast: TierState, primary: TierState, heavy: TierState) -> Bench {
    let bench = Bench::new("127.0.0.1:11435").await;
    let states = [("fast", fast), ("primary", primary), ("heavy", heavy)];
    let tiers = states.map(|(id, state)| tier(id, Some("small"), state));
    bench.tiers(|all| *all = tiers.to_vec());
    bench
}

/// A worker that answers requests with "done", and questions about them as `word` says; each question is reported.
fn worker(
    word: impl Fn(&str) -> Option<&'static str> + Clone + Send + Sync + 'static,
) -> (Router, mpsc::UnboundedReceiver<String>) {
    let (asked, questions) = mpsc::unbounded_channel();
    let answer = move |Json(body): Json<Value>| {
        let (word, asked) = (word.clone(), asked.clone());
        async move {
            if body["grammar"].is_null() {
                return Json(json!({"choices": [{"message": {"content": "done"}}]}));
            }
            let question = body["messages"][0]["content"].as_str().unwrap();
            let (_, about) = question.rsplit_once("Request: ").unwrap();
            let about = about.trim_end_matches("\nWord:").to_owned();
            let word = word(&about);
            asked.send(about).unwrap();
            match word {
                Some(word) => Json(json!({"choices": [{"message": {"content": word}}]})),
                None => std::future::pending().await,
            }
        }
    };
    let routes = Router::new()
        .route(CHAT, post(answer.clone()))
        .route(TEXT, post(answer.clone()))
        .route("/v1/embeddings", post(answer));
    (routes, questions)
}

/// Sorts the probes as they are labelled.
fn knows_the_probes(about: &str) -> Option<&'static str> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let probe = PROBES.iter().find(|(text, _)| plain(text) == about);
    probe.map(|(_, level)| level.word())
}

async fn sent(bench: &Bench, path: &str, headers: &[(&str, &str)], body: Value) -> Response<Body> {
    let mut request = Request::post(path).header(header::HOST, "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Body::from(body.to_string());
    bench.send(request.body(body).unwrap()).await
}

fn chat_request(text: &str) -> Value {
    json!({"model": "auto", "messages": [{"role": "user", "content": text}]})
}

async fn answered_by(bench: &Bench, text: &str) -> (String, String) {
    let response = sent(bench, CHAT, &[], chat_request(text)).await;
    assert_eq!(response.status(), 200);
    let reply = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    (reply("x-tierbar-tier"), reply("x-tierbar-why"))
}

/// Waits for the end of the examination: its last question has been answered when its lease is gone.
async fn examined(bench: &mut Bench, questions: &mut mpsc::UnboundedReceiver<String>) {
    assert!(questions.try_recv().is_err(), "asked beside the request");
    // The model is examined once it is idle.
    tokio::time::pause();
    for _ in PROBES {
        questions.recv().await.unwrap();
    }
    bench.released().await;
    tokio::time::resume();
}

#[tokio::test]
async fn auto_follows_the_rules_and_gives_its_reason() {
    let bench = bench(Stopped, Stopped, Stopped).await;
    bench.load(worker(|_| None).0);
    for (text, tier, why) in [
        (
            "hi",
            "fast",
            "it is a greeting; fast is the smallest that can do it",
        ),
        (
            "Explain tides to me.",
            "primary",
            "it asks for writing or an explanation; primary is the smallest that can do it",
        ),
        (
            "Prove that 0.999... is 1.",
            "heavy",
            "it needs several dependent steps; heavy is the smallest that can do it",
        ),
    ] {
        let expected = (tier.to_owned(), why.to_owned());
        assert_eq!(answered_by(&bench, text).await, expected);
    }
}

#[tokio::test]
async fn a_stream_has_the_reason_and_a_named_tier_none() {
    let bench = bench(Ready, Stopped, Stopped).await;
    bench.load(worker(|_| None).0);
    let mut body = chat_request("hi");
    body["stream"] = json!(true);
    let response = sent(&bench, CHAT, &[], body.clone()).await;
    assert_eq!(
        response.headers()["x-tierbar-why"],
        "it is a greeting; fast is loaded"
    );
    body["model"] = json!("heavy");
    let response = sent(&bench, CHAT, &[], body).await;
    assert_eq!(response.headers()["x-tierbar-tier"], "heavy");
    assert!(!response.headers().contains_key("x-tierbar-why"));
}

#[tokio::test]
async fn the_header_names_the_chosen_tier() {
    let bench = bench(Ready, Stopped, Stopped).await;
    bench.load(worker(|_| None).0);
    let heavy = [("x-tierbar-tier", "Heavy")];
    for (path, body) in [
        (CHAT, chat_request("a")),
        (TEXT, json!({"prompt": "a"})),
        ("/v1/embeddings", json!({"input": "a"})),
    ] {
        let response = sent(&bench, path, &heavy, body).await;
        assert_eq!(response.headers()["x-tierbar-tier"], "heavy", "{path}");
        assert_eq!(
            response.headers()["x-tierbar-why"],
            "the header x-tierbar-tier asks for heavy"
        );
    }
    let named = json!({"model": "primary", "messages": []});
    let response = sent(&bench, CHAT, &heavy, named).await;
    assert_eq!(response.headers()["x-tierbar-tier"], "primary");
    let auto = [("x-tierbar-tier", "auto")];
    let response = sent(&bench, CHAT, &auto, chat_request("hi")).await;
    assert_eq!(response.headers()["x-tierbar-tier"], "fast");
    let unknown = [("x-tierbar-tier", "enormous")];
    let response = sent(&bench, CHAT, &unknown, chat_request("hi")).await;
    assert_eq!(response.status(), 404);
    assert_eq!(json(response).await["error"]["code"], "model_unknown");
}

#[tokio::test]
async fn a_model_that_passes_the_probes_classifies_each_text_once() {
    let mut bench = bench(Ready, Stopped, Stopped).await;
    let (routes, mut questions) = worker(|about| knows_the_probes(about).or(Some("hard")));
    bench.load(routes);
    // The answer does not wait for the examination.
    let (tier, why) = answered_by(&bench, UNKNOWN).await;
    assert_eq!(tier, "fast");
    assert!(
        why.ends_with("the estimate is too uncertain to load a model"),
        "{why}"
    );
    examined(&mut bench, &mut questions).await;
    // The examination's task has still to note its end.
    let (tier, why) = loop {
        let (tier, why) = answered_by(&bench, UNKNOWN).await;
        if tier == "heavy" {
            break (tier, why);
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        (tier.as_str(), why.as_str()),
        (
            "heavy",
            "the fast tier rates it hard; heavy is loaded for it, in about 25 s"
        )
    );
    assert_eq!(questions.recv().await.unwrap(), UNKNOWN);
    assert_eq!(answered_by(&bench, UNKNOWN).await.0, "heavy");
    assert_eq!(answered_by(&bench, "hi").await.0, "fast");
    assert!(questions.try_recv().is_err(), "asked again");
}

#[tokio::test]
async fn a_model_that_fails_the_probes_is_not_used_again() {
    let mut bench = bench(Ready, Stopped, Stopped).await;
    let (routes, mut questions) = worker(|_| Some("hard"));
    bench.load(routes);
    answered_by(&bench, UNKNOWN).await;
    examined(&mut bench, &mut questions).await;
    for _ in 0..20 {
        assert_eq!(answered_by(&bench, UNKNOWN).await.0, "fast");
    }
    assert!(questions.try_recv().is_err(), "asked again");
}

#[tokio::test]
async fn a_missing_classification_does_not_block_requests() {
    let mut bench = bench(Ready, Stopped, Stopped).await;
    let (routes, mut questions) = worker(knows_the_probes);
    bench.load(routes);
    answered_by(&bench, UNKNOWN).await;
    examined(&mut bench, &mut questions).await;
    while questions.try_recv().is_err() {
        assert_eq!(answered_by(&bench, UNKNOWN).await.0, "fast");
    }
    bench.released().await;
}

#[tokio::test]
async fn the_classifier_rests_while_fast_is_not_loaded_here() {
    let bench = bench(Stopped, Ready, Stopped).await;
    let (routes, mut questions) = worker(|_| Some("hard"));
    bench.load(routes);
    assert_eq!(answered_by(&bench, UNKNOWN).await.0, "primary");
    bench.tiers(|tiers| {
        tiers[0].state = Ready;
        tiers[0].engine = tierbar_core::status::EngineKind::Endpoint;
    });
    assert_eq!(answered_by(&bench, UNKNOWN).await.0, "primary");
    tokio::task::yield_now().await;
    assert!(questions.try_recv().is_err());
}

#[tokio::test]
async fn the_choice_of_auto_can_be_previewed() {
    let bench = bench(Ready, Stopped, Stopped).await;
    let (routes, _questions) = worker(|about| knows_the_probes(about).or(Some("medium")));
    bench.load(routes);
    let body = chat_request(UNKNOWN).to_string();
    let reply = json(
        bench
            .ask("POST", "/tierbar/v1/route?classify=always", body)
            .await,
    )
    .await;
    assert_eq!(reply["level"], "medium");
    assert_eq!(reply["tier"], "primary");
    assert_eq!(reply["rules"]["sure"], false);
    assert_eq!(reply["classifier"]["believed"], true);
    assert_eq!(reply["classifier"]["exam"]["right"], 12);
    let reply = json(
        bench
            .ask("POST", "/tierbar/v1/route", chat_request("hi").to_string())
            .await,
    )
    .await;
    assert_eq!(reply["classifier"], Value::Null);
    assert_eq!(reply["why"], "it is a greeting; fast is loaded");
    let refused = bench
        .post("/tierbar/v1/route", chat_request("hi").to_string())
        .await;
    assert_eq!(refused.status(), 401);
    let wrong = bench.ask("POST", "/tierbar/v1/route", "[]").await;
    assert_eq!(wrong.status(), 400);
}
