//! Tiers that get a model once it is downloaded.

use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use tierbar_core::download::{DownloadState, DownloadStatus};
use tierbar_mixture::Random;
use tierbar_tests::{
    binaries,
    hub::{HubFile, HubRepository, HubStandIn, Options, SMOLLM2},
    serving::{Data, Serving},
    wait::until,
};

const CONFIG: &str = "[tiers.fast]\n[tiers.primary]\n";
const FIRST: &str = "tierbar-tests/first-GGUF:Q8_0";
const SECOND: &str = "tierbar-tests/second-GGUF:Q8_0";

async fn hub() -> HubStandIn {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let random = Random::Gemma4;
    random.write(&binaries::model(SMOLLM2), &path).unwrap();
    let model = fs::read(path).unwrap();
    let repository = |name: &str| {
        let file = HubFile::new(&format!("{name}-Q8_0.gguf"), &model);
        HubRepository::new(&format!("tierbar-tests/{name}-GGUF"), vec![file])
    };
    HubStandIn::start(Options {
        repositories: vec![repository("first"), repository("second")],
        ..Options::default()
    })
    .await
}

async fn pull(host: &Serving, body: Value) -> String {
    let (status, download) = host
        .ask(Method::POST, "/tierbar/v1/downloads", Some(body))
        .await;
    assert!(matches!(status, 200 | 201), "{status}: {download}");
    download["id"].as_str().unwrap().to_owned()
}

async fn done(host: &Serving, reference: &str) {
    until("a download's end", async || {
        let downloads = host.status().await.downloads;
        let is_it = |download: &&DownloadStatus| download.reference == reference;
        let state = downloads.iter().find(is_it)?.state;
        (state == DownloadState::Done).then_some(())
    })
    .await;
}

fn config(data: &Data) -> String {
    fs::read_to_string(data.path().join("config.toml")).unwrap()
}

fn pending(data: &Data) -> Value {
    let text = fs::read(data.path().join("assignments.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[tokio::test]
async fn a_tier_gets_its_model_once_the_configuration_is_valid() {
    let hub = hub().await;
    let data = Data::empty(CONFIG).with("HF_ENDPOINT", &hub.url());
    let host = data.serve().await;
    let notice = async |part: &str| {
        until(part, async || {
            let notices = host.status().await.notices;
            notices.into_iter().find(|notice| notice.contains(part))
        })
        .await
    };
    data.configure("[tiers.fast]\n[tiers.primary]\ncontext = \"wide\"\n");
    notice("config.toml line 3").await;
    pull(&host, json!({"reference": FIRST, "tier": "fast"})).await;
    let waiting = notice("first-Q8_0 is downloaded, and fast gets it once").await;
    assert!(waiting.contains("config.toml line 3"), "{waiting}");
    assert_eq!(pending(&data)[FIRST]["tier"], "fast");
    data.configure(CONFIG);
    until("the tier's model", async || {
        config(&data).contains("first-Q8_0").then_some(())
    })
    .await;
    until("no notice", async || {
        let notices = host.status().await.notices;
        let gone = !notices.iter().any(|notice| notice.contains("gets it once"));
        gone.then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_later_choice_and_a_removed_download_change_no_tier() {
    let hub = hub().await;
    let data = Data::empty(CONFIG).with("HF_ENDPOINT", &hub.url());
    let host = data.serve().await;
    hub.set_rate(8_000_000);
    pull(&host, json!({"reference": FIRST, "tier": "fast"})).await;
    // It waits for the first.
    let second = pull(&host, json!({"reference": SECOND, "tier": "primary"})).await;
    let mine = json!({"tiers": {"fast": {"model": "mine"}}});
    let (status, _) = host
        .ask(Method::PATCH, "/tierbar/v1/config", Some(mine))
        .await;
    assert_eq!(status, 200);
    let removed = format!("/tierbar/v1/downloads/{second}");
    let removed = host.send(Method::DELETE, &removed, None).await;
    assert!(removed.status().is_success(), "{removed:?}");
    assert_eq!(pending(&data)[SECOND], Value::Null);
    assert_eq!(pending(&data)[FIRST]["tier"], "fast");
    hub.set_rate(0);
    pull(&host, json!({"reference": SECOND})).await;
    done(&host, SECOND).await;
    until("the end of the assignment", async || {
        (pending(&data) == json!({})).then_some(())
    })
    .await;
    let config = config(&data);
    assert!(config.contains("\"mine\""), "{config}");
    assert!(!config.contains("Q8_0"), "{config}");
}
