//! What a person meets who works with models, in a terminal and at the API: hosts that end, paths as a shell has them,
//! Ctrl-C, changes at the same time.

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

async fn interrupt(child: &Child) {
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
async fn a_pull_goes_on_by_itself_when_the_host_that_fetched_for_it_is_killed() {
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
async fn a_pull_that_has_not_begun_ends_at_once_when_interrupted() {
    // Longer than this test may take: no answer comes.
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
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("before the download started"), "{stderr}");
}

#[tokio::test]
async fn commands_that_need_a_host_at_the_same_time_share_one_or_wait_for_theirs() {
    let data = Data::new("");
    let commands = (0..6).map(|_| data.run(&["models", "list"]));
    for (code, told, stderr) in futures_util::future::join_all(commands).await {
        assert_eq!(code, Some(0), "{stderr}");
        assert!(told.contains("SmolLM2"), "{told}");
    }
}

#[tokio::test]
async fn without_a_host_a_paused_download_is_listed_and_cancelled() {
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
    let (code, told, stderr) = data.run(&["downloads"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(told.contains(SMOLLM2) && told.contains("paused"), "{told}");
    let id = told.split_whitespace().next().unwrap();
    // It would end with the command.
    let (code, _, stderr) = data.run(&["downloads", "resume", id]).await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("tierbar serve"), "{stderr}");
    assert_eq!(data.run(&["downloads", "cancel", id]).await.0, Some(0));
    let left = fs::read_dir(data.models()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    let left: Vec<_> = left.iter().filter(|name| *name != ".tierbar").collect();
    assert!(left.is_empty(), "{left:?}");
    let (_, told, _) = data.run(&["downloads"]).await;
    assert_eq!(told, "There are no downloads.\n");
}

#[tokio::test]
async fn a_path_means_what_it_means_in_the_shell_whatever_folder_the_host_runs_in() {
    let data = Data::empty("");
    let folder = data.path().join("home");
    fs::copy(binaries::model(SMOLLM2), folder.join("mine.gguf")).unwrap();
    let host = data.serve().await;
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
async fn what_is_wrong_with_the_one_model_that_was_named_is_said_once() {
    let data = Data::new("");
    let (code, _, stderr) = data.run(&["models", "verify", "gone"]).await;
    assert_eq!(code, Some(1));
    assert_eq!(stderr.matches("error:").count(), 1, "{stderr}");
    assert!(stderr.contains("there is no model \"gone\""), "{stderr}");
}

#[tokio::test]
async fn folders_that_are_imported_at_the_same_time_are_all_kept() {
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
async fn a_change_that_cannot_be_made_whole_is_not_made_in_part() {
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
async fn whoever_watches_is_told_when_models_appear_and_vanish() {
    let data = Data::empty("");
    let host = data.serve().await;
    let file = data.models().join(SMOLLM2);
    let mut known = host.status().await.models_revision;
    for appears in [true, false] {
        if appears {
            fs::copy(binaries::model(SMOLLM2), &file).unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        // The first scan may come only now: what counts is the list that goes with it.
        known = until("another list", async || {
            let revision = host.status().await.models_revision;
            let (_, body) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
            let here = !body["models"].as_array()?.is_empty();
            (revision != known && here == appears).then_some(revision)
        })
        .await;
    }
}
