//! Real pulls from the hub's stand-in, with a host and without one.

use crate::Events;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use tierbar_core::download::{DownloadState, DownloadStatus};
use tierbar_tests::{
    binaries,
    hub::{GEMMA, HubFile, HubRepository, HubStandIn, Options, SMOLLM2, Server},
    serving::{Data, Serving},
    wait::{until, within},
};

const Q4_1: &str = "tierbar-tests/tiny-GGUF:Q4_1";
const SMOLLM2_ID: &str = "SmolLM2-135M-Instruct.Q4_1";
const SMOLLM2_BYTES: u64 = 98_362_432;

async fn hub() -> HubStandIn {
    HubStandIn::start(Options::default()).await
}

fn of(hub: &HubStandIn) -> Data {
    Data::empty("").with("HF_ENDPOINT", &hub.url())
}

/// Returns whether the file is in the models folder as published, without a partial file beside it.
fn is_whole(data: &Data, file: &str) -> bool {
    let published = fs::read(binaries::model(file)).unwrap();
    let whole = fs::read(data.models().join(file)).is_ok_and(|bytes| bytes == published);
    whole && unfinished(data).is_empty()
}

fn unfinished(data: &Data) -> Vec<String> {
    let entries = fs::read_dir(data.models()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(".part")).collect()
}

/// Returns the ranges in the journal of the partial file.
fn claimed(data: &Data) -> Vec<(u64, u64)> {
    let Ok(journal) = fs::read(data.models().join(format!("{SMOLLM2}.part.json"))) else {
        return Vec::new();
    };
    let journal: Value = serde_json::from_slice(&journal).unwrap();
    serde_json::from_value(journal["ranges"].clone()).unwrap()
}

async fn download(host: &Serving, body: Value) -> (u16, Value) {
    host.ask(Method::POST, "/tierbar/v1/downloads", Some(body))
        .await
}

async fn downloads(host: &Serving) -> Vec<DownloadStatus> {
    host.status().await.downloads
}

async fn when(host: &Serving, what: &str, is: impl Fn(&DownloadStatus) -> bool) -> DownloadStatus {
    until(what, async || {
        let first = downloads(host).await.into_iter().next()?;
        assert_ne!(first.state, DownloadState::Failed, "{:?}", first.reason);
        is(&first).then_some(first)
    })
    .await
}

#[tokio::test]
async fn a_pull_without_a_host_prints_the_verdict_and_verifies() {
    let hub = hub().await;
    let data = of(&hub);
    let (code, stdout, stderr) = data.run(&["models", "pull", Q4_1]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("Downloaded and verified"), "{stdout}");
    let lines: Vec<_> = stderr.lines().collect();
    assert!(lines[0].starts_with("Runs fully in memory: "), "{stderr}");
    assert!(
        lines.iter().any(|line| line.contains(" % of 98 MB")),
        "{stderr}"
    );
    assert!(is_whole(&data, SMOLLM2));
    // Nothing is left running.
    assert_eq!(data.run(&["status"]).await.0, Some(3));

    // An installed model is not downloaded again.
    let before = hub.sent();
    let (code, _, stderr) = data.run(&["models", "pull", Q4_1]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        hub.sent() - before < SMOLLM2_BYTES / 4,
        "{} bytes",
        hub.sent() - before
    );

    let (_, listed, _) = data.run(&["models", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["models"][0]["reference"], Q4_1);
    assert_eq!(listed["models"][0]["keeper"], "tierbar");
    assert_eq!(listed["models"][0]["sha256"], hub_hash());

    // The printed command gives the model to a tier.
    let id = listed["models"][0]["id"].as_str().unwrap();
    let next = format!("To use it: tierbar tier use fast {id}\n");
    assert!(stderr.ends_with(&next), "{stderr}");
    let (code, _, stderr) = data.run(&["tier", "use", "fsat", id]).await;
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("did you mean fast?"), "{stderr}");
    let (_, stdout, stderr) = data.run(&["tier", "use", "fast", id]).await;
    assert_eq!(stdout, format!("fast uses {id}.\n"), "{stderr}");
}

fn hub_hash() -> String {
    HubFile::model(SMOLLM2, SMOLLM2).sha256
}

