//! The host's end, requested or not.

use crate::{Events, FAST};
use serde_json::{Value, json};
use tierbar_tests::{
    serving::{Data, Serving, alive},
    wait::{until, within},
};

const ENDLESS: &str = r#"{"stream": true, "ignore_eos": true, "max_tokens": 1900}"#;

async fn answering(host: &Serving) -> (Events, u32) {
    let endless = serde_json::from_str(ENDLESS).unwrap();
    let mut events = Events::of(host.chat("fast", endless).await);
    events.words().await;
    (events, host.tier("fast").await.pid.unwrap())
}

#[tokio::test]
async fn an_ending_host_ends_streams_workers_and_its_lock() {
    let data = Data::new(FAST);
    let mut host = data.serve().await;
    let (events, worker) = answering(&host).await;
    signal(host.pid(), "TERM");
    let last: Value = serde_json::from_str(events.rest().await.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "shutting_down");
    let status = within("the host's end", host.child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(!alive(worker));
    assert!(!data.path().join("run/host.json").exists());
    data.serve().await;
}

#[tokio::test]
async fn a_second_signal_ends_host_and_worker_at_once() {
    let data = Data::new(FAST);
    let mut host = data.serve().await;
    let (_events, worker) = answering(&host).await;
    signal(host.pid(), "INT");
    // The shutdown has started once no connection is accepted.
    until("the end of accepting", async || {
        let answer = tierbar_fetch::loopback()
            .build()
            .unwrap()
            .get(format!("{}/health", host.url))
            .send();
        answer.await.is_err().then_some(())
    })
    .await;
    signal(host.pid(), "INT");
    let status = within("the host's end", host.child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(130));
    until("the worker's end", async || (!alive(worker)).then_some(())).await;
}

#[tokio::test]
async fn a_killed_host_leaves_no_worker_and_can_be_restarted() {
    let data = Data::new(FAST);
    let mut host = data.serve().await;
    let (_events, worker) = answering(&host).await;
    host.child.kill().await.unwrap();
    until("the worker's end", async || (!alive(worker)).then_some(())).await;
    assert!(
        data.path().join("run/host.json").exists(),
        "a killed host cannot have tidied up"
    );
    let host = data.serve().await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
}

pub(crate) fn signal(pid: u32, name: &str) {
    let status = std::process::Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}
