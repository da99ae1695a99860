//! `tierbar key`, beside a running host and without one.

use super::{ANSWER, chat, model};
use serde_json::Value;
use tierbar_tests::serving::Data;

#[tokio::test]
async fn an_api_key_is_managed_from_the_command_line() {
    let endpoint = model().await;
    let worker = std::env::current_exe().unwrap();
    let data = Data::empty(&format!(
        "[server]\nrequire_keys = true\n[tiers.fast]\nengine = {{ endpoint = \"http://{endpoint}\" }}\n"
    ))
    // No tier needs a worker.
    .with("TIERBAR_WORKER", worker.to_str().unwrap());
    // Without a running host.
    let (code, stdout, stderr) = data
        .run(&["key", "add", "laptop", "--requests-per-minute", "1"])
        .await;
    assert_eq!(code, Some(0), "{stderr}");
    let key = stdout.trim();
    assert!(
        key.starts_with("tb-") && stdout.lines().count() == 1,
        "{stdout}"
    );
    assert!(stderr.contains("not shown again"), "{stderr}");

    let host = data.serve().await;
    let ask = async || {
        let url = format!("{}/v1/chat/completions", host.url);
        let request = host.http.post(url).bearer_auth(key).json(&chat("Hello"));
        request.send().await.unwrap()
    };
    let answer = ask().await;
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.unwrap().contains(ANSWER));
    assert_eq!(ask().await.status(), 429);

    let (_, listed, _) = data.run(&["key", "list"]).await;
    assert!(
        listed.contains("laptop") && listed.contains("last used"),
        "{listed}"
    );
    assert!(
        listed.contains("1 requests per minute") && !listed.contains(key),
        "{listed}"
    );
    for (arguments, expected) in [
        (
            vec!["key", "add", "laptop"],
            "a key named laptop already exists",
        ),
        (
            vec!["key", "add", "a b"],
            "a key's name has 1 to 64 letters",
        ),
        (vec!["key", "add", "b", "--at-once", "0"], "0 is not in 1.."),
        (
            vec!["key", "revoke", "unknown"],
            "there is no active key named \"unknown\"",
        ),
    ] {
        let (code, _, stderr) = data.run(&arguments).await;
        assert_ne!(code, Some(0), "{arguments:?}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    let (code, _, stderr) = data.run(&["key", "revoke", "laptop"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let refused = ask().await;
    assert_eq!(refused.status(), 401);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["message"], "the key laptop has been revoked");
    let (_, listed, _) = data.run(&["key", "list"]).await;
    assert!(listed.contains("revoked"), "{listed}");
}
