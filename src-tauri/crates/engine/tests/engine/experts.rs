//! Mixtures of experts that are paged, beside the same files in memory.
//!
//! The mixtures are made of SmolLM2: whatever experts are chosen, the answer is the dense model's.

use crate::support::{SMOLLM, WORKER, Worker, group::Group, model};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tierbar_core::{
    budget::{Budget, LineKind, MICRO_BATCH, plan_load},
    config::{KvCache, Paging},
};
use tierbar_mixture::{Mixture, Random, Router, write_shared};
use tierbar_skip::skip;

const PROMPT: &str = "Tides rise and fall because";

/// Eight experts in each of 30 layers, 13 MB a layer, of which a token uses two.
pub(crate) struct File {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

pub(crate) fn mixture() -> File {
    // Not in memory, as /tmp often is.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("mixture.gguf");
    let mixture = Mixture {
        experts: 8,
        used: 2,
        router: Router::Flat,
    };
    mixture.write(&model(SMOLLM), &path).unwrap();
    File {
        path,
        _folder: folder,
    }
}

async fn worker(path: &Path, extra: &[&str]) -> Worker {
    Worker::start(path, &[&["--context", "2048"], extra].concat()).await
}

async fn answer(worker: &Worker, prompt: &str, tokens: u32) -> Value {
    let request = json!({"prompt": prompt, "max_tokens": tokens, "temperature": 0, "logprobs": 5, "ignore_eos": true});
    let (status, answer) = worker.post("/v1/completions", &request).await;
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0].clone()
}

/// Which experts are in memory: for each layer, a digit for each that is, and their number.
async fn picture(worker: &Worker) -> (Vec<String>, usize) {
    let found = worker.get("/experts").await;
    let text = |layer: &Value| layer.as_str().unwrap().to_owned();
    let layers: Vec<_> = found["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    let digits = layers.concat();
    assert!(
        digits
            .bytes()
            .all(|letter| letter == b'.' || letter.is_ascii_digit()),
        "{found}"
    );
    let held = digits.bytes().filter(u8::is_ascii_digit).count();
    let (bytes, all) = (
        found["held_bytes"].as_u64().unwrap(),
        found["all_bytes"].as_u64().unwrap(),
    );
    // They are of about one size.
    let part = bytes as f64 / all as f64 * digits.len() as f64;
    assert!((part - held as f64).abs() <= 1.0, "{found}");
    (layers, held)
}

async fn cost(worker: &Worker) -> Value {
    worker.get("/props").await["experts"].clone()
}

#[tokio::test]
async fn paged_experts_give_the_same_bits_as_resident_ones() {
    let file = mixture();
    let counting = crate::support::numbers(0, 150);
    let dense = worker(&model(SMOLLM), &["--mapped"]).await;
    let counted = answer(&dense, &counting, 24).await;
    drop(dense);
    let resident = worker(&file.path, &["--mapped"]).await;
    let expected = answer(&resident, PROMPT, 80).await;
    let expected_count = answer(&resident, &counting, 24).await;
    assert_eq!(cost(&resident).await, Value::Null);
    assert_eq!(resident.get("/experts").await, Value::Null);
    drop(resident);
    assert_eq!(expected_count["text"], counted["text"]);
    // A third of its experts, a little more than one token uses of all layers.
    let paged = worker(&file.path, &["--mapped", "--expert-cache-mib", "120"]).await;
    assert_eq!(picture(&paged).await, (vec!["........".to_owned(); 30], 0));
    assert_eq!(answer(&paged, PROMPT, 80).await, expected);
    assert_eq!(answer(&paged, &counting, 24).await, expected_count);
    let cost = cost(&paged).await;
    let number = |name: &str| cost[name].as_u64().unwrap();
    assert!(
        number("evicted") > 500 && number("read_ahead") > 0,
        "{cost}"
    );
    assert!(number("held_bytes") <= 120 << 20, "{cost}");
    let (layers, held) = picture(&paged).await;
    // What the last token used of each layer is there, and was used lately. A third of all fits.
    let is_warm = |layer: &String| layer.bytes().any(|letter| (b'1'..=b'9').contains(&letter));
    assert!(
        layers.len() == 30 && layers.iter().all(is_warm),
        "{layers:?}"
    );
    assert!((60..=90).contains(&held), "{layers:?}");
}

/// In a control group with six tenths of the file: whatever the plan forgets, the kernel counts.
#[tokio::test]
async fn a_cache_answers_in_less_memory_than_the_file_has() {
    let file = mixture();
    let bytes = std::fs::metadata(&file.path).unwrap().len() / 10 * 6;
    let group = match Group::new(bytes) {
        Ok(group) => group,
        Err(reason) => return skip(&reason),
    };
    let resident = worker(&file.path, &["--mapped"]).await;
    let expected = answer(&resident, PROMPT, 40).await;
    drop(resident);
    for keeping in [&["--expert-cache-mib", "120"][..], &["--announce-experts"]] {
        let extra = [&["--context", "1024", "--mapped"], keeping].concat();
        let paged = Worker::start_as(group.command(WORKER), &file.path, &extra).await;
        assert_eq!(answer(&paged, PROMPT, 40).await, expected, "{keeping:?}");
        assert_eq!(group.oom_kills(), 0, "{keeping:?}");
    }
}

#[tokio::test]
async fn a_file_that_changes_fails_answers_and_not_the_worker() {
    let file = mixture();
    let paged = worker(&file.path, &["--mapped", "--expert-cache-mib", "120"]).await;
    let expected = answer(&paged, PROMPT, 12).await;
    let opened = std::fs::File::options()
        .append(true)
        .open(&file.path)
        .unwrap();
    let before = opened.metadata().unwrap().modified().unwrap();
    opened.set_modified(std::time::UNIX_EPOCH).unwrap();
    let request = json!({"prompt": "A map of the moon", "max_tokens": 8});
    let (status, refused) = paged.post("/v1/completions", &request).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("has changed while it was in use"),
        "{refused}"
    );
    assert!(
        status >= 500 && refused["error"]["code"] == "storage",
        "{status}: {refused}"
    );
    // Another program's mistake that is put right.
    opened.set_modified(before).unwrap();
    assert_eq!(answer(&paged, PROMPT, 12).await, expected);
}

