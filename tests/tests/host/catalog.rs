//! The list of models to choose from, updated from the hub's stand-in.

use reqwest::Method;
use serde_json::Value;
use std::fs;
use tierbar_tests::{
    hub::{GATED, HubFile, HubRepository, HubStandIn, Options, SMOLLM2},
    serving::{Data, Serving},
};

/// In the catalog with a hash, which the stand-in's file does not have.
const KNOWN: &str = "bartowski/SmolLM2-135M-Instruct-GGUF";
/// In the catalog without a hash.
const UNKNOWN: &str = "nomic-ai/nomic-embed-text-v1.5-GGUF";
const SMOLLM2_BYTES: u64 = 98_362_432;

async fn hub(files: &[(&str, &str)]) -> HubStandIn {
    let repositories = files.iter().map(|(repository, file)| {
        HubRepository::new(repository, vec![HubFile::model(file, SMOLLM2)])
    });
    HubStandIn::start(Options {
        repositories: repositories.collect(),
        ..Options::default()
    })
    .await
}

async fn get(host: &Serving) -> Value {
    let (status, catalog) = host.ask(Method::GET, "/tierbar/v1/catalog", None).await;
    assert_eq!(status, 200, "{catalog}");
    catalog
}

async fn refresh(host: &Serving) -> (u16, Value) {
    let path = "/tierbar/v1/catalog/refresh";
    host.ask(Method::POST, path, None).await
}

fn quant<'a>(catalog: &'a Value, id: &str, quant: &str) -> &'a Value {
    let models = catalog["models"].as_array().unwrap();
    let model = models.iter().find(|model| model["id"] == id).unwrap();
    let quants = model["quants"].as_array().unwrap();
    quants.iter().find(|file| file["quant"] == quant).unwrap()
}

#[tokio::test]
async fn the_list_is_updated_from_the_hub_only_on_request() {
    let hub = hub(&[(KNOWN, "renamed/SmolLM2-Q4_K_M.gguf")]).await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    let kept = data.path().join("catalog.json");
    fs::write(&kept, "{").unwrap();
    let host = data.serve().await;
    let before = get(&host).await;
    assert_eq!(before["refreshed"], Value::Null);
    assert!(hub.seen().is_empty(), "{:?}", hub.seen());
    let (status, outcome) = refresh(&host).await;
    assert_eq!(status, 200, "{outcome}");
    assert_eq!(outcome["updated"], serde_json::json!(["smollm2-135m"]));
    let failed = outcome["failed"].as_array().unwrap();
    assert_eq!(failed.len() + 1, before["models"].as_array().unwrap().len());
    for failure in failed {
        let reason = failure["reason"].as_str().unwrap();
        assert!(reason.contains("has no repository"), "{failure}");
    }
    let after = get(&host).await;
    assert_eq!(after["refreshed"], outcome["refreshed"]);
    let file = quant(&after, "smollm2-135m", "Q4_K_M");
    assert_eq!(file["file"], "renamed/SmolLM2-Q4_K_M.gguf");
    assert_eq!(file["size_bytes"], SMOLLM2_BYTES);
    // The others stay as they came with Tierbar.
    let others = |catalog: &Value| quant(catalog, "gemma-4-e4b", "Q4_K_M")["sha256"].clone();
    assert_eq!(others(&after), others(&before));
    host.kill().await;
    let (code, shown, stderr) = data.run(&["models", "show", "smollm2:135m"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(shown.contains("98 MB"), "{shown}");
    // Another version's file counts as none.
    let text = fs::read_to_string(&kept).unwrap();
    fs::write(&kept, text.replace("\"version\": 1", "\"version\": 0")).unwrap();
    let (_, shown, _) = data.run(&["models", "show", "smollm2:135m"]).await;
    assert!(shown.contains("105 MB"), "{shown}");
}

#[tokio::test]
async fn an_update_without_any_repository_changes_nothing() {
    let hub = hub(&[(GATED, "a-Q4_0.gguf")]).await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    let (code, _, stderr) = data.run(&["models", "refresh"]).await;
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("has no repository"), "{stderr}");
    assert!(!data.path().join("catalog.json").exists());
}

#[tokio::test]
async fn a_file_of_another_architecture_is_refused_by_its_name() {
    let repository = "unsloth/Qwen3.5-35B-A3B-GGUF";
    let hub = hub(&[(repository, "Qwen3.5-35B-A3B-UD-IQ2_M.gguf")]).await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    let _host = data.serve().await;
    for reference in [
        "qwen3.5-35b-a3b:UD-IQ2_M",
        &format!("{repository}:UD-IQ2_M"),
    ] {
        let (code, _, stderr) = data.run(&["models", "pull", reference]).await;
        assert_ne!(code, Some(0), "{reference}: {stderr}");
        let found = "the file is not Qwen3.5 35B-A3B: its architecture is llama";
        assert!(stderr.contains(found), "{reference}: {stderr}");
    }
    let file = data.models().join("Qwen3.5-35B-A3B-UD-IQ2_M.gguf");
    assert!(!file.exists());
}

#[tokio::test]
async fn the_first_download_pins_a_file_without_a_known_hash() {
    let name = "nomic-embed-text-v1.5.Q4_K_M.gguf";
    let hub = hub(&[(UNKNOWN, name)]).await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    let host = data.serve().await;
    let id = "nomic-embed-text-v1.5";
    assert_eq!(
        quant(&get(&host).await, id, "Q4_K_M")["sha256"],
        Value::Null
    );
    let reference = format!("{UNKNOWN}:Q4_K_M");
    let (code, _, stderr) = data.run(&["models", "pull", &reference]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let file = quant(&get(&host).await, id, "Q4_K_M").clone();
    assert!(
        file["sha256"].as_str().unwrap().starts_with("b179c9"),
        "{file}"
    );
    assert_eq!(file["installed"], true);
    // The hub's file changes: the pinned commit is gone, and what is here is still the model of this entry.
    hub.change(UNKNOWN, |repository| {
        repository.files.retain(|file| file.path != name);
    });
    assert_eq!(quant(&get(&host).await, id, "Q4_K_M")["installed"], true);
}
