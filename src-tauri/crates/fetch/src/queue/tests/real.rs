//! The queue over the real transfer, on loopback.

use super::*;
use crate::{QueueOptions, Web, WebOptions};
use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use data_encoding::HEXLOWER;
use futures_util::stream;
use sha2::{Digest as _, Sha256};
use std::sync::atomic::AtomicU64;
use tokio::sync::watch;

const SIZE: usize = 24 << 20;
const BLOCK: usize = 64 << 10;

/// A server of one file, with a limit on the bytes it sends.
struct Server {
    url: String,
    content: Arc<Vec<u8>>,
    allowed: watch::Sender<u64>,
    served: Arc<AtomicU64>,
}

#[derive(Clone)]
struct ServedFile {
    content: Arc<Vec<u8>>,
    allowed: watch::Receiver<u64>,
    served: Arc<AtomicU64>,
}

impl Server {
    async fn start(allowed: u64) -> Self {
        let mut content = vec![0_u8; SIZE];
        for (number, word) in (0_u64..).zip(content.chunks_exact_mut(8)) {
            word.copy_from_slice(&number.to_le_bytes());
        }
        let content = Arc::new(content);
        let allowed = watch::Sender::new(allowed);
        let served = Arc::new(AtomicU64::new(0));
        let state = ServedFile {
            content: content.clone(),
            allowed: allowed.subscribe(),
            served: served.clone(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/model.gguf", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/model.gguf", get(part))
            .with_state(state);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            url,
            content,
            allowed,
            served,
        }
    }

    fn sha256(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.content.as_slice()))
    }

    fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

async fn part(State(served): State<ServedFile>, headers: HeaderMap) -> Response {
    let requested_range = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let range = requested_range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let (first, last) = range.map_or((0, SIZE - 1), |(first, last)| {
        let last = last
            .parse()
            .map_or(SIZE - 1, |last: usize| last.min(SIZE - 1));
        (first.parse().unwrap(), last)
    });
    let body = stream::unfold((served, first), move |(mut served, at)| async move {
        if at > last {
            return None;
        }
        let end = (at + BLOCK).min(last + 1);
        let all = served
            .served
            .fetch_add((end - at) as u64, Ordering::Relaxed);
        served
            .allowed
            .wait_for(|allowed| all < *allowed)
            .await
            .ok()?;
        let block = bytes::Bytes::copy_from_slice(&served.content[at..end]);
        Some((Ok::<_, std::io::Error>(block), (served, end)))
    });
    let status = match requested_range {
        Some(_) => StatusCode::PARTIAL_CONTENT,
        None => StatusCode::OK,
    };
    let headers = [
        (
            header::CONTENT_RANGE,
            format!("bytes {first}-{last}/{SIZE}"),
        ),
        (header::CONTENT_LENGTH, (last + 1 - first).to_string()),
        (header::ETAG, "\"one\"".to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
    ];
    (status, headers, Body::from_stream(body)).into_response()
}

fn start(folder: &TempDir, rate_limit: u64) -> Queue {
    Queue::start(QueueOptions {
        state_file: folder.path().join("downloads.json"),
        web: Web::new(WebOptions {
            proxies: false,
            ..WebOptions::default()
        })
        .unwrap(),
        tokens: Arc::new(|_| None),
        at_once: 1,
        rate_limit,
        on_complete: Arc::new(|job, fetched| {
            let found = std::fs::metadata(&job.files[0].dest).map(|file| file.len());
            let agrees = found.is_ok_and(|size| size == fetched[0].size);
            Box::pin(async move {
                let missing = || Error::new(Code::Internal, "the file has no name yet");
                agrees.then_some(()).ok_or_else(missing)
            })
        }),
    })
}

fn job(folder: &TempDir, server: &Server, sha256: Option<String>) -> Job {
    Job {
        reference: server.url.clone(),
        files: vec![FileSpec {
            url: server.url.parse().unwrap(),
            dest: folder.path().join("model.gguf"),
            size: None,
            sha256,
        }],
        priority: Priority::Normal,
        warnings: Vec::new(),
    }
}

async fn until(queue: &Queue, is: impl Fn(&DownloadStatus) -> bool) -> DownloadStatus {
    let mut seen = queue.watch();
    let waited = seen.wait_for(|list| list.first().is_some_and(&is));
    let waited = tokio::time::timeout(Duration::from_secs(120), waited).await;
    let list = queue.watch().borrow().to_vec();
    assert!(matches!(waited, Ok(Ok(_))), "{list:?}");
    list[0].clone()
}

/// Enough that a run has something to keep.
fn well_under_way(status: &DownloadStatus) -> bool {
    status.received_bytes >= 8 << 20
}

fn is(state: DownloadState) -> impl Fn(&DownloadStatus) -> bool {
    move |status| status.state == state
}

#[tokio::test]
async fn a_real_file_arrives_and_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(u64::MAX).await;
    let queue = start(&folder, 0);
    let (status, new) = queue
        .add(job(&folder, &server, Some(server.sha256())))
        .await
        .unwrap();
    assert!(new);
    assert_eq!(status.file, "model.gguf");
    let status = until(&queue, is(DownloadState::Done)).await;
    assert_eq!(
        (status.received_bytes, status.total_bytes),
        (SIZE as u64, Some(SIZE as u64))
    );
    assert!(std::fs::read(folder.path().join("model.gguf")).unwrap() == *server.content);
    queue.shutdown().await;
}