#[tokio::test]
async fn announced_experts_give_the_same_bits_as_resident_ones() {
    let file = mixture();
    let mut resident = worker(&file.path, &["--mapped"]).await;
    let expected = answer(&resident, PROMPT, 80).await;
    // What a process has mapped stays in memory.
    resident.child.kill().await.unwrap();
    let announcing = ["--mapped", "--announce-experts", "--experts-on-cpu"];
    // Without a GPU, the cores compute prompts, too.
    let mut on_gpu = worker(&file.path, &[&announcing[..], &["--gpu-prompts"]].concat()).await;
    assert_eq!(answer(&on_gpu, PROMPT, 80).await, expected);
    on_gpu.child.kill().await.unwrap();
    let is_forgotten = forget(&file.path);
    let announced = worker(&file.path, &announcing).await;
    assert_eq!(answer(&announced, PROMPT, 80).await, expected);
    let cost = cost(&announced).await;
    let number = |name: &str| cost[name].as_u64().unwrap();
    // Each of 30 layers chooses two of them for each token.
    assert!(number("hits") + number("misses") >= 80 * 30 * 2, "{cost}");
    assert_eq!(number("held_bytes"), 0, "{cost}");
    // The system keeps what was read, unless it runs short.
    let (layers, held) = picture(&announced).await;
    assert!(layers.len() == 30 && held >= 60, "{layers:?}");
    assert!(
        layers
            .concat()
            .bytes()
            .all(|letter| b".5".contains(&letter))
    );
    if is_forgotten {
        assert!(number("misses") > 0 && number("read_bytes") > 0, "{cost}");
    }
}

#[tokio::test]
async fn streamed_layers_give_the_same_bits_as_resident_ones() {
    let file = model(SMOLLM);
    let resident = worker(&file, &["--mapped"]).await;
    let expected = answer(&resident, PROMPT, 60).await;
    drop(resident);
    // Of 50 MB of feed-forward matrices in 30 layers.
    let streamed = worker(&file, &["--mapped", "--layer-cache-mib", "16"]).await;
    assert_eq!(answer(&streamed, PROMPT, 60).await, expected);
    let cost = cost(&streamed).await;
    let number = |name: &str| cost[name].as_u64().unwrap();
    assert!(number("read_ahead") > 60 && number("hits") > 0, "{cost}");
    assert!(number("held_bytes") <= 16 << 20, "{cost}");
    let (layers, held) = picture(&streamed).await;
    assert!(layers.len() == 30 && held > 0, "{layers:?}");
    assert!(
        layers
            .concat()
            .bytes()
            .all(|letter| b".5".contains(&letter))
    );
    // Each token reads what does not stay: a fifth more than the least, and less than everything.
    let read = number("read_bytes") / 60;
    assert!((30 << 20..50 << 20).contains(&read), "{cost}");
}

/// Shared experts, a fused gate, recurrent layers, sliding windows, biases, and several quants: whatever a model has beside its
/// experts, only these come and go.
#[tokio::test]
async fn every_kind_of_mixture_is_paged_to_the_same_bits() {
    for kind in Random::ALL {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join("mixture.gguf");
        kind.write(&model(SMOLLM), &path).unwrap();
        assert_paged_equals_resident(&path, kind.architecture()).await;
    }
}

#[tokio::test]
async fn a_mixture_in_several_files_is_paged_to_the_same_bits() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let kind = Random::Qwen3Moe;
    let path = kind.write_split(&model(SMOLLM), folder.path()).unwrap();
    assert_paged_equals_resident(&path, kind.architecture()).await;
}

/// Two at the same time share batches, and what each chooses has to stay for both.
#[tokio::test]
async fn requests_together_are_paged_to_the_same_text() {
    let file = mixture();
    let paged = worker(&file.path, &["--mapped", "--expert-cache-mib", "120"]).await;
    let prompts = [
        crate::support::numbers(0, 40),
        crate::support::numbers(300, 330),
    ];
    let alone = [
        answer(&paged, &prompts[0], 40).await,
        answer(&paged, &prompts[1], 40).await,
    ];
    let (first, second) = tokio::join!(
        answer(&paged, &prompts[0], 40),
        answer(&paged, &prompts[1], 40)
    );
    for (together, alone) in [first, second].iter().zip(&alone) {
        assert_eq!(together["text"], alone["text"]);
    }
}

