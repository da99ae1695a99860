//! Transfers that go on where an earlier one ended.

use crate::{
    TestDownload,
    server::{Content, Server},
    slow, spares,
};
use std::fs;
use tierbar_core::Code;
use tierbar_fetch::{Phase, RateLimit, discard};

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_have_arrived_are_not_requested_again() {
    let content = Content::new(24 * MIB, 1);
    let server = slow(&content).await;
    let mut wanted = TestDownload::new(&server);
    let kept = wanted.fetch_until(6 * MIB as u64).await;
    let claimed = wanted.claimed();
    server.forget_log();
    let mut progress = wanted.progress.subscribe();
    let first = async {
        progress
            .wait_for(|progress| progress.received > 0)
            .await
            .unwrap()
            .received
    };
    let (fetched, first) = tokio::join!(wanted.fetch(), first);
    assert_eq!(fetched.unwrap().sha256, content.sha256());
    assert!(wanted.arrived() == content.bytes);
    assert!(first >= kept, "progress began at {first} of {kept}");
    let log = server.log();
    assert!(spares(&log, &claimed), "{claimed:?} {log:?}");
    assert!(
        log.iter()
            .all(|request| request.headers["if-range"] == "\"one\"")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_partial_file_is_verified_without_a_request() {
    let content = Content::new(8 * MIB, 2);
    let server = Server::of(&content).await;
    let wanted = TestDownload::new(&server);
    // The journal of a transfer that was killed after its last byte.
    let text = serde_json::json!({
        "version": 1, "url": wanted.spec.url.as_str(), "sha256": null, "total": 8 * MIB,
        "etag": "\"one\"", "last_modified": null, "ranges": [[0, 8 * MIB]],
    });
    // Behind its end lie the bytes of another program.
    let part = [&content.bytes[..], b"rest"].concat();
    fs::write(wanted.path("model.gguf.part"), part).unwrap();
    fs::write(wanted.path("model.gguf.part.json"), text.to_string()).unwrap();
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert!(wanted.arrived() == content.bytes);
    assert!(server.log().is_empty());
    assert_eq!(wanted.names(), ["model.gguf"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_can_be_cancelled_without_loss() {
    let content = Content::new(48 * MIB, 17);
    let server = Server::of(&content).await;
    let mut wanted = TestDownload::new(&server);
    wanted.spec.sha256 = Some(content.sha256());
    let text = serde_json::json!({
        "version": 1, "url": wanted.spec.url.as_str(), "sha256": content.sha256(), "total": 48 * MIB,
        "etag": null, "last_modified": null, "ranges": [[0, 48 * MIB]],
    });
    fs::write(wanted.path("model.gguf.part"), &content.bytes).unwrap();
    fs::write(wanted.path("model.gguf.part.json"), text.to_string()).unwrap();
    // Before it has its name, and after.
    for name in ["model.gguf.part", "model.gguf"] {
        wanted.cancel.cancel();
        assert_eq!(wanted.fetch().await.unwrap_err().code, Code::Cancelled);
        assert!(wanted.names().contains(&name.to_owned()));
        wanted.cancel = tokio_util::sync::CancellationToken::new();
        assert_eq!(wanted.fetch().await.unwrap().size, 48 * MIB as u64);
    }
    assert!(server.log().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_journal_restarts_the_download() {
    let content = Content::new(3 * MIB, 10);
    let server = Server::of(&content).await;
    let whole = TestDownload::new(&server).spec.url.to_string();
    let journal = |change: &str, value: serde_json::Value| {
        let mut journal = serde_json::json!({
            "version": 1, "url": whole, "sha256": null, "total": 3 * MIB,
            "etag": "\"one\"", "last_modified": null, "ranges": [[0, MIB]],
        });
        journal[change] = value;
        journal.to_string()
    };
    let right = journal("version", 1.into());
    for (text, resumes) in [
        (right.clone(), true),
        (String::new(), false),
        ("{".to_owned(), false),
        ("\u{0}".repeat(4096), false),
        (right[..right.len() / 2].to_owned(), false),
        (journal("version", 2.into()), false),
        (journal("url", "http://elsewhere/model.gguf".into()), false),
        (journal("sha256", "00".into()), false),
        (journal("total", (MIB - 1).into()), false),
        (journal("total", (-1).into()), false),
        (
            journal(
                "ranges",
                serde_json::json!([[0, 2 * MIB], [MIB, 2 * MIB + 1]]),
            ),
            false,
        ),
        (journal("ranges", serde_json::json!([[MIB, MIB]])), false),
        (journal("ranges", serde_json::json!([[7, 3]])), false),
        // More than the part has.
        (
            journal("ranges", serde_json::json!([[0, 2 * MIB + 8]])),
            false,
        ),
        (journal("ranges", serde_json::json!([[0, u64::MAX]])), false),
        (journal("ranges", " ".repeat(2 << 20).into()), false),
    ] {
        let wanted = TestDownload::new(&server);
        let mut part = vec![0xee; 2 * MIB];
        if resumes {
            part[..MIB].copy_from_slice(&content.bytes[..MIB]);
        }
        fs::write(wanted.path("model.gguf.part"), part).unwrap();
        fs::write(wanted.path("model.gguf.part.json"), &text).unwrap();
        server.forget_log();
        let shown = &text[..text.len().min(200)];
        assert_eq!(
            wanted.fetch().await.unwrap().sha256,
            content.sha256(),
            "{shown}"
        );
        let from_zero = server.log().iter().any(|request| request.starts_at() == 0);
        assert_eq!(from_zero, !resumes, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_transfers_never_share_a_file() {
    let content = Content::new(4 * MIB, 11);
    let server = Server::start({
        let content = content.clone();
        move |request| {
            content
                .answer(request)
                .then(1000, crate::server::BodyEnd::Stall)
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    let mut served = server.served();
    let second = async {
        served.wait_for(|served| *served > 0).await.unwrap();
        let error = wanted.fetch().await.unwrap_err();
        // Discarding the refused transfer keeps the bytes, which belong to the other.
        discard(&wanted.spec.dest).unwrap();
        let kept = wanted.names();
        wanted.cancel.cancel();
        assert!(kept.contains(&"model.gguf.part".to_owned()), "{kept:?}");
        error
    };
    let (first, second) = tokio::join!(wanted.fetch(), second);
    assert_eq!(first.unwrap_err().code, Code::Cancelled);
    assert_eq!(second.code, Code::AlreadyRunning);
    assert!(
        second.message.contains("another Tierbar is downloading"),
        "{second}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_file_is_verified_and_never_overwritten() {
    let content = Content::new(MIB, 12);
    let server = Server::of(&content).await;
    let mut wanted = TestDownload::new(&server);
    wanted.spec.sha256 = Some(content.sha256());
    fs::write(&wanted.spec.dest, &content.bytes).unwrap();
    fs::write(wanted.path("model.gguf.part.json"), "left by a crash").unwrap();
    assert_eq!(wanted.fetch().await.unwrap().size, MIB as u64);
    assert_eq!(wanted.names(), ["model.gguf"]);

    fs::write(&wanted.spec.dest, "mine").unwrap();
    let error = wanted.fetch().await.unwrap_err();
    assert_eq!(error.code, Code::Storage, "{error}");
    wanted.spec.sha256 = None;
    assert_eq!(wanted.fetch().await.unwrap_err().code, Code::Storage);

    // A pipe without a writer.
    fs::remove_file(&wanted.spec.dest).unwrap();
    let mut made = std::process::Command::new("mkfifo");
    assert!(made.arg(&wanted.spec.dest).status().unwrap().success());
    wanted.spec.sha256 = Some(content.sha256());
    assert_eq!(wanted.fetch().await.unwrap_err().code, Code::Storage);
    wanted.spec.sha256 = None;
    assert!(server.log().is_empty());

    // One that comes while ours is on its way.
    fs::remove_file(&wanted.spec.dest).unwrap();
    let dest = wanted.spec.dest.clone();
    let server = Server::start(move |request| {
        fs::write(&dest, "mine").unwrap();
        content.answer(request)
    })
    .await;
    wanted.spec.url = server.url("/model.gguf");
    let error = wanted.fetch().await.unwrap_err();
    assert_eq!(error.code, Code::Storage, "{error}");
    assert_eq!(wanted.arrived(), b"mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_transfer_has_no_open_file_and_can_be_discarded() {
    let content = Content::new(16 * MIB, 13);
    let server = slow(&content).await;
    let mut wanted = TestDownload::new(&server);
    for _ in 0..3 {
        // Each needs the lock that the one before held.
        wanted.fetch_until(MIB as u64).await;
    }
    assert_eq!(wanted.names(), ["model.gguf.part", "model.gguf.part.json"]);
    discard(&wanted.spec.dest).unwrap();
    assert!(wanted.names().is_empty());
    discard(&wanted.spec.dest).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_finished_part_is_hashed_while_the_rest_arrives() {
    let content = Content::new(8 * MIB, 14);
    let server = slow(&content).await;
    let mut wanted = TestDownload::new(&server);
    wanted.fetch_until(4 * MIB as u64).await;
    // A byte that rots on the disk between two runs is found, although it is not fetched again.
    let part = wanted.path("model.gguf.part");
    let mut bytes = fs::read(&part).unwrap();
    bytes[5] ^= 1;
    fs::write(&part, bytes).unwrap();
    wanted.rate = RateLimit::new(0);
    wanted.spec.sha256 = None;
    let fetched = wanted.fetch().await.unwrap();
    assert_ne!(fetched.sha256, content.sha256());
    assert!(!matches!(
        wanted.progress.borrow().phase,
        Phase::Waiting { .. }
    ));
}
