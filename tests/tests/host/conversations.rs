//! Conversations that are swapped out with their tier and continue when it is loaded again.

use crate::FAST;
use crate::ends::signal;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tierbar_core::TierState;
use tierbar_tests::{
    serving::{Data, Serving},
    wait::{until, within},
};

/// Two tiers, of which one is loaded at a time.
fn two() -> String {
    let second = FAST.replace("[tiers.fast]", "[tiers.primary]");
    format!("[policy]\nmax_loaded = 1\n{FAST}{second}")
}

fn messages(from: u32) -> Vec<Value> {
    let numbers: Vec<String> = (from..from + 60).map(|number| number.to_string()).collect();
    vec![
        json!({"role": "user", "content": format!("Know these: {}. Which is the largest?", numbers.join(", "))}),
    ]
}

async fn say(host: &Serving, tier: &str, messages: &[Value]) -> Value {
    let fields = json!({"messages": messages, "max_tokens": 16});
    let answer = host.chat(tier, fields).await;
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten();
    all.map(|file| file.unwrap().path()).collect()
}

/// The second turn of a conversation in `fast`, after `between`.
async fn second_turn(host: &Serving, between: impl AsyncFnOnce(&Serving)) -> (u64, u64, String) {
    let mut talk = messages(100);
    let first = say(host, "fast", &talk).await;
    between(host).await;
    talk.push(first["choices"][0]["message"].clone());
    talk.push(json!({"role": "user", "content": "And the smallest?"}));
    let second = say(host, "fast", &talk).await;
    let timings = &second["timings"];
    let text = second["choices"][0]["message"]["content"].as_str().unwrap();
    (
        timings["cache_n"].as_u64().unwrap(),
        timings["prompt_n"].as_u64().unwrap(),
        text.to_owned(),
    )
}

#[tokio::test]
async fn a_conversations_cache_survives_a_swap_and_a_restart() {
    let stayed = {
        let data = Data::new(&two());
        let host = data.serve().await;
        second_turn(&host, async |_| ()).await
    };
    assert!(stayed.0 > 150, "{stayed:?}");

    let data = Data::new(&two());
    let folder = data.path().join("conversations");
    let host = data.serve().await;
    let other = async |host: &Serving| {
        say(host, "primary", &messages(500)).await;
        let stopped = host.tier_when("fast", |tier| tier.state == TierState::Stopped);
        stopped.await;
    };
    assert_eq!(second_turn(&host, other).await, stayed);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let kept = files(&folder);
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|path| mode(path) == 0o600));
    // They have no names.
    let (_, named) = host.ask(Method::GET, "/v1/context", None).await;
    assert_eq!(named["data"], json!([]));

    // The saved conversations are there for the next host, even if this one is killed.
    host.kill().await;
    let host = data.serve().await;
    let again = say(&host, "fast", &messages(500)).await;
    assert_eq!(again["timings"]["prompt_n"], 1, "{again}");
}

#[tokio::test]
async fn turning_off_conversation_caches_applies_to_loaded_tiers() {
    let data = Data::shallow(&two());
    let folder = data.path().join("conversations");
    let host = data.serve().await;
    let unload = async |tier: &str| {
        let path = format!("/tierbar/v1/tiers/{tier}/stop");
        assert!(host.ask(Method::POST, &path, None).await.0 < 300);
        host.tier_when(tier, |tier| tier.state == TierState::Stopped)
            .await;
    };
    say(&host, "fast", &messages(100)).await;
    unload("fast").await;
    assert_eq!(files(&folder).len(), 1);
    say(&host, "primary", &messages(300)).await;
    let off = format!(
        "[policy]\nmax_loaded = 1\nkeep_conversations = false\n{}",
        two().replace("[policy]\nmax_loaded = 1\n", "")
    );
    data.configure(&off);
    until("an empty folder", async || (!folder.exists()).then_some(())).await;
    unload("primary").await;
    let again = say(&host, "fast", &messages(100)).await;
    assert_eq!(again["timings"]["cache_n"], 0, "{again}");
    unload("fast").await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn an_ending_host_keeps_the_conversations_in_memory() {
    let data = Data::shallow(&two());
    let mut host = data.serve().await;
    say(&host, "fast", &messages(100)).await;
    signal(host.pid(), "TERM");
    within("the host's end", host.child.wait()).await.unwrap();
    assert_eq!(files(&data.path().join("conversations")).len(), 1);
    let host = data.serve().await;
    let again = say(&host, "fast", &messages(100)).await;
    assert_eq!(again["timings"]["prompt_n"], 1, "{again}");
}
