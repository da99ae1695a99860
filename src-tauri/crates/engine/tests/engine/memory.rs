//! What loads are planned by, held against what the engine allocates.
//!
//! `TIERBAR_WRITE_MEMORY=1` writes the table to `docs/memory.md`.

use crate::support::{GEMMA, SMOLLM, Worker, model};
use serde_json::json;
use std::fmt::Write;
use tierbar_core::{
    budget::{Budget, LoadPlan, MICRO_BATCH, plan_load},
    config::KvCache,
    fit::LineKind,
};

const CONTEXTS: [u32; 4] = [512, 2048, 8192, 32_768];
const MIB: f64 = 1_048_576.0;
/// Of all that the worker has besides: its program's own data, the vocabulary, buffers of requests and logits.
const BEYOND: f64 = 64.0;

/// What the page has before the table.
const MARK: &str = "<!-- table -->\n";
const HEAD: &str = "\
| model | context | KV cache | weights: planned | allocated | KV: planned | allocated | compute: planned | allocated | beyond |
|---|---|---|---|---|---|---|---|---|---|
";

#[expect(clippy::cast_precision_loss, reason = "bytes far below 2^52")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

fn planned(plan: &LoadPlan, what: &[LineKind]) -> f64 {
    let lines = plan.lines.iter();
    mib(lines
        .filter(|line| what.contains(&line.what))
        .map(|line| line.bytes)
        .sum())
}

/// The process's own memory that no file is behind, in MiB.
pub(crate) fn anonymous(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<f64>().unwrap() / 1024.0
}

#[tokio::test]
#[ignore = "slow"]
async fn plans_match_measured_memory() {
    let mut table = HEAD.to_owned();
    let budget = Budget {
        total_bytes: 64 << 30,
        max_loaded: 1,
        paging: tierbar_core::config::Paging::Mmap,
        embedder_bytes: 0,
    };
    for name in [SMOLLM, GEMMA] {
        let file = model(name);
        let account = tierbar_gguf::read(&file).unwrap();
        let contexts = CONTEXTS
            .iter()
            .filter(|&&context| context <= account.context_train);
        for (&context, cells) in contexts.flat_map(|context| {
            let all = [KvCache::F16, KvCache::Q8_0, KvCache::Q4_0];
            all.map(|cells| (context, cells))
        }) {
            let plan = plan_load(&account, context, cells, MICRO_BATCH, &budget).unwrap();
            let context = context.to_string();
            // A CPU's own layout of weights would be a copy beside those that are planned.
            let arguments = [
                "--context",
                &context,
                "--kv-cache",
                cells.as_str(),
                "--mapped",
            ];
            let worker = Worker::start(&file, &arguments).await;
            let ready = worker.ready();
            let request = json!({"prompt": "Hello", "max_tokens": 4});
            assert_eq!(worker.post("/v1/completions", &request).await.0, 200);
            let memory = ready.memory;
            let weights = mib(memory.weights_mapped_bytes + memory.weights_bytes);
            let (kv, compute) = (mib(memory.kv_bytes), mib(memory.compute_bytes));
            let beyond = anonymous(ready.pid) - mib(memory.weights_bytes) - kv - compute;
            let all_weights = [
                LineKind::DenseWeights,
                LineKind::Embeddings,
                LineKind::PagedWeights,
            ];
            let weights_planned = planned(&plan, &all_weights);
            let kv_planned = planned(&plan, &[LineKind::KvCache]);
            let compute_planned = planned(&plan, &[LineKind::ComputeBuffers]);
            let row = format!(
                "| {} | {context} | {} | {weights_planned:.1} | {weights:.1} | {kv_planned:.1} | {kv:.1} | {compute_planned:.1} | {compute:.1} | {beyond:.1} |",
                name.trim_end_matches(".gguf"),
                cells.as_str()
            );
            writeln!(table, "{row}").unwrap();
            for (planned, real) in [(weights_planned, weights), (kv_planned, kv)] {
                assert!((planned / real - 1.0).abs() <= 0.02, "{row}");
            }
            assert!(compute_planned >= compute, "{row}");
            assert!(beyond <= BEYOND, "{row}");
        }
    }
    if std::env::var_os("TIERBAR_WRITE_MEMORY").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/memory.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (text, _) = page.split_once(MARK).unwrap();
        std::fs::write(path, format!("{text}{MARK}{table}")).unwrap();
    }
}

/// A larger batch takes more of a sliding layer's cells, and larger buffers.
#[tokio::test]
async fn a_custom_batch_stays_within_its_plan() {
    let budget = Budget {
        total_bytes: 64 << 30,
        max_loaded: 1,
        paging: tierbar_core::config::Paging::Mmap,
        embedder_bytes: 0,
    };
    let prompt = "The sea is wide and the harbour lies quiet. ".repeat(60);
    for name in [SMOLLM, GEMMA] {
        let file = model(name);
        let account = tierbar_gguf::read(&file).unwrap();
        let mut caches = Vec::new();
        for batch in [64, 2048] {
            let plan = plan_load(&account, 4096, KvCache::F16, batch, &budget).unwrap();
            let text = batch.to_string();
            let worker = Worker::start(&file, &["--context", "4096", "--batch", &text]).await;
            let memory = worker.ready().memory;
            assert_eq!(memory.kv_bytes, plan.bytes(LineKind::KvCache), "{name}");
            let compute = plan.bytes(LineKind::ComputeBuffers);
            assert!(
                memory.compute_bytes <= compute,
                "{name} {batch}: {memory:?}"
            );
            caches.push(memory.kv_bytes);
            let props = worker.get("/props").await;
            assert_eq!(props["batch"], batch);
            // Longer than the small batch, and read in as many parts as it takes.
            let body = json!({"prompt": prompt, "max_tokens": 4, "ignore_eos": true});
            let (status, answer) = worker.post("/v1/completions", &body).await;
            assert_eq!(
                (status, &answer["usage"]["completion_tokens"]),
                (200, &json!(4))
            );
        }
        assert_eq!(caches[0] < caches[1], account.kv.window > 0, "{caches:?}");
    }
}
