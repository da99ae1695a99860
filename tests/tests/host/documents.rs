//! Documents: read by their own process, found by meaning, and read again when they change.

use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink};
use tierbar_skip::or_skip;
use tierbar_tests::{
    binaries,
    serving::{Data, Serving},
    wait::until,
};

const MINILM: &str = "all-MiniLM-L6-v2.F32";

/// The documents, once `is` holds for them.
async fn when(host: &Serving, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    until(what, async || {
        let (_, documents) = host.ask(Method::GET, "/tierbar/v1/documents", None).await;
        is(&documents).then_some(documents)
    })
    .await
}

async fn search(host: &Serving, query: &str) -> Value {
    let search = json!({"query": query, "limit": 1});
    let (status, found) = host
        .ask(Method::POST, "/v1/documents/search", Some(search))
        .await;
    assert_eq!(status, 200, "{found}");
    found
}

#[tokio::test]
async fn a_folder_is_read_and_found_by_meaning_and_read_again() {
    let minilm = or_skip!(binaries::model_or_gone(binaries::MINILM));
    let config = format!("[tiers.embedder]\nmodel = \"{MINILM}.gguf\"\n");
    let data = Data::new(&config);
    symlink(minilm, data.models().join(binaries::MINILM)).unwrap();
    let host = data.serve().await;

    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    let lights = folder.join("lights.md");
    fs::write(
        &lights,
        "# Lighthouses\n\nThe tower is painted every seven years.\n",
    )
    .unwrap();
    fs::write(
        folder.join("soup.txt"),
        "Boil lentils for twenty minutes and add salt.",
    )
    .unwrap();
    fs::write(folder.join("broken.pdf"), "%PDF-1.4 and nothing else").unwrap();
    let path = folder.to_str().unwrap();
    let (code, added, errors) = data.run(&["documents", "add", path]).await;
    assert_eq!(code, Some(0), "{errors}");
    assert!(added.ends_with("to Documents.\n"), "{added}");
    let read = when(&host, "three documents", |documents| {
        let source = &documents["sources"][0];
        source["indexed"] == 2 && source["failed"] == 1 && documents["indexing"]["state"] == "idle"
    })
    .await;
    assert_eq!(read["sources"][0]["without_vectors"], 0, "{read}");
    assert_eq!(read["indexing"]["embedder"], MINILM);
    // There was no request yet, and the tokens were computed all the same.
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/requests", None).await;
    assert_eq!(listed["requests"], json!([]));
    let (_, ledger) = host.ask(Method::GET, "/tierbar/v1/ledger", None).await;
    assert_eq!(ledger["total"]["requests"], 0, "{ledger}");
    assert_eq!(ledger["entries"][0]["tier"], "embedder");
    assert_ne!(ledger["total"]["prompt_tokens"], 0, "{ledger}");

    // No word of it is in the text.
    let found = search(&host, "How often do people coat beacons?").await;
    assert_eq!(found["embedder"], MINILM);
    assert_eq!(found["passages"][0]["title"], "Lighthouses");
    assert_eq!(found["passages"][0]["headings"], json!(["Lighthouses"]));
    let (_, listed, _) = data.run(&["documents", "list", "--files", "1"]).await;
    assert!(
        listed.contains("broken.pdf  This PDF is damaged"),
        "{listed}"
    );

    fs::write(
        &lights,
        "# Lighthouses\n\nThe tower is painted every second summer.\n",
    )
    .unwrap();
    until("the changed document", async || {
        let found = search(&host, "painted tower").await;
        let text = found["passages"][0]["text"].as_str()?.to_owned();
        text.contains("second summer").then_some(())
    })
    .await;

    let (code, _, errors) = data.run(&["documents", "rm", "1"]).await;
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(search(&host, "tower").await["passages"], json!([]));
    assert!(lights.exists());

    // Its vectors would take longer than `until` waits.
    let long = place.path().join("long.md");
    fs::write(
        &long,
        "# A\n\nThe hive gave honey in each of these years.\n".repeat(60_000),
    )
    .unwrap();
    let (code, _, errors) = data
        .run(&["documents", "add", long.to_str().unwrap()])
        .await;
    assert_eq!(code, Some(0), "{errors}");
    let reading = when(&host, "the long file", |documents| {
        documents["indexing"]["file"].is_string()
    })
    .await;
    let id = reading["sources"][0]["id"].to_string();
    let (code, _, errors) = data.run(&["documents", "rm", &id]).await;
    assert_eq!(code, Some(0), "{errors}");
    when(&host, "the end of reading", |documents| {
        documents["indexing"]["state"] == "idle"
    })
    .await;
}

#[tokio::test]
async fn a_link_in_place_of_a_source_is_reported_and_not_read() {
    let data = Data::new("");
    let host = data.serve().await;
    let place = tempfile::tempdir().unwrap();
    let (report, private) = (place.path().join("report.md"), place.path().join("private"));
    let papers = place.path().join("papers");
    for folder in [&private, &papers] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(&report, "The harvest was good.").unwrap();
    fs::write(papers.join("a.md"), "The mill turns.").unwrap();
    fs::write(private.join("a.md"), "Oauth sesame").unwrap();
    for source in [&report, &papers] {
        let path = source.to_str().unwrap();
        let (code, _, errors) = data.run(&["documents", "add", path]).await;
        assert_eq!(code, Some(0), "{errors}");
    }
    let all = |documents: &Value, holds: fn(&Value) -> bool| {
        let sources = documents["sources"].as_array().unwrap();
        sources.len() == 2 && sources.iter().all(holds)
    };
    when(&host, "two documents", |documents| {
        all(documents, |source| source["indexed"] == 1)
    })
    .await;

    // What an agent's command can do in a folder of its own.
    let token = fs::canonicalize(data.path().join("token")).unwrap();
    fs::remove_file(&report).unwrap();
    symlink(&token, &report).unwrap();
    fs::rename(&papers, place.path().join("before")).unwrap();
    symlink(&private, &papers).unwrap();
    let swapped = when(&host, "the links", |documents| {
        all(documents, |source| source["problem"].is_string())
    })
    .await;
    for source in swapped["sources"].as_array().unwrap() {
        let problem = source["problem"].as_str().unwrap();
        assert!(problem.contains("is a symbolic link"), "{problem}");
    }
    let (_, findings, _) = data.run(&["doctor"]).await;
    assert_eq!(
        findings.matches("is a symbolic link").count(),
        2,
        "{findings}"
    );

    // An editor's way to replace a file is none of this. What it finds, the indexer has found after it looked at the links.
    fs::write(place.path().join("draft"), "The harvest was poor.").unwrap();
    fs::rename(place.path().join("draft"), &report).unwrap();
    let (code, _, errors) = data.run(&["documents", "resume"]).await;
    assert_eq!(code, Some(0), "{errors}");
    until("the replaced document", async || {
        let found = search(&host, "harvest").await;
        let text = found["passages"][0]["text"].as_str()?.to_owned();
        text.contains("poor").then_some(())
    })
    .await;
    let token = fs::read_to_string(token).unwrap();
    for secret in [token.trim(), "sesame"] {
        assert_eq!(
            search(&host, secret).await["passages"],
            json!([]),
            "{secret}"
        );
    }
}
