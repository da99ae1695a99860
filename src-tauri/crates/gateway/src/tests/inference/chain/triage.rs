//! Chains that triage the message first.

use super::*;
use std::time::Duration;
use tierbar_core::{
    ModelId,
    judgment::{ExamOutcome, Judgment},
};
use tierbar_inference::services::models::Models;

const FYI: &str = r#"{"type": "fyi", "urgency": 0, "needs_cloud": true}"#;
const PROBLEM: &str = r#"{"type": "problem", "urgency": 2, "needs_cloud": false}"#;

/// A chain with triage, whose local model sorts as `verdict`.
async fn night(verdict: &'static str) -> Night {
    let night = Night::new(|chain| {
        chain.triage = true;
        chain.mark = true;
    })
    .await;
    night.here.does(Does::Triage(verdict));
    night
}

/// As [`ask`], once the model has been examined.
async fn triaged(night: &Night, message: &str) -> Response {
    while triage(&ask(night, message).await).contains("has not passed") {
        idle().await;
    }
    night.asked();
    ask(night, message).await
}

/// Lets a minute pass without a request.
async fn idle() {
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(60)).await;
    tokio::time::resume();
}

async fn ask(night: &Night, message: &str) -> Response {
    let ask = json!({"model": "night", "messages": [{"role": "user", "content": message}]});
    night.bench.post(CHAT, ask.to_string()).await
}

