//! Models in a terminal and at the API: hosts that end, paths of a shell, Ctrl-C, concurrent changes.

use reqwest::Method;
use serde_json::json;
use std::{fs, process::Stdio, time::Duration};
use tierbar_core::download::DownloadState;
use tierbar_tests::{
    binaries,
    hub::{HubStandIn, Options, SMOLLM2},
    serving::Data,
    wait::{until, within},
};
use tokio::process::{Child, Command};

const Q4_1: &str = "tierbar-tests/tiny-GGUF:Q4_1";

async fn hub(rate: u64) -> (HubStandIn, Data) {
    let hub = HubStandIn::start(Options {
        rate,
        ..Options::default()
    })
    .await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    (hub, data)
}

fn begin(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(super) async fn interrupt(child: &Child) {
    let pid = child.id().unwrap().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(within("kill", sent).await.unwrap().success());
}

/// The exit code, and what was written to stderr.
async fn ended(child: Child) -> (Option<i32>, String) {
    let output = within("the command's end", child.wait_with_output())
        .await
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), stderr)
}

#[tokio::test]
async fn a_pull_continues_by_itself_if_its_host_is_killed() {
    let (hub, data) = hub(8_000_000).await;
    let host = data.serve().await;
    let pull = begin(data.tierbar(&["models", "pull", Q4_1]));
    until("a part of it", async || {
        let downloads = host.status().await.downloads;
        (downloads.first()?.received_bytes > 0).then_some(())
    })
    .await;
    host.kill().await;
    hub.set_rate(0);
    let (code, stderr) = ended(pull).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("Tierbar quit; the download continues"),
        "{stderr}"
    );
    let fetched = fs::read(data.models().join(SMOLLM2)).unwrap();
    assert!(fetched == fs::read(binaries::model(SMOLLM2)).unwrap());
}

#[tokio::test]
async fn an_interrupted_pull_that_has_not_begun_ends_at_once() {
    // Longer than this test: there is no answer.
    let hub = HubStandIn::start(Options {
        latency: Duration::from_secs(3600),
        ..Options::default()
    })
    .await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    let pull = begin(data.tierbar(&["models", "pull", Q4_1]));
    until("a question to the hub", async || {
        (!hub.seen().is_empty()).then_some(())
    })
    .await;
    interrupt(&pull).await;
    let (code, stderr) = ended(pull).await;
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.contains("before the download started"), "{stderr}");
}

#[tokio::test]
async fn concurrent_commands_share_a_host_or_wait_for_their_own() {
    let data = Data::new("");
    let commands = (0..6).map(|_| data.run(&["models", "list"]));
    for (code, stdout, stderr) in futures_util::future::join_all(commands).await {
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("SmolLM2"), "{stdout}");
    }
}

