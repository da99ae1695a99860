//! Other programs' settings, and pages of other origins, from the command line.

use reqwest::StatusCode;
use serde_json::Value;
use std::fs;
use tierbar_tests::serving::{Data, Serving};

const CONFIG: &str = "# mine\n[server]\nrequire_keys = true # always\n\n[tiers.heavy]\nengine = { endpoint = \"http://127.0.0.1:9\" }\n";

#[tokio::test]
async fn an_apps_file_is_changed_on_consent_and_restored() {
    let data = Data::empty(CONFIG);
    let folder = data.path().join("home/.claude");
    let data = data.with("CLAUDE_CONFIG_DIR", folder.to_str().unwrap());
    let file = folder.join("settings.json");
    let read = || fs::read_to_string(&file).unwrap();
    let write = ["connect", "claude-code", "--write"];
    let (code, _, stderr) = data.run(&write).await;
    assert_eq!(code, Some(4));
    assert!(stderr.contains(".claude does not exist"), "{stderr}");

    fs::create_dir(&folder).unwrap();
    let before = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
    fs::write(&file, before).unwrap();
    let host = data.serve().await;
    let (code, stdout, stderr) = data.run(&write).await;
    assert_eq!(code, Some(5));
    assert!(stdout.contains("+    \"ANTHROPIC_BASE_URL\""), "{stdout}");
    assert!(
        stderr.contains("there is no terminal to ask on"),
        "{stderr}"
    );
    assert_eq!(read(), before);

    let wrong = ["connect", "claude-code", "--tier", "heavvy"];
    let (code, stdout, _) = data.run(&wrong).await;
    assert_eq!(code, Some(0));
    assert!(
        stdout.contains("Warning: there is no tier, chain or model \"heavvy\": ")
            && stdout.contains("use one of auto"),
        "{stdout}"
    );
    let (code, _, stderr) = data
        .run(&[&wrong[..], &["--write", "--yes"]].concat())
        .await;
    assert_eq!(code, Some(4));
    assert!(stderr.contains("\"heavvy\""), "{stderr}");
    assert_eq!(read(), before);

    let yes = [&write[..], &["--yes"]].concat();
    assert_eq!(data.run(&yes).await.0, Some(0));
    let written = read();
    assert!(
        written.contains("// mine") && written.contains(&host.url),
        "{written}"
    );
    let key = written.split("\"tb-").nth(1).unwrap();
    let key = format!("tb-{}", key.split('"').next().unwrap());
    assert_eq!(models(&host, "x-api-key", &key).await, StatusCode::OK);

    // Edited meanwhile: only Tierbar's part goes, and its key is revoked.
    fs::write(&file, written.replace("dark", "light")).unwrap();
    let undo = ["connect", "claude-code", "--undo", "--yes", "--json"];
    let (code, stdout, _) = data.run(&undo).await;
    assert_eq!(code, Some(0), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["left"], serde_json::json!([]));
    assert_eq!(report["backup"], Value::Null);
    assert_eq!(report["revoked"], true);
    let words = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(words(&read()), words(&before.replace("dark", "light")));
    assert_eq!(
        models(&host, "x-api-key", &key).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(data.run(&undo).await.0, Some(4));

    // A setting of ours was changed: it stays, and so does the file as it was. Nothing runs that could revoke the key.
    fs::write(&file, before).unwrap();
    assert_eq!(data.run(&yes).await.0, Some(0));
    fs::write(&file, read().replace(&host.url, "http://elsewhere")).unwrap();
    host.kill().await;
    let (code, stdout, _) = data.run(&undo).await;
    assert_eq!(code, Some(0), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["left"].as_array().unwrap().len(), 1, "{report}");
    let kept = fs::read_to_string(report["backup"].as_str().unwrap()).unwrap();
    assert_eq!(kept, before);
    assert_eq!(report["revoked"], false);
    assert!(report["revoke_error"].is_string());
}

#[tokio::test]
async fn a_key_that_the_file_does_not_take_is_shown() {
    let data = Data::empty(CONFIG);
    let folder = data.path().join("home/.codex");
    fs::create_dir_all(&folder).unwrap();
    let data = data.with("CODEX_HOME", folder.to_str().unwrap());
    let host = data.serve().await;
    let (code, stdout, stderr) = data.run(&["connect", "codex", "--write", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let key = stdout.split("export TIERBAR_API_KEY=").nth(1).unwrap();
    let key = key.lines().next().unwrap();
    assert_eq!(models(&host, "x-api-key", key).await, StatusCode::OK);
    let written = fs::read_to_string(folder.join("config.toml")).unwrap();
    assert!(written.contains("env_key") && !written.contains(key));
    let undo = ["connect", "codex", "--undo", "--yes"];
    assert_eq!(data.run(&undo).await.0, Some(0));
    assert_eq!(
        models(&host, "x-api-key", key).await,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_local_page_is_let_in_by_a_command() {
    let data = Data::empty(&CONFIG.replace("true # always", "false"));
    let config = || fs::read_to_string(data.path().join("config.toml")).unwrap();
    let (before, origin) = (config(), "http://localhost:3000");
    let host = data.serve().await;
    assert_eq!(models(&host, "origin", origin).await, StatusCode::FORBIDDEN);
    let (_, stdout, _) = data.run(&["origins"]).await;
    assert!(
        stdout.starts_with("refused  http://localhost:3000\n"),
        "{stdout}"
    );
    assert_eq!(data.run(&["origins", "allow", origin]).await.0, Some(0));
    assert_eq!(models(&host, "origin", origin).await, StatusCode::OK);
    let line = "allowed_origins = [\"http://localhost:3000\"]\n";
    assert_eq!(config().replace(line, ""), before);
    let (_, stdout, _) = data.run(&["origins", "revoke", origin, "--json"]).await;
    let list: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(list["allowed"], serde_json::json!([]));
    assert_eq!(models(&host, "origin", origin).await, StatusCode::FORBIDDEN);
}

async fn models(host: &Serving, header: &str, value: &str) -> StatusCode {
    let request = host.http.get(format!("{}/v1/models", host.url));
    request.header(header, value).send().await.unwrap().status()
}
