//! Models on this machine: listed, deleted, verified, followed.

use crate::FAST;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use tierbar_core::TierState;
use tierbar_tests::{
    binaries::{STARTER, model},
    serving::{Data, Serving},
    wait::until,
};

const ID: &str = "SmolLM2-135M-Instruct.Q4_1";

async fn listed(host: &Serving) -> Vec<Value> {
    let (status, body) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
    assert_eq!(status, 200, "{body}");
    body["models"].as_array().unwrap().clone()
}

fn ids(models: &[Value]) -> Vec<&str> {
    models
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect()
}

/// A copy of the model file whose bytes may be changed. It gets its name when complete, since a host may be watching.
fn copied(to: &Path) -> PathBuf {
    fs::create_dir_all(to).unwrap();
    let (unfinished, path) = (to.join("unfinished"), to.join(STARTER));
    fs::copy(model(STARTER), &unfinished).unwrap();
    fs::rename(unfinished, &path).unwrap();
    path
}

#[tokio::test]
async fn a_listed_model_has_the_verdict_for_its_tiers_context() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let models = listed(&host).await;
    assert_eq!(ids(&models), [ID]);
    let model = &models[0];
    assert_eq!(
        (&model["keeper"], &model["tiers"]),
        (&json!("tierbar"), &json!(["fast"]))
    );
    assert_eq!(model["fit"]["placement"], "resident");
    assert_eq!(model["fit"]["context_tokens"], 2048);
    assert_eq!(model["error"], Value::Null);

    // The measured speed is shown beside the expected one, even after a restart.
    host.chat("fast", json!({"max_tokens": 20, "ignore_eos": true}))
        .await;
    let fit = format!("/tierbar/v1/models/fit?model={ID}");
    let measured = until("the measured speed", async || {
        let (_, verdict) = host.ask(Method::GET, &fit, None).await;
        verdict["speed"]["measured"].as_f64()
    })
    .await;
    let exact = host.status().await.speed.decode_tokens_per_second.unwrap();
    assert!((measured - exact).abs() < 1e-9, "{measured} {exact}");
    until("that it is kept", async || {
        data.path().join("speeds.json").exists().then_some(())
    })
    .await;
    host.kill().await;
    let host = data.serve().await;
    let (_, verdict) = host.ask(Method::GET, &fit, None).await;
    assert_eq!(verdict["speed"]["measured"], measured);
    assert!(verdict["speed"]["error"].is_f64(), "{verdict}");
}

#[tokio::test]
async fn a_deleted_model_is_trashed_unless_in_use() {
    let data = Data::empty(FAST);
    let path = copied(&data.models());
    let host = data.serve().await;
    let delete = format!("/tierbar/v1/models/{ID}");
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let (status, body) = host.ask(Method::DELETE, &delete, None).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (409, &json!("model_in_use")),
        "{body}"
    );
    assert_eq!(body["error"]["hint"], "stop fast, then delete it");
    assert!(path.exists());

    host.ask(Method::POST, "/tierbar/v1/tiers/fast/stop", None)
        .await;
    let (status, body) = host.ask(Method::DELETE, &delete, None).await;
    assert_eq!((status, &body), (200, &json!({"trashed": true})));
    assert!(!path.exists());
    let trash = data
        .path()
        .join("home/.local/share/Trash/files")
        .join(STARTER);
    assert!(cfg!(not(target_os = "linux")) || trash.exists());
    assert!(listed(&host).await.is_empty());
    let (status, body) = host.ask(Method::DELETE, &delete, None).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (404, &json!("model_unknown"))
    );

    copied(&data.models());
    let (code, _, stderr) = data.run(&["models", "rm", ID]).await;
    assert_eq!(code, Some(5));
    assert!(stderr.contains("--yes"), "{stderr}");
    let (code, stdout, stderr) = data.run(&["models", "rm", ID, "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("Trash"), "{stdout}");
}

#[tokio::test]
async fn models_of_other_apps_are_used_and_never_deleted() {
    let data = Data::empty("[tiers.fast]\nmodel = \"SmolLM2-135M-Instruct.Q4_1\"\ncontext = 512\n");
    let path = copied(
        &data
            .path()
            .join("home/.lmstudio/models/someone/SmolLM2-GGUF"),
    );
    let host = data.serve().await;
    let models = listed(&host).await;
    assert_eq!(models[0]["keeper"], "lm_studio", "{models:?}");
    let (_, stdout, _) = data.run(&["models", "import"]).await;
    assert!(stdout.contains("in LM Studio"), "{stdout}");
    let (status, body) = host
        .ask(
            Method::DELETE,
            &format!("/tierbar/v1/models/{ID}?permanently=true"),
            None,
        )
        .await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (409, &json!("not_ours")),
        "{body}"
    );
    assert!(path.exists());
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );

    let off = json!({"library": {"other_apps": false}});
    host.ask(Method::PATCH, "/tierbar/v1/config", Some(off))
        .await;
    assert!(listed(&host).await.is_empty());
}

