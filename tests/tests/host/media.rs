//! Images: a projector that a pull brings or leaves out, tasks in every dialect's form, and a projector that is damaged.

use crate::support::projector::{CAUSAL, Kind, WHOLE, stripes, write};
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use tierbar_core::Modality;
use tierbar_tests::{
    hub::{HubFile, HubRepository, HubStandIn, Options, SMOLLM2},
    serving::{Data, Serving},
};

const REFERENCE: &str = "a/Seeing-GGUF:Q4_1";
const ID: &str = "SmolLM2-135M-Instruct.Q4_1";
const PROJECTOR: &str = "mmproj-Seeing-BF16.gguf";
const TIER: &str = "[tiers.fast]\nmodel = \"SmolLM2-135M-Instruct.Q4_1\"\ncontext = 2048\n";

/// A repository with a projector of another model, which would be preferred, and one of this.
async fn hub() -> HubStandIn {
    let folder = tempfile::tempdir().unwrap();
    let projector = |name: &str, kind: Kind| {
        let path = folder.path().join(name);
        write(kind, &path);
        HubFile::new(name, &fs::read(path).unwrap())
    };
    let files = vec![
        HubFile::model(SMOLLM2, SMOLLM2),
        projector("mmproj-F16.gguf", WHOLE),
        projector("mmproj-BF16.gguf", CAUSAL),
    ];
    HubStandIn::start(Options {
        repositories: vec![HubRepository::new("a/Seeing-GGUF", files)],
        ..Options::default()
    })
    .await
}

async fn pull(data: &Data, arguments: &[&str]) -> String {
    let (code, _, stderr) = data.run(&[&["models", "pull"], arguments].concat()).await;
    assert_eq!(code, Some(0), "{stderr}");
    stderr
}

async fn triage(host: &Serving, body: Value) -> (u16, Value) {
    host.ask(Method::POST, "/v1/triage", Some(body)).await
}

async fn model(host: &Serving) -> Value {
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
    listed["models"][0].clone()
}

#[tokio::test]
async fn a_pull_brings_the_projector_that_fits() {
    let hub = hub().await;
    let data = Data::empty("").with("HF_ENDPOINT", &hub.url());
    let stderr = pull(&data, &[REFERENCE]).await;
    assert!(stderr.contains("for images and sound"), "{stderr}");
    let published = data.path().join("published.gguf");
    write(CAUSAL, &published);
    assert_eq!(
        fs::read(data.models().join(PROJECTOR)).unwrap(),
        fs::read(published).unwrap()
    );
    assert!(!data.models().join("mmproj-Seeing-F16.gguf").exists());
    let (_, fit, _) = data.run(&["models", "fit", ID]).await;
    assert!(fit.contains("Media projector"), "{fit}");
    let (code, verified, _) = data.run(&["models", "verify"]).await;
    assert_eq!(code, Some(0), "{verified}");
    let (code, removed, _) = data
        .run(&["models", "rm", ID, "--yes", "--permanently"])
        .await;
    assert_eq!(code, Some(0), "{removed}");
    assert!(!data.models().join(PROJECTOR).exists());
}

#[tokio::test]
async fn a_projector_can_be_left_out_added_and_damaged() {
    let hub = hub().await;
    let data = Data::empty(TIER).with("HF_ENDPOINT", &hub.url());
    let host = data.serve().await;
    let image = BASE64_STANDARD.encode(stripes(1));
    pull(&data, &[REFERENCE, "--no-media"]).await;
    assert!(!data.models().join(PROJECTOR).exists());
    let takes = async |modalities: &[Modality]| {
        host.tier_when("fast", |tier| tier.input_modalities == modalities)
            .await;
    };
    takes(&[Modality::Text]).await;
    let seen = json!({"text": "What is this?", "images": [image]});
    let (status, refused) = triage(&host, seen.clone()).await;
    assert_eq!(status, 400, "{refused}");
    let error = &refused["error"];
    assert_eq!(error["code"], "bad_request");
    let message = error.to_string();
    assert!(
        message.contains("its projector is not installed"),
        "{message}"
    );
    assert!(message.contains("--only-media"), "{message}");
    // Nothing was loaded for that.
    assert_eq!(host.tier("fast").await.pid, None);

    let before = hub.sent();
    pull(&data, &[ID, "--only-media"]).await;
    assert!(hub.sent() - before < 50_000_000, "the model came again");
    takes(&[Modality::Text, Modality::Image]).await;
    let path = data.models().join(PROJECTOR);
    assert_eq!(model(&host).await["projector"], path.to_str().unwrap());

    let url = format!("data:image/png;base64,{image}");
    let source = json!({"type": "base64", "media_type": "image/png", "data": image});
    let texts = json!([
        [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": url}}],
        [{"type": "image", "source": source}, {"type": "text", "text": "Look"}],
        {"role": "user", "content": "Look", "images": [image]},
        "No image at all",
    ]);
    let (status, answer) = triage(&host, json!({"texts": texts})).await;
    assert_eq!((status, &answer["failed"]), (200, &json!(0)), "{answer}");
    let tokens = |at: usize| {
        answer["results"][at]["usage"]["prompt_tokens"]
            .as_u64()
            .unwrap()
    };
    // An image of this projector's is 64 tokens.
    assert!((0..3).all(|at| tokens(at) > tokens(3) + 60), "{answer}");
    let (status, answer) = host.ask(Method::POST, "/v1/summarize", Some(seen)).await;
    assert_eq!(status, 200, "{answer}");
    let (_, listed) = host.ask(Method::GET, "/v1/models", None).await;
    let modalities = &listed["data"][1]["tierbar"]["input_modalities"];
    assert_eq!(*modalities, json!(["text", "image"]));
    let (_, shown) = host
        .ask(Method::POST, "/api/show", Some(json!({"model": "fast"})))
        .await;
    assert!(
        shown["capabilities"]
            .as_array()
            .unwrap()
            .contains(&json!("vision"))
    );

    // Cut short, it is reported, and text is answered.
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    takes(&[Modality::Text]).await;
    let error = model(&host).await["projector_error"].to_string();
    assert!(
        error.contains(&format!("{PROJECTOR} is incomplete")),
        "{error}"
    );
    let (status, refused) = triage(&host, json!({"text": "What?", "images": [image]})).await;
    assert_eq!(status, 400);
    assert!(refused.to_string().contains("is incomplete"), "{refused}");
    let (status, answer) = triage(&host, json!({"text": "What time is it?"})).await;
    assert_eq!(status, 200, "{answer}");
}