fn triage(answer: &Response) -> String {
    let words = &answer.headers()["x-tierbar-triage"];
    words.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_message_that_only_informs_stays_on_this_machine() {
    let night = night(FYI).await;
    let answer = triaged(&night, "The backup ran at two.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    let tried = &answer.headers()["x-tierbar-tried"];
    assert_eq!(tried, "cloud-a=passed over, cloud-b=passed over");
    let words = "fyi, by fast: the message only informs, so this machine answers first";
    assert_eq!(triage(&answer), words);
    // It is the first choice, and no fallback.
    assert!(!answer.headers().contains_key("x-tierbar-fallback-from"));
    let body = json(answer).await;
    assert_eq!(body["choices"][0]["message"]["content"], "here");
    assert_eq!(body["tierbar"]["triage"], words);
    assert_eq!(body["tierbar"]["tried"][0]["tier"], "cloud-a");
    assert_eq!(night.asked(), [0, 0, 2], "the triage, and the answer");
}

#[tokio::test]
async fn a_model_that_sorts_badly_is_not_used_and_that_is_said() {
    let night = night(FYI).await;
    night.here.does(Does::Guess(FYI));
    // No request waits for the examination.
    let first = ask(&night, "The backup ran at two.").await;
    assert_eq!(first.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(night.asked(), [1, 0, 0]);
    let answer = triaged(&night, "The backup ran at two.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    let words = "triage is off: the model of fast sorted 2 of 16 messages correctly";
    assert_eq!(triage(&answer), words);
    assert_eq!(night.asked(), [1, 0, 0]);
}

#[tokio::test]
async fn a_test_waits_for_each_tier_of_this_machine() {
    let night = night(FYI).await;
    let busy = tier("primary", Some("large"), TierState::Busy);
    night.bench.tiers(|tiers| tiers.push(busy));
    ask(&night, "The backup ran at two.").await;
    idle().await;
    assert_eq!(night.asked(), [1, 0, 0]);
    night
        .bench
        .tiers(|tiers| tiers.last_mut().unwrap().state = TierState::Ready);
    let answer = triaged(&night, "The backup ran at two.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
}

#[tokio::test]
async fn a_stopped_model_is_loaded_and_tested_later() {
    let night = night(FYI).await;
    night.bench.tiers(|tiers| {
        tiers
            .iter_mut()
            .for_each(|tier| tier.state = TierState::Stopped);
    });
    ask(&night, "The backup ran at two.").await;
    idle().await;
    assert_eq!(night.asked(), [1, 0, 0]);
    night.bench.tiers(|tiers| {
        tiers
            .iter_mut()
            .for_each(|tier| tier.state = TierState::Ready);
    });
    let answer = triaged(&night, "The backup ran at two.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
}

fn small() -> ModelId {
    ModelId("small".to_owned())
}

/// Stores an outcome for the model of `fast`, as an earlier run of the host did.
async fn store(night: &Night, right: u32, of: u32) {
    let outcome = ExamOutcome {
        judgment: Judgment::Triage,
        right,
        of,
        passed: right >= 12,
        milliseconds: Some(200),
        result: json!({"right": right, "milliseconds": 200}),
    };
    let models = &night.bench.asked;
    models.store_exam_outcome(small(), outcome).await;
}

#[tokio::test]
async fn a_stored_outcome_counts_without_another_examination() {
    let words = "triage is off: the model of fast sorted 7 of 16 messages correctly";
    for (right, tier, asked, triaged) in [
        (7, "cloud-a", [1, 0, 0], words),
        (12, "fast", [0, 0, 2], "fyi, by fast: "),
    ] {
        let night = night(FYI).await;
        store(&night, right, 16).await;
        let answer = ask(&night, "The backup ran at two.").await;
        assert_eq!(answer.headers()["x-tierbar-tier"], tier, "{right}");
        assert!(triage(&answer).starts_with(triaged), "{right}");
        assert_eq!(night.asked(), asked, "{right}");
    }
}

#[tokio::test]
async fn another_number_of_probes_asks_for_an_examination() {
    let night = night(FYI).await;
    store(&night, 7, 8).await;
    let answer = triaged(&night, "The backup ran at two.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    let models = &night.bench.asked;
    let stored = loop {
        let stored = models
            .exam_outcome(small(), Judgment::Triage)
            .await
            .unwrap();
        if stored.of == 16 {
            break stored;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((stored.right, stored.passed), (16, true));
}

#[tokio::test]
async fn a_greeting_by_its_words_is_not_put_to_a_model() {
    let night = night(PROBLEM).await;
    let answer = ask(&night, "Hi, thank you!").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    assert_eq!(night.asked(), [0, 0, 1]);
}

#[tokio::test]
async fn any_other_message_goes_the_chains_way() {
    let night = night(PROBLEM).await;
    let answer = triaged(&night, "The heating is cold.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(triage(&answer), "problem, by fast");
    assert!(!answer.headers().contains_key("x-tierbar-tried"));
}

#[tokio::test]
async fn endpoints_answer_what_no_tier_of_this_machine_does() {
    let night = night(FYI).await;
    night.here.does(Does::Refuse(500));
    let answer = ask(&night, "thanks!").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(answer.headers()["x-tierbar-fallback-from"], "fast");
}

#[tokio::test]
async fn a_triage_that_fails_leaves_the_chain_as_it_is() {
    let night = night("I am no JSON").await;
    let answer = triaged(&night, "The backup ran at two.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(triage(&answer), "not triaged: fast: an unexpected answer");

    let tools = json!({"model": "night", "messages": [{"role": "user", "content": "thanks!"}],
        "tools": [{"type": "function", "function": {"name": "f"}}]});
    let answer = night.bench.post(CHAT, tools.to_string()).await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(triage(&answer), "not triaged: the request has tools");

    let file = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "JVBERi0="}});
    let file = json!({"model": "night", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "thanks!"}, file]}]});
    let answer = night.bench.post(CHAT, file.to_string()).await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    assert_eq!(triage(&answer), "not triaged: the request has files");

    let state = TierState::Failed;
    night
        .bench
        .tiers(|tiers| tiers.iter_mut().for_each(|tier| tier.state = state));
    let answer = ask(&night, "The backup ran at two.").await;
    assert_eq!(answer.headers()["x-tierbar-tier"], "cloud-a");
    let words = "not triaged: no tier of this machine is free for it";
    assert_eq!(triage(&answer), words);
}

#[tokio::test]
async fn a_chain_of_endpoints_alone_is_not_triaged() {
    let night = Night::new(|chain| {
        chain.triage = true;
        chain.steps.pop();
    })
    .await;
    let answer = ask(&night, "thanks!").await;
    assert_eq!(triage(&answer), "not triaged: every step is an endpoint");
    assert_eq!(night.asked(), [1, 0, 0]);
}