#[tokio::test]
async fn with_a_host_a_pull_runs_there_and_reports_by_events() {
    let hub = hub().await;
    hub.set_rate(30_000_000);
    let data = of(&hub);
    let host = data.serve().await;
    let mut events = Events::of(host.send(Method::GET, "/tierbar/v1/events", None).await);
    let pull = data.tierbar(&["models", "pull", Q4_1]).output();
    let follow = async {
        let mut seen = Vec::new();
        loop {
            let event = events.next_json().await;
            let Some(download) = event["downloads"].as_array().and_then(|all| all.first()) else {
                continue;
            };
            let download: DownloadStatus = serde_json::from_value(download.clone()).unwrap();
            seen.push((
                download.state,
                download.received_bytes,
                download.bytes_per_second,
            ));
            if download.state == DownloadState::Done {
                return seen;
            }
        }
    };
    let (output, seen) = within("a pull", async { tokio::join!(pull, follow) }).await;
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let between = seen.iter().any(|(state, received, rate)| {
        *state == DownloadState::Downloading && *rate > 0 && (1..SMOLLM2_BYTES).contains(received)
    });
    assert!(between, "{seen:?}");
    assert!(is_whole(&data, SMOLLM2));
    // The model can be loaded by its name from the pull.
    let patch = json!({"tiers": {"fast": {"model": SMOLLM2_ID, "context": 512}}});
    host.ask(Method::PATCH, "/tierbar/v1/config", Some(patch))
        .await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
}

#[tokio::test]
async fn an_ollama_pull_reports_progress_until_verified() {
    let hub = hub().await;
    hub.set_rate(30_000_000);
    let data = of(&hub);
    let host = data.serve().await;
    let pull = json!({"model": format!("hf.co/{Q4_1}")});
    let response = host.send(Method::POST, "/api/pull", Some(pull)).await;
    let text = within("a pull", response.text()).await.unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    assert_eq!(lines[0], json!({"status": "pulling manifest"}));
    let is_between = |line: &Value| {
        let completed = line["completed"].as_u64().unwrap_or_default();
        line["total"] == SMOLLM2_BYTES && (1..SMOLLM2_BYTES).contains(&completed)
    };
    assert!(lines.iter().any(is_between), "{text}");
    assert_eq!(lines.last(), Some(&json!({"status": "success"})), "{text}");
    assert!(is_whole(&data, SMOLLM2));

    // An installed model is not even requested.
    let before = hub.sent();
    let again = json!({"model": Q4_1, "stream": false});
    let again = host.ask(Method::POST, "/api/pull", Some(again)).await;
    assert_eq!(again, (200, json!({"status": "success"})));
    assert_eq!(hub.sent(), before);
}

#[tokio::test]
async fn a_killed_hosts_download_resumes_at_the_next_start() {
    let hub = hub().await;
    hub.set_rate(20_000_000);
    let data = of(&hub);
    let mut host = data.serve().await;
    let (status, begun) = download(&host, json!({"reference": Q4_1})).await;
    assert_eq!(status, 201, "{begun}");
    when(&host, "half of it", |download| {
        download.received_bytes > SMOLLM2_BYTES / 2
    })
    .await;
    until("a journal", async || {
        (!claimed(&data).is_empty()).then_some(())
    })
    .await;
    host.child.kill().await.unwrap();
    assert!(!is_whole(&data, SMOLLM2));
    let kept = claimed(&data);
    let before = hub.seen().len();

    hub.set_rate(0);
    let host = data.serve().await;
    let done = when(&host, "its end", |download| {
        download.state == DownloadState::Done
    })
    .await;
    assert_eq!(done.id, begun["id"].as_str().unwrap());
    assert!(is_whole(&data, SMOLLM2));
    // No stored byte is requested again.
    let requests = hub.seen().split_off(before);
    let ranges = requests
        .iter()
        .filter(|seen| seen.server == Server::Storage);
    let starts = ranges.map(|seen| {
        let range = seen.range.as_deref().unwrap();
        let (start, _) = range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap();
        start.parse::<u64>().unwrap()
    });
    let starts: Vec<_> = starts.collect();
    assert!(!starts.is_empty());
    for start in starts {
        let there = |(from, to): &&(u64, u64)| (*from..*to).contains(&start);
        assert_eq!(
            kept.iter().find(there),
            None,
            "requested again from {start}"
        );
    }
}

#[tokio::test]
async fn an_interrupted_pull_is_paused_and_can_be_resumed() {
    let hub = hub().await;
    hub.set_rate(20_000_000);
    let data = of(&hub);
    let mut command = data.tierbar(&["models", "pull", Q4_1]);
    let child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let storage = async || {
        let sent: u64 = hub
            .seen()
            .iter()
            .filter(|seen| seen.server == Server::Storage)
            .map(|seen| seen.sent())
            .sum();
        (sent > SMOLLM2_BYTES / 4).then_some(())
    };
    until("a part of it", storage).await;
    let pid = child.id().unwrap().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.unwrap().success());
    let output = within("the command's end", child.wait_with_output())
        .await
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr.contains("paused") && stderr.contains("the same command"),
        "{stderr}"
    );
    assert!(!unfinished(&data).is_empty());

    // A host does not resume a download that the user has paused.
    let host = data.serve().await;
    assert_eq!(downloads(&host).await[0].state, DownloadState::Paused);
    host.kill().await;
    hub.set_rate(0);
    let (code, _, stderr) = data.run(&["models", "pull", Q4_1]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(is_whole(&data, SMOLLM2));
}

