//! Remote headers: the same as the file's, for few bytes and few requests.

use super::{Stand, url, web};
use axum::{
    Router,
    body::{Body, Bytes},
    http::HeaderMap,
    routing::get,
};
use futures_util::{StreamExt, stream};
use std::{
    fs,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tierbar_core::{Code, Error, ModelAccount};
use tierbar_library::remote::{self, RemoteFile};
use tierbar_tests::{
    binaries,
    hub::{Content, Fault, GEMMA, HubFile, HubRepository, Options, PUBLIC, SMOLLM2, Seen, Server},
    wait::within,
};

const MIB: u64 = 1 << 20;

async fn header(stand: &Stand, path: &str) -> Result<RemoteFile<ModelAccount>, Error> {
    let address = url(&format!("{}/{path}", stand.hub.url()));
    within("a header", remote::header(&web(), &stand.tokens, &address)).await
}

fn of(path: &str) -> String {
    format!("{PUBLIC}/resolve/main/{path}")
}

fn from_storage(stand: &Stand) -> Vec<Seen> {
    stand
        .hub
        .seen()
        .into_iter()
        .filter(|seen| seen.server == Server::Storage)
        .collect()
}

#[tokio::test]
async fn a_remote_header_equals_the_files() {
    let stand = Stand::new().await;
    for model in [SMOLLM2, GEMMA] {
        let local = tierbar_gguf::read(&binaries::model(model)).unwrap();
        let remote = header(&stand, &of(model)).await.unwrap();
        assert_eq!(remote.account, local);
        assert_eq!(remote.size, local.file_bytes);
        assert_eq!(remote.sha256.map(|hash| hash.len()), Some(64));
    }
    assert_eq!(stand.hub.seen().len(), 4, "a redirect and a range for each");
}

#[tokio::test]
async fn little_of_a_20_gb_file_is_downloaded() {
    const SIZE: u64 = 20_000_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big-Q4_K_M.gguf");
    fs::copy(binaries::model(GEMMA), &path).unwrap();
    // A hole takes no space on the disk.
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(SIZE)
        .unwrap();
    let big = HubFile {
        path: "big-Q4_K_M.gguf".into(),
        content: Content::Disk(path),
        sha256: "0".repeat(64),
    };
    let stand = Stand::with(
        Options {
            repositories: vec![HubRepository::new("a/b", vec![big])],
            ..Options::default()
        },
        None,
    )
    .await;
    // Broken as often as is tolerated.
    stand.hub.fail(
        Server::Storage,
        [
            Fault::CutAfter(MIB),
            Fault::CutAfter(0),
            Fault::CutAfter(2 * MIB),
        ],
    );
    let read = header(&stand, "a/b/resolve/main/big-Q4_K_M.gguf")
        .await
        .unwrap();
    assert_eq!(read.size, SIZE);
    assert_eq!(read.account.file_bytes, SIZE);
    let seen = stand.hub.seen();
    assert_eq!(seen.len(), 8);
    assert!(stand.hub.sent() <= 16 * MIB, "{}", stand.hub.sent());
}

#[tokio::test]
async fn a_broken_connection_resumes_where_it_broke() {
    let stand = Stand::new().await;
    stand.hub.fail(
        Server::Storage,
        [Fault::CutAfter(300_000), Fault::CutAfter(200_000)],
    );
    let read = header(&stand, &of(SMOLLM2)).await.unwrap();
    assert_eq!(
        read.account,
        tierbar_gguf::read(&binaries::model(SMOLLM2)).unwrap()
    );
    let requests = from_storage(&stand);
    let ranges: Vec<_> = requests
        .iter()
        .map(|seen| seen.range.clone().unwrap())
        .collect();
    // Not all bytes sent to a broken connection may have arrived.
    let start = |range: &str| -> u64 {
        range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap()
            .0
            .parse()
            .unwrap()
    };
    assert_eq!(ranges.len(), 3);
    assert_eq!(start(&ranges[0]), 0);
    assert!((1..=300_000).contains(&start(&ranges[1])), "{ranges:?}");
    assert!(
        (start(&ranges[1])..=500_000).contains(&start(&ranges[2])),
        "{ranges:?}"
    );
    assert!(
        ranges.iter().all(|range| range.ends_with("-16777215")),
        "{ranges:?}"
    );
    assert!(
        requests[1]
            .if_range
            .as_deref()
            .is_some_and(|etag| etag.contains("b179c9"))
    );
}

#[tokio::test]
async fn a_connection_that_keeps_breaking_is_given_up() {
    let stand = Stand::new().await;
    stand.hub.fail(Server::Storage, [Fault::CutAfter(1000); 20]);
    let error = header(&stand, &of(SMOLLM2)).await.unwrap_err();
    assert_eq!(error.code, Code::Unreachable, "{error:?}");
    assert_eq!(from_storage(&stand).len(), 4);
}

#[tokio::test]
async fn a_server_without_ranges_is_supported() {
    let stand = Stand::new().await;
    stand.hub.fail(Server::Storage, [Fault::IgnoreRange]);
    let read = header(&stand, &of(SMOLLM2)).await.unwrap();
    assert_eq!(
        read.account,
        tierbar_gguf::read(&binaries::model(SMOLLM2)).unwrap()
    );
    assert!(stand.hub.sent() <= 16 * MIB, "{}", stand.hub.sent());
    // It starts over after the first connection broke.
    stand.hub.fail(
        Server::Storage,
        [Fault::CutAfter(400_000), Fault::IgnoreRange],
    );
    let again = header(&stand, &of(SMOLLM2)).await.unwrap();
    assert_eq!(again, read);
}

#[tokio::test]
async fn a_busy_server_is_not_retried_and_a_failing_one_is() {
    let stand = Stand::new().await;
    let status = |status| Fault::Status {
        status,
        retry_after: Some(3),
    };
    stand.hub.fail(Server::Storage, [status(503)]);
    header(&stand, &of(SMOLLM2)).await.unwrap();
    stand.hub.fail(Server::Storage, [status(429)]);
    let error = header(&stand, &of(SMOLLM2)).await.unwrap_err();
    assert_eq!(error.code, Code::Unreachable);
    assert_eq!(from_storage(&stand).len(), 3);
}

#[tokio::test]
async fn a_web_page_is_reported_as_such() {
    let stand = Stand::new().await;
    stand.hub.fail(Server::Storage, [Fault::WebPage]);
    let error = header(&stand, &of(SMOLLM2)).await.unwrap_err();
    assert_eq!(error.code, Code::ModelInvalid);
    assert!(error.message.contains("is a web page"), "{error}");
    // Also with another content type.
    let error = read_from(|_, _| (HeaderMap::new(), Body::from("\n<!doctype html><html>")))
        .await
        .unwrap_err();
    assert!(error.message.contains("is a web page"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_model_is_refused_at_once() {
    let text = HubFile::new(
        "text-Q4_0.gguf",
        &b"just text, for a while. ".repeat(1 << 16),
    );
    let stand = Stand::with(
        Options {
            repositories: vec![HubRepository::new("a/b", vec![text])],
            ..Options::default()
        },
        None,
    )
    .await;
    let error = header(&stand, "a/b/resolve/main/text-Q4_0.gguf")
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::ModelInvalid);
    assert!(!error.message.contains("X-Amz"), "{error}");
}

#[tokio::test]
async fn an_endless_remote_header_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endless-Q4_0.gguf");
    let mut file = fs::File::create(&path).unwrap();
    // Version 3, one tensor, one key `x`, whose value is a string of 40 MiB.
    file.write_all(b"GGUF").unwrap();
    file.write_all(&3u32.to_le_bytes()).unwrap();
    for number in [1u64, 1, 1] {
        file.write_all(&number.to_le_bytes()).unwrap();
    }
    file.write_all(b"x").unwrap();
    file.write_all(&8u32.to_le_bytes()).unwrap();
    file.write_all(&(40 * MIB).to_le_bytes()).unwrap();
    file.set_len(100 * MIB).unwrap();
    let endless = HubFile {
        path: "endless-Q4_0.gguf".into(),
        content: Content::Disk(path),
        sha256: "1".repeat(64),
    };
    let stand = Stand::with(
        Options {
            repositories: vec![HubRepository::new("a/b", vec![endless])],
            ..Options::default()
        },
        None,
    )
    .await;
    for fault in [None, Some(Fault::IgnoreRange)] {
        let before = stand.hub.sent();
        stand.hub.fail(Server::Storage, fault);
        let error = header(&stand, "a/b/resolve/main/endless-Q4_0.gguf")
            .await
            .unwrap_err();
        assert_eq!(error.code, Code::ModelInvalid);
        assert!(error.message.contains("larger than 16 MiB"), "{error}");
        // Without ranges, some more is already in transit when the connection is closed.
        let most = if fault.is_some() {
            100 * MIB - 1
        } else {
            16 * MIB
        };
        assert!(
            stand.hub.sent() - before <= most,
            "{}",
            stand.hub.sent() - before
        );
    }
}

/// Returns the result with a server that answers like this; it gets the number of earlier requests, and the `Range`.
async fn read_from(
    answer: fn(usize, &str) -> (HeaderMap, Body),
) -> Result<RemoteFile<ModelAccount>, Error> {
    let count = Arc::new(AtomicUsize::new(0));
    let routes = Router::new().fallback(get(move |headers: HeaderMap| {
        let before = count.fetch_add(1, Ordering::Relaxed);
        async move {
            let range = headers
                .get("range")
                .map_or("", |range| range.to_str().unwrap())
                .to_owned();
            let (headers, body) = answer(before, &range);
            let partial = headers.contains_key("x-partial");
            let status = if partial {
                axum::http::StatusCode::PARTIAL_CONTENT
            } else {
                axum::http::StatusCode::OK
            };
            (status, headers, body)
        }
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = url(&format!("http://{}/m.gguf", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });
    let tokens: tierbar_fetch::TokenFor = Arc::new(|_| None);
    let read = within("a header", remote::header(&web(), &tokens, &address)).await;
    server.abort();
    read
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

/// The first bytes of a model, after which the connection breaks.
fn cut() -> Body {
    let start = stream::once(async { Ok(Bytes::from_static(b"GGUF\x03\0\0\0")) });
    let end = stream::once(async {
        tokio::task::yield_now().await;
        Err(std::io::Error::other("cut"))
    });
    Body::from_stream(start.chain(end))
}

#[tokio::test]
async fn a_server_that_lies_about_ranges_is_refused() {
    for lie in [
        "bytes 5-99/100",
        "bytes */100",
        "items 0-9/10",
        "bytes 0-99/*",
    ] {
        let answer: fn(usize, &str) -> _ = match lie {
            "bytes 5-99/100" => |_, _| {
                (
                    headers(&[("x-partial", "1"), ("content-range", "bytes 5-99/100")]),
                    cut(),
                )
            },
            "bytes */100" => |_, _| {
                (
                    headers(&[("x-partial", "1"), ("content-range", "bytes */100")]),
                    cut(),
                )
            },
            "items 0-9/10" => |_, _| {
                (
                    headers(&[("x-partial", "1"), ("content-range", "items 0-9/10")]),
                    cut(),
                )
            },
            _ => |_, _| {
                (
                    headers(&[("x-partial", "1"), ("content-range", "bytes 0-99/*")]),
                    cut(),
                )
            },
        };
        assert_eq!(
            read_from(answer).await.unwrap_err().code,
            Code::Corrupt,
            "{lie}"
        );
    }
    // After the connection broke, the start of the file again instead of the rest.
    let error = read_from(|_, _| {
        let pairs = [("x-partial", "1"), ("content-range", "bytes 0-99/100")];
        (headers(&pairs), cut())
    })
    .await
    .unwrap_err();
    assert!(error.message.contains("requested offset"), "{error}");
    // Compressed, although that was excluded.
    let error = read_from(|_, _| (headers(&[("content-encoding", "gzip")]), Body::from("x")))
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
    // Of no known size.
    let error = read_from(|_, _| (HeaderMap::new(), cut()))
        .await
        .unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
}

#[tokio::test]
async fn a_file_that_changes_while_read_is_refused() {
    let error = read_from(|before, range| {
        let etag = if before == 0 { "\"one\"" } else { "\"two\"" };
        let start = range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap()
            .0;
        let content = format!("bytes {start}-99999/100000");
        (
            headers(&[
                ("x-partial", "1"),
                ("content-range", &content),
                ("etag", etag),
            ]),
            cut(),
        )
    })
    .await
    .unwrap_err();
    assert_eq!(error.code, Code::Corrupt);
    assert!(
        error.message.contains("changed while it was read"),
        "{error}"
    );
}
