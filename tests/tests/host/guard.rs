//! The memory guard, pauses, and the settings that leave the machine to its user.

use crate::{Events, FAST};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use tierbar_core::{
    TierState,
    policy::{Alarm, Stance},
};
use tierbar_tests::{
    serving::{Data, Serving, alive},
    wait::until,
};

/// An answer of more than a minute.
const LARGE: &str = "[tiers.fast]\nmodel = \"SmolLM2-135M-Instruct.Q4_1.gguf\"\ncontext = 8192\n";
const CALM: &str = r#""ram_total_bytes": 17179869184, "ram_available_bytes": 8589934592, "pressure": "normal",
    "swap_total_bytes": 0, "swap_used_bytes": 0"#;
const SHORT: &str = r#""ram_available_bytes": 268435456, "pressure": "critical""#;

/// A machine with these readings, each from a given second on.
fn machine(config: &str, readings: &[(u64, &str)]) -> Data {
    let data = Data::new(config);
    let line = |(second, figures): &(u64, &str)| {
        let figures = figures.replace('\n', " ");
        format!("{{\"at_ms\": {}, {figures}}}\n", second * 1000)
    };
    let script = data.path().join("readings.jsonl");
    fs::write(&script, readings.iter().map(line).collect::<String>()).unwrap();
    let path = script.to_str().unwrap().to_owned();
    data.with("TIERBAR_SCRIPTED_READINGS", &path)
}

async fn alarm(host: &Serving, wanted: Alarm) -> String {
    until("the alarm", async || {
        let guard = host.status().await.guard;
        (guard.alarm == wanted).then(|| guard.why.unwrap_or_default())
    })
    .await
}

#[tokio::test]
async fn critical_pressure_unloads_and_the_client_gets_an_error() {
    let data = machine(LARGE, &[(0, CALM), (20, SHORT), (32, CALM)]);
    let host = data.serve().await;
    let endless = json!({"stream": true, "ignore_eos": true, "max_tokens": 8000});
    let mut events = Events::of(host.chat("fast", endless).await);
    events.words().await;
    let worker = host.tier("fast").await.pid.unwrap();

    let why = alarm(&host, Alarm::Hold).await;
    assert!(alive(worker), "ended before what is idle");
    assert_eq!(
        why,
        "memory is about to run out: the system reports critical pressure, 256 MiB of 16.0 GiB are available"
    );
    let last: Value = serde_json::from_str(events.rest().await.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "tier_stopped");
    let message = last["error"]["message"].as_str().unwrap().to_owned();
    let beginning = "fast was unloaded while in use: memory is about to run out: ";
    assert!(message.starts_with(beginning), "{message}");
    let stopped = host
        .tier_when("fast", |tier| tier.state == TierState::Stopped)
        .await;
    assert_eq!(
        stopped.reason,
        message.strip_prefix("fast was ").map(str::to_owned)
    );
    assert!(!alive(worker));

    // A request during the alarm waits, and is answered when it has ended.
    let request = host.chat("fast", json!({"max_tokens": 1}));
    let waits = host.tier_when("fast", |tier| {
        tier.reason.as_deref() == Some("waiting until memory is no longer low")
    });
    let (answer, _) = tokio::join!(request, waits);
    assert_eq!(answer.status(), 200);
    assert_eq!(host.status().await.guard.alarm, Alarm::None);
}

#[tokio::test]
async fn an_alarm_unloads_idle_tiers_and_delays_pinned_ones() {
    let pinned = format!("{FAST}pinned = true\n");
    let data = machine(&pinned, &[(0, CALM), (15, SHORT), (27, CALM)]);
    let host = data.serve().await;
    host.tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    let left = host
        .tier_when("fast", |tier| tier.state == TierState::Stopped)
        .await;
    let why = left.reason.unwrap();
    assert!(
        why.starts_with("unloaded: memory is about to run out"),
        "{why}"
    );
    assert_ne!(host.status().await.guard.alarm, Alarm::None);
    host.tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    assert_eq!(host.status().await.guard.alarm, Alarm::None);
}

