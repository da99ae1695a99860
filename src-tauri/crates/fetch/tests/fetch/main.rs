//! Transfers from servers that fail and lie.

#![allow(clippy::unwrap_used, reason = "a test fails by its panic")]

mod changes;
mod disk;
mod kill;
mod lies;
mod resume;
mod server;
mod whole;

use server::{Content, Request, Server};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use tierbar_core::Error;
use tierbar_fetch::{
    FetchedFile, FileSpec, Progress, RateLimit, Terms, TokenFor, Web, WebOptions, transfer,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// No test takes as long as this; it only ends one that hangs.
const HANG: Duration = Duration::from_secs(120);

/// One file to fetch into a folder of its own.
struct TestDownload {
    folder: TempDir,
    spec: FileSpec,
    terms: Terms,
    options: WebOptions,
    tokens: TokenFor,
    rate: RateLimit,
    progress: watch::Sender<Progress>,
    cancel: CancellationToken,
}

impl TestDownload {
    fn new(server: &Server) -> Self {
        let folder = TempDir::new().unwrap();
        Self {
            spec: FileSpec {
                url: server.url("/model.gguf"),
                dest: folder.path().join("model.gguf"),
                size: None,
                sha256: None,
            },
            folder,
            terms: Terms {
                journal_every: Duration::from_millis(20),
                first_wait: Duration::from_millis(2),
                margin: Some(0),
            },
            options: WebOptions {
                proxies: false,
                ..WebOptions::default()
            },
            tokens: Arc::new(|_| None),
            rate: RateLimit::new(0),
            progress: watch::Sender::new(Progress::default()),
            cancel: CancellationToken::new(),
        }
    }

    async fn fetch(&self) -> Result<FetchedFile, Error> {
        let web = Web::new(self.options.clone()).unwrap();
        let transfer = transfer(
            &self.terms,
            &web,
            &self.spec,
            &self.tokens,
            &self.rate,
            self.progress.clone(),
            self.cancel.clone(),
        );
        tokio::time::timeout(HANG, transfer)
            .await
            .expect("a transfer hangs")
    }

    /// Fetches until `enough` bytes have been written, then stops.
    async fn fetch_until(&mut self, enough: u64) -> u64 {
        let mut progress = self.progress.subscribe();
        let cancel = self.cancel.clone();
        let stop = async {
            let arrive = progress.wait_for(|progress| progress.received >= enough);
            let arrived = tokio::time::timeout(HANG, arrive).await;
            arrived.expect("a transfer does not get on").unwrap();
            cancel.cancel();
        };
        let (fetched, ()) = tokio::join!(self.fetch(), stop);
        assert_eq!(fetched.unwrap_err().code, tierbar_core::Code::Cancelled);
        self.cancel = CancellationToken::new();
        let claimed = self.claimed();
        let bytes = claimed.iter().map(|(start, end)| end - start).sum();
        assert!(bytes >= enough, "{bytes} of {enough} bytes were kept");
        self.progress = watch::Sender::new(Progress::default());
        bytes
    }

    /// What the journal claims.
    fn claimed(&self) -> Vec<(u64, u64)> {
        claimed(&self.path("model.gguf.part.json"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arrived(&self) -> Vec<u8> {
        std::fs::read(&self.spec.dest).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// The ranges of a journal; none if there is none.
fn claimed(journal: &std::path::Path) -> Vec<(u64, u64)> {
    let Ok(text) = std::fs::read(journal) else {
        return Vec::new();
    };
    let journal: serde_json::Value = serde_json::from_slice(&text).unwrap();
    serde_json::from_value(journal["ranges"].clone()).unwrap()
}

/// Slow enough to be stopped on the way.
async fn slow(content: &Content) -> Server {
    let content = content.clone();
    Server::start(move |request| content.answer(request).paced(8 << 20)).await
}

/// Whether no request asks for bytes that were there.
fn spares(log: &[Request], claimed: &[(u64, u64)]) -> bool {
    log.iter()
        .filter_map(Request::range)
        .all(|(start, end)| claimed.iter().all(|&(from, to)| end <= from || to <= start))
}
