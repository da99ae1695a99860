//! Tokens are sent only to their server, and shown nowhere.

use reqwest::Method;
use serde_json::json;
use std::{fs, path::Path, process::Stdio};
use tierbar_tests::{
    binaries::STARTER,
    hub::{GATED, GEMMA, HubStandIn, Options, Server, TOKEN},
    serving::Data,
    wait::within,
};
use tokio::io::AsyncWriteExt;

/// The files below a folder that hold the text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if path.extension().is_none_or(|kind| kind != "gguf")
            && fs::read(&path).is_ok_and(|bytes| {
                bytes
                    .windows(text.len())
                    .any(|window| window == text.as_bytes())
            })
        {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[tokio::test]
async fn a_gated_models_token_reaches_only_the_hub() {
    let hub = HubStandIn::start(Options::default()).await;
    let data = Data::empty("")
        .with("HF_ENDPOINT", &hub.url())
        .with("RUST_LOG", "trace");
    let (code, _, stderr) = data.run(&["models", "pull", GATED]).await;
    assert_eq!(code, Some(5));
    assert!(
        stderr.contains("license") && stderr.contains("hugging-face"),
        "{stderr}"
    );
    assert!(!data.models().join(GEMMA).exists());

    let mut command = data.tierbar(&["secret", "set", "hugging-face"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("{TOKEN}\n").as_bytes())
        .await
        .unwrap();
    drop(stdin);
    assert!(within("the command", child.wait()).await.unwrap().success());
    let (_, listed, _) = data.run(&["secret", "list"]).await;
    assert!(
        listed.contains("in a file") && !listed.contains(TOKEN),
        "{listed}"
    );

    let host = data.serve().await;
    let (code, stdout, stderr) = data.run(&["models", "pull", GATED]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stdout.contains(TOKEN) && !stderr.contains(TOKEN));
    assert!(data.models().join(GEMMA).exists());
    let bearer = format!("Bearer {TOKEN}");
    let seen = hub.seen();
    let requests = |server| seen.iter().filter(move |seen| seen.server == server);
    assert!(requests(Server::Hub).any(|seen| seen.authorization.as_deref() == Some(&bearer)));
    assert!(requests(Server::Storage).count() > 0);
    assert!(requests(Server::Storage).all(|seen| seen.authorization.is_none()));

    let (_, config) = host.ask(Method::GET, "/tierbar/v1/config", None).await;
    assert!(!config.to_string().contains(TOKEN));
    assert_eq!(holding(data.path(), TOKEN), ["secrets.json"]);
    let arguments = std::process::Command::new("ps")
        .args(["-eo", "args"])
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&arguments.stdout).contains(TOKEN));

    let (code, _, _) = data.run(&["secret", "rm", "hugging-face"]).await;
    assert_eq!(code, Some(0));
    assert_eq!(holding(data.path(), TOKEN), [""; 0]);
    let (_, body) = host
        .ask(
            Method::POST,
            "/tierbar/v1/downloads",
            Some(json!({"reference": format!("{GATED}:Q4_K_M")})),
        )
        .await;
    assert_eq!(body["error"]["code"], "access_denied", "{body}");
}

#[tokio::test]
async fn a_token_in_the_environment_has_precedence() {
    let hub = HubStandIn::start(Options::default()).await;
    let data = Data::empty("")
        .with("HF_ENDPOINT", &hub.url())
        .with("HF_TOKEN", TOKEN);
    let (_, listed, _) = data.run(&["secret", "list"]).await;
    assert!(listed.contains("in the environment"), "{listed}");
    let (code, _, stderr) = data.run(&["models", "pull", GATED]).await;
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test]
async fn a_diagnosis_shows_no_secret_prompt_or_path() {
    const PROMPT: &str = "the prompt that must stay private";
    let tiers = format!("[tiers.fast]\nmodel = \"{STARTER}\"\n[tiers.payroll]\nmodel = \"mine\"\n");
    let data = Data::new(&tiers);
    let mut command = data.tierbar(&["secret", "set", "hugging-face"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("{TOKEN}\n").as_bytes())
        .await
        .unwrap();
    drop(stdin);
    assert!(within("the command", child.wait()).await.unwrap().success());
    let host = data.serve().await;
    let ask = json!({"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 4});
    assert_eq!(host.chat("fast", ask).await.status(), 200);
    let (_, key) = host
        .ask(
            Method::POST,
            "/tierbar/v1/keys",
            Some(json!({"name": "visitor"})),
        )
        .await;
    let key = key["key"].as_str().unwrap().to_owned();

    let admin = fs::read_to_string(data.path().join("token")).unwrap();
    let folder = data.path().to_str().unwrap().to_owned();
    for arguments in [&["diagnose"][..], &["diagnose", "--json"]] {
        let (code, told, stderr) = data.run(arguments).await;
        assert_eq!(code, Some(0), "{stderr}");
        for hidden in [
            TOKEN,
            PROMPT,
            "payroll",
            "mine",
            "visitor",
            "SmolLM2",
            key.as_str(),
            admin.trim(),
            folder.as_str(),
        ] {
            assert!(!told.contains(hidden), "{hidden} in {told}");
        }
        for shown in ["fast", "tier 2", "Q4_1", "llama", "load", "ready"] {
            assert!(told.contains(shown), "{shown} is not in {told}");
        }
    }
}