#[tokio::test]
async fn an_imported_folder_is_used_in_place_and_saved() {
    let data = Data::empty("# mine\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let path = copied(&elsewhere.path().join("more"));
    let host = data.serve().await;
    let (code, stdout, stderr) = data
        .run(&["models", "import", path.to_str().unwrap()])
        .await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(ID), "{stdout}");
    assert_eq!(listed(&host).await[0]["keeper"], "folder");
    let config = fs::read_to_string(data.path().join("config.toml")).unwrap();
    let folder = path.parent().unwrap().canonicalize().unwrap();
    assert!(
        config.starts_with("# mine\n") && config.contains(folder.to_str().unwrap()),
        "{config}"
    );
    // Once is enough.
    data.run(&["models", "import", path.to_str().unwrap()])
        .await;
    assert_eq!(
        fs::read_to_string(data.path().join("config.toml")).unwrap(),
        config
    );

    for (wrong, part) in [
        ("relative", "full path"),
        ("/nonexistent/folder", "cannot be used"),
    ] {
        let (status, body) = host
            .ask(
                Method::POST,
                "/tierbar/v1/models/import",
                Some(json!({"path": wrong})),
            )
            .await;
        assert_eq!(status, 400);
        assert!(
            body["error"]["message"].as_str().unwrap().contains(part),
            "{body}"
        );
    }
    let (status, body) = host
        .ask(Method::DELETE, &format!("/tierbar/v1/models/{ID}"), None)
        .await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("not_ours")));
}

#[tokio::test]
async fn verification_finds_a_flipped_byte() {
    let data = Data::empty("");
    let path = copied(&data.models());
    let (code, stdout, stderr) = data.run(&["models", "verify"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(ID), "{stdout}");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, bytes).unwrap();
    // Like a disk error: no program has written to it.
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(before)
        .unwrap();
    let (code, stdout, stderr) = data.run(&["models", "verify", ID]).await;
    assert_eq!(code, Some(1), "{stdout}");
    assert!(
        stdout.contains("DAMAGED") && stderr.contains(ID),
        "{stdout}{stderr}"
    );
}

#[tokio::test]
async fn the_library_follows_files_and_reloads_a_replaced_model() {
    let data = Data::empty(&format!("[tiers.fast]\nmodel = \"{ID}\"\ncontext = 512\n"));
    let host = data.serve().await;
    assert!(listed(&host).await.is_empty());
    fs::create_dir(data.models().join("sub")).unwrap();
    symlink(model(STARTER), data.models().join("sub").join(STARTER)).unwrap();
    until("the model", async || {
        (ids(&listed(&host).await) == [ID]).then_some(())
    })
    .await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let before = host.tier("fast").await.pid;

    // Higher up in the folder: from now on the name means this one.
    copied(&data.models());
    until("another worker", async || {
        assert_eq!(
            host.chat("fast", json!({"max_tokens": 1})).await.status(),
            200
        );
        (host.tier("fast").await.pid != before).then_some(())
    })
    .await;
    let now = host.tier("fast").await.pid;
    fs::remove_dir_all(data.models().join("sub")).unwrap();
    fs::remove_file(data.models().join(STARTER)).unwrap();
    until("the end of the list", async || {
        listed(&host).await.is_empty().then_some(())
    })
    .await;
    // The loaded model stays.
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    // Its lease ends shortly after its answer.
    let fast = host
        .tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    assert_eq!(fast.pid, now);
}

#[tokio::test]
async fn a_missing_folder_is_reported_and_used_once_it_appears() {
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().join("volume");
    let data = Data::new(&format!(
        "[library]\nfolders = [\"{}\"]\n",
        folder.display()
    ));
    let host = data.serve().await;
    let notice = until("the notice", async || {
        let notices = host.status().await.notices;
        notices.into_iter().find(|notice| notice.contains("volume"))
    })
    .await;
    assert!(notice.contains(folder.to_str().unwrap()), "{notice}");
    assert_eq!(ids(&listed(&host).await), [ID]);
    fs::create_dir(&folder).unwrap();
    until("that nothing is missing", async || {
        host.status().await.notices.is_empty().then_some(())
    })
    .await;
}