#[tokio::test]
async fn a_low_battery_defers_preloading() {
    let battery = format!("{CALM}, \"power\": {{\"on_battery\": true, \"level_percent\": 12}}");
    let data = machine(&format!("{FAST}pinned = true\n"), &[(0, &battery)]);
    let host = data.serve().await;
    let guard = host.status().await.guard;
    assert_eq!((guard.alarm, guard.stance), (Alarm::None, Stance::Defers));
    assert_eq!(guard.why.as_deref(), Some("the battery is at 12 %"));
    assert_eq!(host.tier("fast").await.state, TierState::Stopped);
    let answer = host.chat("fast", json!({"max_tokens": 1})).await;
    assert_eq!(answer.status(), 200, "a request is answered all the same");
}

#[tokio::test]
async fn a_pause_unloads_and_refuses_until_it_ends() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let (code, stdout, _) = data.run(&["pause"]).await;
    assert_eq!((code, stdout.lines().count()), (Some(0), 1));
    host.tier_when("fast", |tier| tier.state == TierState::Stopped)
        .await;
    let guard = host.status().await.guard;
    assert_eq!((guard.stance, guard.paused_until), (Stance::Paused, None));
    let (status, body) = {
        let body = json!({"model": "fast", "messages": [{"role": "user", "content": "Hi"}]});
        host.ask(Method::POST, "/v1/chat/completions", Some(body))
            .await
    };
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("paused")),
        "{body}"
    );
    assert!(
        body["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("tierbar resume")
    );
    assert_eq!(data.run(&["resume"]).await.0, Some(0));
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );

    let (status, body) = host
        .ask(
            Method::POST,
            "/tierbar/v1/pause",
            Some(json!({"for": "1s"})),
        )
        .await;
    assert_eq!(status, 200);
    assert!(body["guard"]["paused_until"].is_number(), "{body}");
    until("the pause's end", async || {
        (host.status().await.guard.stance == Stance::Open).then_some(())
    })
    .await;
    let wrong = host
        .ask(
            Method::POST,
            "/tierbar/v1/pause",
            Some(json!({"for": "long"})),
        )
        .await;
    assert_eq!(wrong.0, 400);
    let (code, _, error) = data.run(&["pause", "--for", "long"]).await;
    assert_ne!(code, Some(0));
    assert!(error.contains("write it as"), "{error}");
}

#[tokio::test]
async fn keep_alive_sets_how_long_a_tier_stays() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let answer = host
        .chat("fast", json!({"max_tokens": 1, "keep_alive": 0}))
        .await;
    assert_eq!(answer.status(), 200);
    host.tier_when("fast", |tier| tier.state == TierState::Stopped)
        .await;
    let wrong = host.chat("fast", json!({"keep_alive": "soon"})).await;
    assert_eq!(wrong.status(), 400);
    let body: Value = wrong.json().await.unwrap();
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("keep_alive"),
        "{body}"
    );
}

#[tokio::test]
async fn after_an_alarm_a_smaller_tier_answers_and_names_both() {
    let tiers = "[policy]\nhome = \"\"\n[tiers.fast]\nmodel = \"SmolLM2-135M-Instruct.Q4_1.gguf\"\ncontext = 2048\n\
                 [tiers.heavy]\nmodel = \"SmolLM2-135M-Instruct.Q4_1.gguf\"\ncontext = 4096\n";
    let data = machine(tiers, &[(0, CALM), (15, SHORT), (25, CALM)]);
    let host = data.serve().await;
    let first = host.chat("heavy", json!({"max_tokens": 1})).await;
    assert_eq!(first.headers()["x-tierbar-tier"], "heavy");
    alarm(&host, Alarm::Hold).await;
    alarm(&host, Alarm::None).await;
    let next = host.chat("heavy", json!({"max_tokens": 1})).await;
    assert_eq!(next.headers()["x-tierbar-tier"], "fast");
    assert_eq!(next.headers()["x-tierbar-stepped-down-from"], "heavy");
}