#[tokio::test]
async fn a_shared_expert_stays_and_the_answer_is_the_dense_ones() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("mixture.gguf");
    write_shared(&model(SMOLLM), &path).unwrap();
    assert_paged_equals_resident(&path, "qwen2moe").await;
    // A prompt whose answer leaves no doubt: sums in another order decide between nearly equal tokens.
    let counting = "1, 2, 3, 4, 5, 6,";
    let dense = worker(&model(SMOLLM), &["--mapped"]).await;
    let expected = answer(&dense, counting, 32).await;
    let paged = worker(&path, &["--mapped", "--expert-cache-mib", "96"]).await;
    assert_eq!(answer(&paged, counting, 32).await["text"], expected["text"]);
}

async fn assert_paged_equals_resident(path: &Path, kind: &str) {
    let resident = worker(path, &["--mapped"]).await;
    let expected = answer(&resident, PROMPT, 40).await;
    drop(resident);
    let mib = if kind == "qwen2moe" { "96" } else { "20" };
    let cached = worker(path, &["--mapped", "--expert-cache-mib", mib]).await;
    assert_eq!(answer(&cached, PROMPT, 40).await, expected, "{kind}");
    let spent = cost(&cached).await;
    assert!(spent["evicted"].as_u64() > Some(100), "{kind}: {spent}");
    drop(cached);
    let ahead = ["--mapped", "--announce-experts", "--experts-on-cpu"];
    let announced = worker(path, &ahead).await;
    assert_eq!(answer(&announced, PROMPT, 40).await, expected, "{kind}");
}

/// A worker that refuses what was planned for it would fail a load that could have been planned otherwise.
#[tokio::test]
async fn the_smallest_planned_cache_is_enough_for_the_worker() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for kind in Random::ALL {
        let path = folder.path().join(kind.architecture());
        kind.write(&model(SMOLLM), &path).unwrap();
        let mib = smallest(&path, Paging::Cache, LineKind::ExpertCache).to_string();
        let flags = ["--mapped", "--expert-cache-mib", &mib];
        worker(&path, &flags).await.ready();
    }
    let mib = smallest(&model(SMOLLM), Paging::Stream, LineKind::LayerCache).to_string();
    let flags = ["--mapped", "--layer-cache-mib", &mib];
    worker(&model(SMOLLM), &flags).await.ready();
}

/// The least that is planned for a model in one way, whatever the machine, in MiB.
fn smallest(path: &Path, paging: Paging, line: LineKind) -> u64 {
    let account = tierbar_gguf::read(path).unwrap();
    let mut plans = (100..2000).filter_map(|mib| {
        let budget = Budget {
            total_bytes: mib << 20,
            max_loaded: 1,
            paging,
            embedder_bytes: 0,
        };
        let plan = plan_load(&account, 2048, KvCache::F16, MICRO_BATCH, &budget).ok()?;
        let bytes = plan.bytes(line);
        (bytes > 0).then_some(bytes >> 20)
    });
    plans.next().unwrap()
}

/// The experts of this mixture are equal: whatever takes the place of a choice, and with the right weight, the text is the dense
/// model's.
#[tokio::test]
async fn approximated_answers_say_how_far_they_went() {
    let file = mixture();
    let resident = worker(&file.path, &["--mapped"]).await;
    let counting = crate::support::numbers(0, 60);
    let expected = answer(&resident, &counting, 60).await["text"].clone();
    drop(resident);
    let ways: [(&[&str], f64); 3] = [
        (
            &["--approximate", "substitute", "--expert-cache-mib", "120"],
            0.05,
        ),
        (
            &["--approximate", "drop", "--expert-cache-mib", "120"],
            0.0005,
        ),
        (&["--experts-used", "1"], 0.5),
    ];
    for (way, least) in ways {
        let paged = worker(&file.path, &[&["--mapped"], way].concat()).await;
        let request =
            json!({"prompt": counting, "max_tokens": 60, "temperature": 0, "ignore_eos": true});
        let (_, answer) = paged.post("/v1/completions", &request).await;
        assert_eq!(answer["choices"][0]["text"], expected, "{way:?}");
        let approximated = &answer["timings"]["experts"]["approximated"];
        let changed = approximated["changed"].as_f64().unwrap_or(0.0);
        assert!((least..0.6).contains(&changed), "{way:?}: {answer}");
    }
}

/// Has the page cache let go of a file, where dd(1) can.
fn forget(path: &Path) -> bool {
    let of = format!("of={}", path.display());
    let options = [
        "if=/dev/null",
        &of,
        "oflag=nocache",
        "conv=notrunc,fdatasync",
        "count=0",
    ];
    let done = std::process::Command::new("dd").args(options).output();
    done.is_ok_and(|done| done.status.success())
}