#[tokio::test]
async fn a_real_pause_and_a_restart_keep_what_has_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(SIZE as u64 / 2).await;
    let queue = start(&folder, 0);
    let (status, _) = queue
        .add(job(&folder, &server, Some(server.sha256())))
        .await
        .unwrap();
    until(&queue, well_under_way).await;
    queue.pause(&status.id).await.unwrap();
    queue.shutdown().await;

    let queue = start(&folder, 0);
    let paused = until(&queue, is(DownloadState::Paused)).await;
    assert!(well_under_way(&paused));
    let before = server.served();
    server.allowed.send_replace(u64::MAX);
    queue.resume(&status.id).await.unwrap();
    until(&queue, is(DownloadState::Done)).await;
    let after = server.served() - before;
    // Earlier connections may send a little more before they notice the disconnect.
    let most = SIZE as u64 - paused.received_bytes + (4 << 20);
    assert!(after <= most, "{after} served, {paused:?}");
    assert!(std::fs::read(folder.path().join("model.gguf")).unwrap() == *server.content);
    queue.shutdown().await;
}

#[tokio::test]
async fn a_real_removal_leaves_nothing_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(SIZE as u64 / 2).await;
    let queue = start(&folder, 0);
    let (status, _) = queue.add(job(&folder, &server, None)).await.unwrap();
    until(&queue, well_under_way).await;
    queue.remove(&status.id).await.unwrap();
    queue.shutdown().await;
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(left, ["downloads.json"]);
}

#[tokio::test]
async fn a_file_with_another_hash_fails_and_gets_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(u64::MAX).await;
    let queue = start(&folder, 0);
    queue
        .add(job(&folder, &server, Some("ab".repeat(32))))
        .await
        .unwrap();
    let status = until(&queue, is(DownloadState::Failed)).await;
    assert!(status.reason.unwrap().contains("sha256"));
    assert!(!folder.path().join("model.gguf").exists());
    queue.shutdown().await;
}

#[tokio::test]
async fn the_rate_limit_holds_and_changes_live() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(u64::MAX).await;
    // It would take months.
    let queue = start(&folder, 1);
    let download = job(&folder, &server, Some(server.sha256()));
    queue.add(download).await.unwrap();
    until(&queue, |status| status.total_bytes.is_some()).await;
    // As long as another one takes that has no limit.
    let free = start(&other, 0);
    let download = job(&other, &server, Some(server.sha256()));
    free.add(download).await.unwrap();
    until(&free, is(DownloadState::Done)).await;
    let limited = until(&queue, |_| true).await;
    assert_eq!(limited.state, DownloadState::Downloading);
    assert!(!well_under_way(&limited), "{limited:?}");

    queue.configure(0, 1);
    until(&queue, is(DownloadState::Done)).await;
    queue.shutdown().await;
    free.shutdown().await;
}
