//! Requests of one tier and of another at the same time: which of them wait, and for what.

use crate::{Events, FAST};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::TierState;
use tierbar_tests::{serving::Data, wait::within};

/// Two tiers, of which one is loaded at a time. What is not brief passes no older request.
fn two() -> String {
    let second = FAST.replace("[tiers.fast]", "[tiers.primary]");
    format!("[policy]\nmax_loaded = 1\npatience = \"0s\"\n{FAST}{second}")
}

#[tokio::test]
async fn a_long_answer_holds_no_brief_request() {
    let data = Data::new(&two());
    let host = Arc::new(data.serve().await);
    let endless = json!({"stream": true, "ignore_eos": true, "max_tokens": 1900});
    let mut long = Events::of(host.chat("fast", endless).await);
    long.words().await;
    let asking = Arc::clone(&host);
    let other = tokio::spawn(async move { asking.chat("primary", json!({"max_tokens": 1})).await });
    host.tier_when("primary", |tier| tier.reason.is_some())
        .await;
    for _ in 0..3 {
        let brief = host.chat("fast", json!({"max_tokens": 5})).await;
        assert_eq!(brief.status(), 200);
        assert_eq!(brief.headers()["x-tierbar-tier"], "fast");
    }
    assert!(!other.is_finished(), "a leased tier was ended");
    assert_eq!(host.tier("primary").await.state, TierState::Stopped);
    // It goes on, until its client leaves.
    long.words().await;
    drop(long);
    let answer = within("the other tier", other).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_schedule_gives_way_to_a_request_for_another_tier() {
    let data = Data::new(&two());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let (source, summary) = (path.join("day.md"), path.join("summary.md"));
    let paragraph = |n: usize| format!("On day {n} the river rose by {n} centimetres.\n\n");
    // Several times the context.
    let text: String = (1..600).map(paragraph).collect();
    std::fs::write(&source, text).unwrap();
    data.configure(&format!(
        "{}[schedules.nightly]\nat = \"02:00\"\ntask = \"summarize\"\nmodel = \"fast\"\nsource = \"{}\"\nto = \"{}\"\n",
        two(),
        source.display(),
        summary.display()
    ));
    let host = Arc::new(data.serve().await);
    let running = Arc::clone(&host);
    let schedule = tokio::spawn(async move {
        let path = "/tierbar/v1/schedules/nightly/run";
        running.ask(Method::POST, path, None).await
    });
    host.tier_when("fast", |tier| tier.state == TierState::Busy)
        .await;
    let other = host.chat("primary", json!({"max_tokens": 1})).await;
    assert_eq!(other.status(), 200);
    assert!(
        !schedule.is_finished(),
        "the request waited for the schedule"
    );
    let (_, page) = host.ask(Method::GET, "/tierbar/v1/log", None).await;
    let gave_way = |entry: &Value| {
        entry["sentence"] == "a background answer of fast gave way to a request for primary"
    };
    let entries = page["entries"].as_array().unwrap();
    assert!(entries.iter().any(gave_way), "{page}");
}
