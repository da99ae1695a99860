//! A hub with false answers.

use super::{Stand, client, repository};
use axum::{Router, body::Bytes, routing::get};
use serde_json::{Value, json};
use tierbar_core::Code;
use tierbar_tests::hub::{HubFile, HubRepository, Options, PUBLIC};

const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn entry(path: &str, size: Value) -> Value {
    json!({"type": "file", "oid": "x", "size": size, "path": path})
}

fn large(path: &str, oid: &str, size: u64) -> Value {
    json!({"type": "file", "oid": "x", "size": 134, "path": path, "lfs": {"oid": oid, "size": size, "pointerSize": 134}})
}

async fn quants(entries: Vec<Value>) -> Vec<(String, u64)> {
    let lying = HubRepository {
        entries,
        ..HubRepository::new("a/b", Vec::new())
    };
    let stand = Stand::with(
        Options {
            repositories: vec![lying],
            ..Options::default()
        },
        None,
    )
    .await;
    let found = stand
        .client()
        .repository(&repository("a/b"), None)
        .await
        .unwrap();
    found
        .quants
        .iter()
        .map(|quant| (quant.files[0].path.clone(), quant.size()))
        .collect()
}

#[tokio::test]
async fn invalid_entries_are_skipped() {
    let long = format!("{}.gguf", "x".repeat(300));
    let entries = vec![
        large("good-Q4_0.gguf", HASH, 5000),
        large(
            "sub/small-Q8_0.gguf",
            &format!("sha256:{}", HASH.to_uppercase()),
            6000,
        ),
        entry("tiny-Q2_K.gguf", json!(70)),
        large("../up-Q4_0.gguf", HASH, 1),
        large("a/../../up-Q4_0.gguf", HASH, 1),
        large("/etc/root-Q4_0.gguf", HASH, 1),
        large("a//b-Q4_0.gguf", HASH, 1),
        large("nul\0-Q4_0.gguf", HASH, 1),
        large("line\nbreak-Q4_0.gguf", HASH, 1),
        large("turned\u{202e}-Q4_0.gguf", HASH, 1),
        large("back\\slash-Q4_0.gguf", HASH, 1),
        large(&long, HASH, 1),
        large(".gguf", HASH, 1),
        large("hash-Q4_0.gguf", "abc", 1),
        large("huge-Q4_0.gguf", HASH, u64::MAX),
        large("good-Q4_0.gguf", HASH, 9999),
        entry("minus-Q4_0.gguf", json!(-5)),
        entry("half-Q4_0.gguf", json!(0.5)),
        entry("zero-Q4_0.gguf", json!(0)),
        entry("text-Q4_0.gguf", json!("12")),
        entry("none-Q4_0.gguf", Value::Null),
        json!({"type": "directory", "path": "folder.gguf", "size": 0}),
        json!({"type": "file", "path": 7, "size": 1}),
        json!({"type": "file"}),
        json!([1, 2]),
        json!("x"),
        Value::Null,
    ];
    let expected = [
        ("tiny-Q2_K.gguf", 70),
        ("good-Q4_0.gguf", 5000),
        ("sub/small-Q8_0.gguf", 6000),
    ];
    assert_eq!(
        quants(entries).await,
        expected.map(|(path, size)| (path.to_owned(), size))
    );
}

#[tokio::test]
async fn an_endless_list_is_refused() {
    let files = (0..30)
        .map(|n| HubFile::new(&format!("m{n}-Q4_0.gguf"), b"x"))
        .collect();
    let stand = Stand::with(
        Options {
            page: 1,
            repositories: vec![HubRepository::new("a/b", files)],
            ..Options::default()
        },
        None,
    )
    .await;
    let error = stand
        .client()
        .repository(&repository("a/b"), None)
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
    assert_eq!(stand.hub.seen().len(), 21);
}

/// Returns the peak memory of this process, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    kib >> 10
}

/// In a process of its own, since other tests use memory too.
#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[test]
fn unused_fields_of_an_answer_take_no_memory() {
    const CHILD: &str = "TIERBAR_LIES_TEST";
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(swamped());
    }
    let name = "hub::lies::unused_fields_of_an_answer_take_no_memory";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // A filter that matches no test also succeeds.
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(summary.contains("1 passed"), "{summary}");
}

/// Model info and endless pages of a tree with long lists of unused data.
async fn swamped() {
    let list = format!("[{}0]", "[0],".repeat(150_000));
    let info = format!(
        r#"{{"sha": "{}", "gated": {list}, "cardData": {{"license": {list}}}}}"#,
        "0".repeat(40),
    );
    let (info, list) = (Bytes::from(info), Bytes::from(list));
    let routes = Router::new()
        .route("/api/models/a/b", get(move || async move { info }))
        .fallback(get(move || async move {
            let next = [("link", r#"<http://hub/?cursor=1>; rel="next""#)];
            (next, list)
        }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    let home = tempfile::tempdir().unwrap();
    let hub = client(&address, home.path(), None).0;
    let before = peak();
    let error = hub.repository(&repository("a/b"), None).await.unwrap_err();
    assert!(error.message.contains("lists more than"), "{error}");
    let grown = peak() - before;
    assert!(grown < 24, "{grown} MiB");
    server.abort();
}

#[tokio::test]
async fn an_invalid_commit_is_refused() {
    for sha in [
        json!("main"),
        json!("../../x"),
        Value::Null,
        json!("0".repeat(41)),
    ] {
        let routes =
            Router::new().fallback(get(move || async move { axum::Json(json!({"sha": sha})) }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, routes).await });
        let home = tempfile::tempdir().unwrap();
        let error = client(&address, home.path(), None)
            .0
            .repository(&repository("a/b"), None)
            .await
            .unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
        assert!(error.message.contains("has no commit"), "{error}");
        server.abort();
    }
}

#[tokio::test]
async fn an_endless_answer_is_refused() {
    let routes = Router::new().fallback(get(|| async {
        let spaces =
            futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(" ".repeat(1 << 16)));
        axum::body::Body::from_stream(spaces)
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    let home = tempfile::tempdir().unwrap();
    let error = client(&address, home.path(), None)
        .0
        .search("x")
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Corrupt, "{error}");
    server.abort();
}

#[tokio::test]
async fn a_changed_repository_has_another_commit() {
    let stand = Stand::new().await;
    let before = stand
        .client()
        .repository(&repository(PUBLIC), None)
        .await
        .unwrap();
    stand.hub.change(PUBLIC, |repository| {
        repository.files.push(HubFile::new("new-Q8_0.gguf", b"new"))
    });
    let after = stand
        .client()
        .repository(&repository(PUBLIC), None)
        .await
        .unwrap();
    assert_ne!(before.commit, after.commit);
    assert_eq!(after.quants.len(), 3);
}