#[tokio::test]
async fn downloads_are_paused_resumed_and_cancelled() {
    let hub = hub().await;
    hub.set_rate(4_000_000);
    let data = of(&hub);
    let host = data.serve().await;
    let (_, begun) = download(&host, json!({"reference": Q4_1})).await;
    let id = begun["id"].as_str().unwrap();
    let (status, same) = download(&host, json!({"reference": Q4_1, "priority": "high"})).await;
    assert_eq!(
        (status, &same["id"], &same["priority"]),
        (200, &json!(id), &json!("high"))
    );

    let (code, stdout, stderr) = data.run(&["downloads", "pause", id]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("paused"), "{stdout}");
    let (_, stdout, _) = data.run(&["downloads"]).await;
    assert!(stdout.contains(id) && stdout.contains("paused"), "{stdout}");
    let path = format!("/tierbar/v1/downloads/{id}");
    for wrong in [json!({"state": "done"}), json!({})] {
        let (status, body) = host.ask(Method::PATCH, &path, Some(wrong)).await;
        assert_eq!(
            (status, &body["error"]["code"]),
            (400, &json!("bad_request"))
        );
    }
    assert_eq!(data.run(&["downloads", "resume", id]).await.0, Some(0));
    when(&host, "that it goes on", |download| {
        download.state.is_under_way()
    })
    .await;
    assert_eq!(data.run(&["downloads", "cancel", id]).await.0, Some(0));
    assert!(downloads(&host).await.is_empty());
    assert!(unfinished(&data).is_empty());
    let (status, _) = host
        .ask(Method::PATCH, &path, Some(json!({"state": "queued"})))
        .await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn bytes_that_fail_verification_never_get_the_files_name() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.gguf");
    let mut bytes = fs::read(binaries::model(SMOLLM2)).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&wrong, bytes).unwrap();
    let mut file = HubFile::on_disk(SMOLLM2, wrong);
    file.sha256 = hub_hash();
    let repository = HubRepository::new("tierbar-tests/wrong-GGUF", vec![file]);
    let options = Options {
        repositories: vec![repository],
        ..Options::default()
    };
    let hub = HubStandIn::start(options).await;
    let data = of(&hub);
    let (code, stdout, stderr) = data
        .run(&["models", "pull", "tierbar-tests/wrong-GGUF"])
        .await;
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("sha256"), "{stderr}");
    assert!(!data.models().join(SMOLLM2).exists());
}

#[tokio::test]
async fn a_complete_file_that_is_no_model_is_refused_or_deleted() {
    let page = "<html>".repeat(1 << 16);
    let repository = HubRepository::new(
        "tierbar-tests/page-GGUF",
        vec![HubFile::new("page-Q4_0.gguf", page.as_bytes())],
    );
    let options = Options {
        repositories: vec![repository],
        ..Options::default()
    };
    let hub = HubStandIn::start(options).await;
    let data = of(&hub);
    let pull = ["models", "pull", "tierbar-tests/page-GGUF", "--anyway"];
    for arguments in [&pull[..3], &pull] {
        let (code, _, stderr) = data.run(arguments).await;
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("GGUF"), "{stderr}");
        assert!(!data.models().join("page-Q4_0.gguf").exists());
    }
}

#[tokio::test]
async fn a_model_that_cannot_run_here_needs_force() {
    let hub = hub().await;
    let data = of(&hub).with("TIERBAR_SIMULATE_RAM", "3GiB");
    let (code, _, stderr) = data.run(&["models", "pull", Q4_1]).await;
    assert_eq!(code, Some(6), "{stderr}");
    assert!(stderr.contains("--anyway"), "{stderr}");
    assert!(!data.models().join(SMOLLM2).exists());
    let host = data.serve().await;
    let (status, body) = download(&host, json!({"reference": Q4_1})).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("over_budget"))
    );
    assert!(body["error"]["needed_bytes"].as_u64() > body["error"]["budget_bytes"].as_u64());
    host.kill().await;
    let (code, _, stderr) = data.run(&["models", "pull", Q4_1, "--anyway"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(is_whole(&data, SMOLLM2));
}

#[tokio::test]
async fn a_model_beyond_the_free_space_is_refused_early() {
    let folder = tempfile::tempdir().unwrap();
    // A header, and 4 TiB of holes behind it.
    let huge = folder.path().join(SMOLLM2);
    fs::copy(binaries::model(SMOLLM2), &huge).unwrap();
    let file = fs::File::options().write(true).open(&huge).unwrap();
    file.set_len(1 << 42).unwrap();
    let file = HubFile::on_disk("huge-Q8_0.gguf", huge);
    let options = Options {
        repositories: vec![HubRepository::new("tierbar-tests/huge-GGUF", vec![file])],
        ..Options::default()
    };
    let hub = HubStandIn::start(options).await;
    let data = of(&hub);
    let host = data.serve().await;
    let request = json!({"reference": "tierbar-tests/huge-GGUF", "anyway": true});
    let (status, body) = download(&host, request).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (507, &json!("storage")),
        "{body}"
    );
    assert!(body["error"]["free_bytes"].as_u64() < body["error"]["needed_bytes"].as_u64());
    assert!(downloads(&host).await.is_empty());
    assert_eq!(fs::read_dir(data.models()).unwrap().count(), 0);
}