#[tokio::test]
async fn a_paused_download_is_managed_without_a_host() {
    let (hub, data) = hub(8_000_000).await;
    let pull = begin(data.tierbar(&["models", "pull", Q4_1]));
    until("a part of it", async || {
        let part = data.models().join(format!("{SMOLLM2}.part"));
        (part.exists() && hub.sent() > 2_000_000).then_some(())
    })
    .await;
    interrupt(&pull).await;
    let (_, stderr) = ended(pull).await;
    assert!(stderr.contains("paused"), "{stderr}");
    hub.set_rate(0);
    let (code, stdout, stderr) = data.run(&["downloads"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.contains(SMOLLM2) && stdout.contains("paused"),
        "{stdout}"
    );
    let id = stdout.split_whitespace().next().unwrap();
    // The host would end with the command.
    let (code, _, stderr) = data.run(&["downloads", "resume", id]).await;
    assert_eq!(code, Some(3));
    assert!(stderr.contains("tierbar serve"), "{stderr}");
    assert_eq!(data.run(&["downloads", "cancel", id]).await.0, Some(0));
    let left = fs::read_dir(data.models()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    let left: Vec<_> = left.iter().filter(|name| *name != ".tierbar").collect();
    assert!(left.is_empty(), "{left:?}");
    let (_, stdout, stderr) = data.run(&["downloads"]).await;
    assert_eq!(stdout, "");
    assert!(stderr.starts_with("There are no downloads."), "{stderr}");
    let (_, stdout, _) = data.run(&["downloads", "--json"]).await;
    assert_eq!(stdout, "{\"downloads\":[]}\n");
}

#[tokio::test]
async fn a_path_is_relative_to_the_shells_folder() {
    let data = Data::empty("");
    let folder = data.path().join("home");
    fs::copy(binaries::model(SMOLLM2), folder.join("mine.gguf")).unwrap();
    let host = data.serve().await;
    // Only models of the library are verified.
    let import = json!({"path": folder});
    host.ask(Method::POST, "/tierbar/v1/models/import", Some(import))
        .await;
    for name in ["mine.gguf", "./mine.gguf", "../home/mine.gguf"] {
        for command in ["fit", "verify"] {
            let mut command = data.tierbar(&["models", command, name]);
            let (code, stderr) = ended(begin({
                command.current_dir(&folder);
                command
            }))
            .await;
            assert_eq!(code, Some(0), "{name}: {stderr}");
        }
    }
    host.kill().await;
}

#[tokio::test]
async fn a_problem_with_the_named_model_is_printed_once() {
    let data = Data::new("");
    let (code, _, stderr) = data.run(&["models", "verify", "gone"]).await;
    assert_eq!(code, Some(4));
    assert_eq!(stderr.matches("error:").count(), 1, "{stderr}");
    assert!(stderr.contains("there is no model \"gone\""), "{stderr}");
}

#[tokio::test]
async fn concurrent_imports_are_all_kept() {
    let data = Data::empty("");
    let host = data.serve().await;
    let names: Vec<_> = (0..6)
        .map(|at| data.path().join(format!("home/{at}")))
        .collect();
    let import = async |folder: &std::path::Path| {
        fs::create_dir(folder).unwrap();
        let body = json!({"path": folder});
        host.ask(Method::POST, "/tierbar/v1/models/import", Some(body))
            .await
    };
    let answers = futures_util::future::join_all(names.iter().map(|name| import(name))).await;
    assert!(
        answers.iter().all(|(status, _)| *status == 200),
        "{answers:?}"
    );
    let (_, body) = host.ask(Method::GET, "/tierbar/v1/config", None).await;
    let folders = body["config"]["library"]["folders"].as_array().unwrap();
    assert_eq!(folders.len(), names.len(), "{folders:?}");
}

#[tokio::test]
async fn a_change_is_applied_as_a_whole_or_not_at_all() {
    let (_hub, data) = hub(4_000_000).await;
    let host = data.serve().await;
    let body = json!({"reference": Q4_1});
    let (_, begun) = host
        .ask(Method::POST, "/tierbar/v1/downloads", Some(body))
        .await;
    let path = format!("/tierbar/v1/downloads/{}", begun["id"].as_str().unwrap());
    let change = json!({"priority": "high", "state": "done"});
    let (status, _) = host.ask(Method::PATCH, &path, Some(change)).await;
    assert_eq!(status, 400);
    let download = host.status().await.downloads.remove(0);
    assert_eq!(json!(download.priority), "normal");
    assert_ne!(download.state, DownloadState::Done);
}

#[tokio::test]
async fn watchers_get_an_event_when_models_appear_or_vanish() {
    let data = Data::empty("");
    let host = data.serve().await;
    let file = data.models().join(SMOLLM2);
    // The first scan changes it too. If that came after the model, it would stand for the model's.
    let mut known = until("the first scan", async || {
        let revision = host.status().await.models_revision;
        (revision > 0).then_some(revision)
    })
    .await;
    for appears in [true, false] {
        if appears {
            fs::copy(binaries::model(SMOLLM2), &file).unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        known = until("another list", async || {
            let revision = host.status().await.models_revision;
            let (_, body) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
            let here = !body["models"].as_array()?.is_empty();
            (revision != known && here == appears).then_some(revision)
        })
        .await;
    }
}
