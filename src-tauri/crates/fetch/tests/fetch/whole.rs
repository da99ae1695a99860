//! Files that arrive.

use crate::{
    TestDownload,
    server::{BodyEnd, Content, Framing, Reply, Request, Server},
};
use std::{sync::Arc, time::Duration};
use tierbar_core::Code;
use tierbar_fetch::{Phase, RateLimit};

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_pieces_leaves_no_partial_file_or_journal() {
    let content = Content::new(20 * MIB + 12345, 1);
    let server = Server::start({
        let content = content.clone();
        // Slow enough that one connection does not fetch all of it before the others begin.
        move |request| content.answer(request).paced(40 << 20)
    })
    .await;
    let mut wanted = TestDownload::new(&server);
    wanted.spec.sha256 = Some(content.sha256().to_uppercase());
    wanted.spec.size = Some(content.bytes.len() as u64);
    let fetched = wanted.fetch().await.unwrap();
    assert_eq!(fetched.sha256, content.sha256());
    assert_eq!(fetched.size, content.bytes.len() as u64);
    assert!(wanted.arrived() == content.bytes);
    assert_eq!(wanted.names(), ["model.gguf"]);
    let at_once = server.most_at_once();
    assert!((3..=8).contains(&at_once), "{at_once} at once");
    let progress = wanted.progress.borrow().clone();
    assert_eq!(progress.received, fetched.size);
    assert_eq!(progress.total, Some(fetched.size));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_reused_and_no_piece_is_requested_twice() {
    let content = Content::new(64 * MIB, 2);
    let server = Server::of(&content).await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    let log = server.log();
    // Pieces taken over from a slow connection are requested again, but no two requests start at the same byte.
    let mut starts: Vec<_> = log.iter().map(Request::starts_at).collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), log.len());
    assert!(
        server.connections() < log.len(),
        "{} connections for {} pieces",
        server.connections(),
        log.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_file_is_a_file() {
    let content = Content::new(0, 1);
    let server = Server::of(&content).await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert_eq!(wanted.arrived(), b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_ranges_gets_one_connection() {
    let content = Content::new(6 * MIB, 3);
    let server = Server::start({
        let content = content.clone();
        move |_| content.whole()
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert!(wanted.arrived() == content.bytes);
    assert_eq!(server.log().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_limit_holds_over_one_connection_too() {
    let content = Content::new(32 * MIB, 11);
    let server = Server::start({
        let content = content.clone();
        move |_| content.whole()
    })
    .await;
    let (mut limited, free) = (TestDownload::new(&server), TestDownload::new(&server));
    // It would take a year.
    limited.rate = RateLimit::new(1);
    let mut progress = limited.progress.subscribe();
    let other = async {
        let receives = progress.wait_for(|progress| progress.phase == Phase::Receiving);
        receives.await.unwrap();
        // As long as another one takes that has no limit.
        free.fetch().await.unwrap();
        let received = limited.progress.borrow().received;
        limited.rate.set(0);
        received
    };
    let (fetched, received) = tokio::join!(limited.fetch(), other);
    assert_eq!(fetched.unwrap().sha256, content.sha256());
    assert!(received <= MIB as u64, "{received}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_restarts_unless_it_gets_no_further() {
    let content = Content::new(3 * MIB, 3);
    let broken_twice = {
        let content = content.clone();
        move |request: &Request| match request.nth {
            0 | 1 => content.whole().then(2 * MIB, BodyEnd::Close),
            _ => content.whole(),
        }
    };
    let server = Server::start(broken_twice).await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert_eq!(server.log().len(), 3);

    for (framing, code) in [
        (Framing::Chunked, Code::Corrupt),
        (Framing::Lie(3 * MIB as u64), Code::Unreachable),
    ] {
        let short = content.clone();
        let server = Server::start(move |_| {
            let mut reply = short.whole().framed(framing);
            reply.body = reply.body.slice(..MIB);
            reply
        })
        .await;
        let mut wanted = TestDownload::new(&server);
        wanted.spec.size = Some(3 * MIB as u64);
        let error = wanted.fetch().await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.hint.is_some());
        assert!(server.log().len() > 2 && server.log().len() < 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_length_needs_a_framed_body() {
    let content = Content::new(MIB, 4);
    for (framing, arrives) in [(Framing::Chunked, true), (Framing::Close, false)] {
        let content = content.clone();
        let sha256 = content.sha256();
        let server = Server::start(move |_| content.whole().framed(framing)).await;
        let mut wanted = TestDownload::new(&server);
        let fetched = wanted.fetch().await;
        match fetched {
            Ok(fetched) => assert!(arrives && fetched.sha256 == sha256),
            Err(error) => {
                assert!(!arrives && error.code == Code::Corrupt, "{error}");
                assert!(error.message.contains("length"), "{error}");
            }
        }
        // Who knows the hash does not need the length.
        wanted.spec.sha256 = Some(sha256.clone());
        assert_eq!(wanted.fetch().await.unwrap().sha256, sha256);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_costs_only_the_bytes_it_cut() {
    let content = Content::new(24 * MIB, 5);
    let server = Server::start({
        let content = content.clone();
        move |request| {
            let reply = content.answer(request);
            let half = reply.body.len() / 2;
            // Every second answer breaks off in its middle.
            if request.nth % 2 == 1 {
                reply.then(half, BodyEnd::Reset)
            } else {
                reply
            }
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    let starts_at_zero = server
        .log()
        .iter()
        .filter(|request| request.starts_at() == 0)
        .count();
    assert_eq!(starts_at_zero, 1);
    assert!(server.log().iter().any(|request| request.nth > 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_or_absent_server_is_retried() {
    let content = Content::new(3 * MIB, 6);
    let failing = {
        let content = content.clone();
        move |request: &Request| match request.nth {
            0 => Reply::status(500),
            1 => Reply::status(502),
            2 => Reply::status(408),
            3 => content.answer(request).then(0, BodyEnd::Reset),
            4..12 => Reply::status(503),
            _ => content.answer(request),
        }
    };
    let server = Server::start(failing).await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());

    let address = server.address;
    drop(server);
    let server = Server::start(|_| Reply::status(500)).await;
    let mut wanted = TestDownload::new(&server);
    wanted.spec.url.set_port(Some(address.port())).unwrap();
    let mut progress = wanted.progress.subscribe();
    let back = async {
        let waits = progress.wait_for(|progress| matches!(progress.phase, Phase::Waiting { .. }));
        let Phase::Waiting { reason, .. } = waits.await.unwrap().phase.clone() else {
            unreachable!()
        };
        assert!(reason.contains(&address.port().to_string()), "{reason}");
        let content = content.clone();
        Server::at(address, move |request| content.answer(request)).await
    };
    let (fetched, _server) = tokio::join!(wanted.fetch(), back);
    assert_eq!(fetched.unwrap().sha256, content.sha256());
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_respected() {
    for (header, least) in [
        ("7200".to_owned(), 890),
        (in_an_hour(), 890),
        ("60".to_owned(), 55),
    ] {
        let server =
            Server::start(move |_| Reply::status(429).with("retry-after", header.clone())).await;
        let wanted = TestDownload::new(&server);
        let mut progress = wanted.progress.subscribe();
        let look = async {
            let waits =
                progress.wait_for(|progress| matches!(progress.phase, Phase::Waiting { .. }));
            let Phase::Waiting { until, reason } = waits.await.unwrap().phase.clone() else {
                unreachable!()
            };
            let wait = until.unwrap() - tokio::time::Instant::now();
            assert!(wait > Duration::from_secs(least), "{wait:?}");
            assert!(wait <= Duration::from_secs(900), "{wait:?}");
            assert!(reason.contains("429"), "{reason}");
            wanted.cancel.cancel();
        };
        let (fetched, ()) = tokio::join!(wanted.fetch(), look);
        assert_eq!(fetched.unwrap_err().code, Code::Cancelled);
        assert_eq!(server.log().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_applies_to_all_connections() {
    let content = Content::new(24 * MIB, 10);
    let server = Server::start(move |request| match request.nth {
        2 => Reply::status(429).with("retry-after", "600"),
        _ => content.answer(request),
    })
    .await;
    let wanted = TestDownload::new(&server);
    let mut progress = wanted.progress.subscribe();
    let look = async {
        let waits = progress.wait_for(|progress| matches!(progress.phase, Phase::Waiting { .. }));
        let Phase::Waiting { until, .. } = waits.await.unwrap().phase.clone() else {
            unreachable!()
        };
        assert!(until.unwrap() - tokio::time::Instant::now() > Duration::from_secs(500));
    };
    tokio::select! {
        fetched = wanted.fetch() => panic!("the fetch ended too early: {fetched:?}"),
        () = look => {}
    }
    assert!(server.log().len() < 8, "{} requests", server.log().len());
}

fn in_an_hour() -> String {
    httpdate::fmt_http_date(std::time::SystemTime::now() + Duration::from_secs(3600))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_allows_two_connections_gets_two() {
    let content = Content::new(24 * MIB, 7);
    let working = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let server = Server::start({
        let content = content.clone();
        let seen = working.clone();
        move |request| {
            let reply = content.answer(request).paced(16 << 20);
            // The third and fourth connection of the beginning are refused, and every one later that were too many.
            match seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                2 | 3 => Reply::status(503),
                _ => reply,
            }
        }
    })
    .await;
    let wanted = TestDownload::new(&server);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    let later = server.log().into_iter().filter(|request| request.nth >= 6);
    // One answer may not have been seen to end when the next begins.
    let most = later.map(|request| request.open).max().unwrap();
    assert!(most <= 3, "{most} at once");
    let refused = working.load(std::sync::atomic::Ordering::SeqCst);
    assert!(refused > 4, "the refused connections held the others up");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_connection_takes_over_a_silent_one_early() {
    let content = Content::new(8 * MIB, 8);
    let server = Server::start({
        let content = content.clone();
        move |request| {
            let reply = content.answer(request);
            if request.nth == 1 {
                reply.then(70_000, BodyEnd::Stall)
            } else {
                reply
            }
        }
    })
    .await;
    let mut wanted = TestDownload::new(&server);
    wanted.options.stall = Duration::from_secs(3600);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_retried_after_the_stall_deadline() {
    let content = Content::new(MIB, 9);
    let server = Server::start({
        let content = content.clone();
        move |request| {
            let reply = content.answer(request);
            if request.nth == 0 {
                reply.then(MIB / 2, BodyEnd::Stall)
            } else {
                reply
            }
        }
    })
    .await;
    let mut wanted = TestDownload::new(&server);
    wanted.options.stall = Duration::from_secs(2);
    assert_eq!(wanted.fetch().await.unwrap().sha256, content.sha256());
    assert_eq!(server.log()[1].starts_at(), MIB as u64 / 2);
}
