//! What a host takes for each thing that arrives, as a table.

#![expect(clippy::print_stdout, reason = "the table is what a run is for")]

use super::{EMBEDDINGS, KEPT_MIB, MIB, PEAK_MIB, RERANK, RESPONSES, hostile::Hostile};
use crate::memory::{NOISE_MIB, ONE_MIB, begin, rise_since, status_mib};
use serde_json::json;
use std::{sync::atomic::Ordering, time::Duration};
use tierbar_tests::{serving::Serving, wait::within};
use tokio::time::sleep;

/// What the host has allocated. What it has read of its own program is not.
const ALLOCATED: &str = "RssAnon:";

/// One row of the table.
struct Row {
    what: String,
    bytes: usize,
    /// What it may take besides its bytes, in MiB as all that follows.
    allowed: u64,
    peak: u64,
    kept: u64,
}

impl Row {
    fn peaks_too_high(&self) -> bool {
        let carried = self.bytes.div_ceil(MIB) as u64;
        self.peak > carried + self.allowed
    }

    fn is_over(&self) -> bool {
        self.peaks_too_high() || self.kept > KEPT_MIB
    }
}

/// The rows so far, and the host that they are about.
pub(super) struct Table<'a> {
    host: &'a Serving,
    hostile: &'a Hostile,
    /// What was allocated before the first row.
    base: u64,
    /// How many chains have got a request. A server that fails is passed over, so each is another one.
    chains: usize,
    rows: Vec<Row>,
}

impl<'a> Table<'a> {
    pub(super) fn new(host: &'a Serving, hostile: &'a Hostile) -> Self {
        println!("| what arrives | MiB | peak, MiB | kept, MiB |\n|---|---|---|---|");
        Self {
            host,
            hostile,
            base: status_mib(host, ALLOCATED),
            chains: 0,
            rows: Vec::new(),
        }
    }

    /// Measures what the host takes while it gets a body of so many bytes.
    pub(super) async fn measure(
        &mut self,
        what: String,
        bytes: usize,
        act: impl Future<Output = ()>,
    ) {
        self.measure_within(PEAK_MIB, what, bytes, act).await;
    }

    /// As [`Self::measure`], of a client's request, which may take what it is charged.
    pub(super) async fn measure_request(
        &mut self,
        what: String,
        bytes: usize,
        act: impl Future<Output = ()>,
    ) {
        let allowed = ONE_MIB + NOISE_MIB;
        self.measure_within(allowed, what, bytes, act).await;
    }

    async fn measure_within(
        &mut self,
        allowed: u64,
        what: String,
        bytes: usize,
        act: impl Future<Output = ()>,
    ) {
        let requests = self.hostile.requests.load(Ordering::Relaxed);
        let before = begin(self.host);
        within(&what, act).await;
        let peak = rise_since(self.host, before);
        let kept = self.kept().await;
        assert_ne!(
            self.hostile.requests.load(Ordering::Relaxed),
            requests,
            "{what}: no request came"
        );
        println!(
            "| {what} | {:.1} | {peak} | {kept} |",
            bytes as f64 / MIB as f64
        );
        self.rows.push(Row {
            what,
            bytes,
            allowed,
            peak,
            kept,
        });
    }

    /// What stays, once the host has looked for what it can give back.
    async fn kept(&self) -> u64 {
        let mut kept = 0;
        // One row that keeps more is enough to fail.
        let has_kept = self.rows.iter().any(|row| row.kept > KEPT_MIB);
        for _ in 0..if has_kept { 1 } else { 400 } {
            kept = status_mib(self.host, ALLOCATED).saturating_sub(self.base);
            if kept <= KEPT_MIB {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        kept
    }

    /// Measures a request for inference; `stream`: as a stream, or of vectors in base64. How much of an answer is in memory at once depends
    /// on which bytes arrive together (one answer took 121 to 131 MiB in three runs), so a peak that is too high is measured twice more, and
    /// the median counts.
    pub(super) async fn ask(&mut self, what: &str, to: &str, model: &str, stream: bool) {
        self.ask_once(what, to, model, stream).await;
        if !self.rows.last().is_some_and(Row::peaks_too_high) {
            return;
        }
        for _ in 0..2 {
            self.ask_once(what, to, model, stream).await;
        }
        let mut three = self.rows.split_off(self.rows.len() - 3);
        three.sort_by_key(|row| row.peak);
        // What stays has waited for long enough: none of it is left out.
        let kept = three.iter().map(|row| row.kept).max().unwrap_or(0);
        let median = three.swap_remove(1);
        self.rows.push(Row { kept, ..median });
    }

    async fn ask_once(&mut self, what: &str, to: &str, model: &str, stream: bool) {
        let bytes = self.hostile.reply.lock().unwrap().body.len();
        let name = match model {
            "chain" => format!("gpt{}-chain", self.chains),
            tier => tier.to_owned(),
        };
        self.chains += usize::from(model == "chain");
        let body = match to {
            RESPONSES => json!({"model": name, "input": "Hi", "stream": stream}),
            EMBEDDINGS if stream => {
                json!({"model": name, "input": ["Hi"], "encoding_format": "base64"})
            }
            EMBEDDINGS => json!({"model": name, "input": ["Hi"]}),
            RERANK => json!({"model": name, "query": "Hi", "documents": ["Hi"]}),
            "/api/embed" => json!({"model": name, "input": ["Hi"]}),
            _ => json!({"model": name, "max_tokens": 9, "stream": stream,
                "messages": [{"role": "user", "content": "Hi"}]}),
        };
        let how = match (to, stream) {
            (_, false) => "",
            (EMBEDDINGS, true) => ", in base64",
            (_, true) => ", as a stream",
        };
        let what = format!("{what}: {model} for {to}{how}");
        let host = self.host;
        let act = async move {
            let request = host.http.post(format!("{}{to}", host.url));
            let request = request.header("x-tierbar-queue", "never");
            let mut answer = request.json(&body).send().await.unwrap();
            while let Ok(Some(_)) = answer.chunk().await {}
        };
        self.measure(what, bytes, act).await;
    }

    /// Checks all rows.
    pub(super) fn check(self) {
        let over = self.rows.iter().filter(|row| row.is_over()).map(|row| {
            let Row {
                what, peak, kept, ..
            } = row;
            format!("{what}: {peak} MiB, of which {kept} stay")
        });
        let over: Vec<_> = over.collect();
        assert!(over.is_empty(), "{over:#?}");
    }
}
