//! Files and servers that are not what they were.

use crate::{
    TestDownload,
    server::{Content, Reply, Server},
    slow, spares,
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use tierbar_core::Code;

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn only_a_file_with_the_same_sha256_resumes_from_another_url() {
    let content = Content::new(16 * MIB, 15);
    let server = slow(&content).await;
    let mirror = Server::of(&content.clone().etag("\"of the mirror\"")).await;
    for hash in [Some(content.sha256()), None] {
        let mut wanted = TestDownload::new(&server);
        wanted.spec.sha256 = hash.clone();
        wanted.fetch_until(4 * MIB as u64).await;
        let claimed = wanted.claimed();
        wanted.spec.url = mirror.url("/another-commit/model.gguf");
        mirror.forget_log();
        assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
        assert_eq!(spares(&mirror.log(), &claimed), hash.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_range_keeps_the_partial_file() {
    let content = Content::new(24 * MIB, 16);
    for denied in ["whole", "416", "416 with the size"] {
        let server = Server::start({
            let content = content.clone();
            move |request| match (request.nth % 3, denied) {
                (0 | 1, _) => content.answer(request),
                (_, "whole") => content.whole(),
                (_, "416") => Reply::status(416),
                _ => Reply::status(416).with("content-range", format!("bytes */{}", 24 * MIB)),
            }
        })
        .await;
        let wanted = TestDownload::new(&server);
        assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
        let from_zero = server.log().into_iter().filter(|it| it.starts_at() == 0);
        assert_eq!(from_zero.count(), 1, "{denied}");
        assert!(server.log().len() > 3, "{denied}: it was never denied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_meanwhile_starts_anew() {
    let (old, new) = (
        Content::new(20 * MIB, 3),
        Content::new(18 * MIB, 4).etag("\"two\""),
    );
    for ignores_if_range in [false, true] {
        let changed = Arc::new(AtomicBool::new(false));
        let server = Server::start({
            let (old, new, changed) = (old.clone(), new.clone(), changed.clone());
            move |request| {
                let content = if changed.load(SeqCst) { &new } else { &old };
                let reply = match (ignores_if_range, request.range()) {
                    (true, Some(range)) => content.part(range),
                    _ => content.answer(request),
                };
                reply.paced(16 << 20)
            }
        })
        .await;
        let mut wanted = TestDownload::new(&server);
        wanted.fetch_until(5 * MIB as u64).await;
        changed.store(true, SeqCst);
        server.forget_log();
        let fetched = wanted.fetch().await.unwrap();
        assert_eq!(
            fetched.sha256,
            new.sha256(),
            "ignores If-Range: {ignores_if_range}"
        );
        assert!(wanted.arrived() == new.bytes);
        assert!(
            server.log().len() > 2,
            "one stream, though the server has ranges"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_restarts_the_transfer_up_to_three_times() {
    let (old, new) = (
        Content::new(16 * MIB, 5),
        Content::new(16 * MIB, 6).etag("\"two\""),
    );
    let server = Server::start({
        let (old, new) = (old.clone(), new.clone());
        move |request| {
            if request.nth < 3 {
                old.answer(request)
            } else {
                new.answer(request)
            }
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, new.sha256());

    // By its ETag; or by its date, if that is all there is.
    let dated = |content: &Content, date| {
        let mut content = content.clone();
        (content.etag, content.last_modified) = (None, Some(date));
        content
    };
    let (first, second) = (
        dated(&old, "Sat, 21 Nov 2026 10:00:00 GMT"),
        dated(&new, "Sat, 21 Nov 2026 10:00:01 GMT"),
    );
    for (old, new) in [(old, new), (first, second)] {
        let server = Server::start(move |request| {
            let content = if request.nth % 2 == 0 { &old } else { &new };
            content.part(request.range().unwrap())
        })
        .await;
        let wanted = TestDownload::new(&server);
        let error = wanted.fetch().await.unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
        assert!(error.message.contains("changed on the server"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_strong_validators_are_sent_in_if_range() {
    let date = "Sat, 21 Nov 2026 10:00:00 GMT";
    for (etag, last_modified, sent) in [
        (Some("\"strong\""), Some(date), Some("\"strong\"")),
        (Some("W/\"weak\""), Some(date), Some(date)),
        (Some("W/\"weak\""), None, None),
        (None, Some(date), Some(date)),
        (None, None, None),
    ] {
        let mut content = Content::new(12 * MIB, 7);
        (content.etag, content.last_modified) = (etag, last_modified);
        let server = slow(&content).await;
        let mut wanted = TestDownload::new(&server);
        wanted.fetch_until(3 * MIB as u64).await;
        let claimed = wanted.claimed();
        server.forget_log();
        assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
        let log = server.log();
        assert!(spares(&log, &claimed));
        for request in &log {
            assert_eq!(request.headers.get("if-range").map(String::as_str), sent);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_if_range_is_resumed_from() {
    let content = Content::new(16 * MIB, 18);
    let server = Server::start({
        let content = content.clone();
        move |request| match request.headers.contains_key("if-range") {
            true => content.whole(),
            false => content.answer(request).paced(8 << 20),
        }
    })
    .await;
    let mut wanted = TestDownload::new(&server);
    wanted.fetch_until(5 * MIB as u64).await;
    let claimed = wanted.claimed();
    server.forget_log();
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert!(spares(&server.log(), &claimed));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_range_support_or_a_shorter_file_is_accepted() {
    let content = Content::new(16 * MIB, 8);
    let short = Content::new(2 * MIB, 9);
    let state = Arc::new(AtomicBool::new(false));
    for becomes_short in [false, true] {
        state.store(false, SeqCst);
        let server = Server::start({
            let (content, short, state) = (content.clone(), short.clone(), state.clone());
            move |request| match (state.load(SeqCst), becomes_short) {
                (false, _) => content.answer(request).paced(8 << 20),
                (true, false) => content.whole(),
                // Behind its end: 416.
                (true, true) => match request.range() {
                    Some(range) => short.part(range),
                    None => short.whole(),
                },
            }
        })
        .await;
        let mut wanted = TestDownload::new(&server);
        wanted.fetch_until(5 * MIB as u64).await;
        state.store(true, SeqCst);
        let now = if becomes_short { &short } else { &content };
        assert_eq!(wanted.fetch().await.unwrap().sha256, now.sha256());
        assert!(wanted.arrived() == now.bytes);
    }
}
