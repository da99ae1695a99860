//! The event log, from the worker's process to the API, the event stream, the command line and the next start.

use crate::{Events, FAST, ends::signal};
use reqwest::Method;
use serde_json::Value;
use std::process::Stdio;
use tierbar_tests::{
    serving::{Data, Serving},
    wait::within,
};
use tokio::io::{AsyncBufReadExt, BufReader};

async fn logged(host: &Serving, query: &str) -> Vec<Value> {
    let path = format!("/tierbar/v1/log{query}");
    let (status, page) = host.ask(Method::GET, &path, None).await;
    assert_eq!(status, 200, "{page}");
    page["entries"].as_array().unwrap().clone()
}

fn kinds(entries: &[Value]) -> Vec<&str> {
    let kinds = entries.iter().map(|entry| entry["kind"].as_str().unwrap());
    kinds.collect()
}

/// The next event of the log.
async fn happened(events: &mut Events) -> Value {
    loop {
        let event = events.next_json().await;
        if event.get("sentence").is_some() {
            return event;
        }
    }
}

#[tokio::test]
async fn the_event_log_is_in_every_view_and_survives_the_host() {
    let data = Data::new(FAST);
    let mut host = data.serve().await;
    let mut events = Events::of(host.send(Method::GET, "/tierbar/v1/events", None).await);
    events.next_json().await;
    let (_, _, stderr) = data.run(&["tier", "start", "fast"]).await;
    assert_eq!(stderr, "");
    let load = happened(&mut events).await;
    assert_eq!(
        (&load["kind"], &load["tier"]),
        (&"load".into(), &"fast".into())
    );
    let sentence = load["sentence"].as_str().unwrap();
    let begins = "fast is loading SmolLM2-135M-Instruct.Q4_1 for a request: ";
    assert!(sentence.starts_with(begins), "{sentence}");
    assert!(sentence.contains(" MiB planned of a "), "{sentence}");
    let ready = happened(&mut events).await;
    assert_eq!(ready["kind"], "ready");
    // An announced entry is in the log, newest first.
    assert_eq!(logged(&host, "").await, [ready.clone(), load.clone()]);

    let pid = host.tier("fast").await.pid.unwrap();
    signal(pid, "KILL");
    let crash = happened(&mut events).await;
    let sentence = crash["sentence"].as_str().unwrap();
    let begins = "the worker of fast was killed by signal 9 (SIGKILL) (";
    assert!(sentence.starts_with(begins), "{sentence}");
    // The kernel has not run out of memory, so nothing is guessed.
    assert!(!sentence.contains("probable cause"), "{sentence}");
    assert_eq!(kinds(&logged(&host, "?limit=1").await), ["crash"]);
    let before = format!("?tier=fast&before={}", ready["id"]);
    assert_eq!(logged(&host, &before).await, [load]);

    let (_, shown, stderr) = data.run(&["log"]).await;
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(
        lines[2].contains("crash     the worker of fast was killed"),
        "{shown}"
    );
    let (_, shown, _) = data.run(&["log", "--tier", "heavy"]).await;
    assert_eq!(shown, "");

    // The host's own end is logged too, and the entries stay when it is gone.
    data.run(&["tier", "start", "fast"]).await;
    signal(host.pid(), "TERM");
    within("the host's end", host.child.wait()).await.unwrap();
    let (code, shown, _) = data.run(&["log", "--limit", "3", "--json"]).await;
    assert_eq!(code, Some(0));
    let entries = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let entries: Vec<Value> = entries.collect();
    assert_eq!(kinds(&entries), ["load", "ready", "unload"]);
    let sentence = entries[2]["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("unloaded fast on quit, freed "),
        "{sentence}"
    );
    let host = data.serve().await;
    assert_eq!(kinds(&logged(&host, "?limit=2").await), ["unload", "ready"]);
}

#[tokio::test]
async fn the_command_line_follows_the_event_log() {
    let data = Data::empty("[tiers.fast]\nmodel = \"gone.gguf\"\n");
    let (_, _, stderr) = data.run(&["log", "--follow"]).await;
    assert!(stderr.contains("tierbar serve"), "{stderr}");
    let _host = data.serve().await;
    data.run(&["tier", "start", "fast"]).await;
    let mut following = data.tierbar(&["log", "--follow"]);
    let mut following = following.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut line = async || within("a line", lines.next_line()).await.unwrap().unwrap();
    let refused = line().await;
    assert!(
        refused.contains("  refusal   a request for fast was refused: "),
        "{refused}"
    );
    assert!(refused.contains("gone.gguf"), "{refused}");
    // Now there is a file, with another problem.
    std::fs::write(data.models().join("gone.gguf"), "nothing").unwrap();
    data.run(&["tier", "start", "fast"]).await;
    let refused = line().await;
    assert!(refused.contains("refusal"), "{refused}");
    following.kill().await.unwrap();
}