#[tokio::test]
async fn invalid_references_are_refused_with_valid_examples() {
    let hub = hub().await;
    let data = of(&hub);
    let host = data.serve().await;
    for (reference, status, code) in [
        ("", 400, "bad_request"),
        ("../etc/passwd", 400, "bad_request"),
        ("ftp://example.com/m.gguf", 400, "bad_request"),
        ("no-such-model", 404, "model_unknown"),
        ("tierbar-tests/nothing-GGUF", 404, "repository_unknown"),
        ("tierbar-tests/tiny-GGUF:Q9_9", 404, "repository_unknown"),
    ] {
        let (got, body) = download(&host, json!({"reference": reference})).await;
        assert_eq!(
            (got, &body["error"]["code"]),
            (status, &json!(code)),
            "{reference}: {body}"
        );
        assert!(body["error"]["hint"].is_string(), "{reference}: {body}");
    }
    assert!(downloads(&host).await.is_empty());
}

#[tokio::test]
async fn two_hosts_may_download_a_model_into_one_folder() {
    let hub = hub().await;
    hub.set_rate(60_000_000);
    let (one, other) = (of(&hub), of(&hub));
    let shared = format!("models_dir = \"{}\"\n", one.models().display());
    other.configure(&shared);
    let pull = ["models", "pull", Q4_1];
    let (first, second) = tokio::join!(one.run(&pull), other.run(&pull));
    let good = [&first, &second]
        .iter()
        .filter(|(code, ..)| *code == Some(0))
        .count();
    assert!(good >= 1, "{first:?} {second:?}");
    for (code, _, stderr) in [first, second] {
        assert!(
            code == Some(0) || stderr.contains("another Tierbar"),
            "{stderr}"
        );
    }
    assert!(is_whole(&one, SMOLLM2));
}

#[tokio::test]
async fn a_remote_verdict_downloads_only_the_header() {
    let hub = hub().await;
    let data = of(&hub);
    let host = data.serve().await;
    let path =
        "/tierbar/v1/models/fit?model=tierbar-tests/tiny-GGUF:Q4_K_M&context=2048&kv_cache=q8_0";
    let (status, remote) = host.ask(Method::GET, path, None).await;
    assert_eq!(status, 200, "{remote}");
    assert_eq!(
        (&remote["context_tokens"], &remote["kv_cache"]),
        (&json!(2048), &json!("q8_0"))
    );
    assert_eq!(remote["estimated"], false);
    let requests = hub.seen().len();
    assert!(requests <= 8, "{requests} requests");
    assert!(hub.sent() <= 16 << 20, "{} bytes", hub.sent());

    // The file itself has the same sum.
    std::os::unix::fs::symlink(binaries::model(GEMMA), data.models().join(GEMMA)).unwrap();
    let path = "/tierbar/v1/models/fit?model=gemma-3-270m-q4_k_m&context=2048&kv_cache=q8_0";
    let (_, local) = host.ask(Method::GET, path, None).await;
    assert_eq!(local["lines"], remote["lines"]);
    assert_eq!(hub.seen().len(), requests, "a local model needs no hub");

    let (_, mac) = host
        .ask(Method::GET, &format!("{path}&ram=8GiB"), None)
        .await;
    assert_eq!(
        (&mac["ram_bytes"], &mac["budget_bytes"]),
        (&json!(8_u64 << 30), &json!(5_u64 << 30))
    );
    for wrong in ["context=12", "kv_cache=q5", "ram=lots"] {
        let path = format!("/tierbar/v1/models/fit?model={SMOLLM2_ID}&{wrong}");
        let (status, body) = host.ask(Method::GET, &path, None).await;
        assert_eq!(
            (status, &body["error"]["code"]),
            (400, &json!("bad_request")),
            "{wrong}"
        );
    }
    let (code, sum, _) = data.run(&["models", "fit", "gemma-3-270m-q4_k_m"]).await;
    assert_eq!(code, Some(0));
    for line in [
        "KV cache",
        "Compute buffers",
        "Total",
        "Largest context that fits",
    ] {
        assert!(sum.contains(line), "{sum}");
    }
}
