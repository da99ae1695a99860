//! A device beside the CPU: the worker's placements on llama.cpp's Vulkan backend, as `tests/rehearsal/gpu` builds it.
//!
//! The worker's own report says where the weights lie, and the CPU alone what the answer is.

use crate::{experts::mixture, memory::anonymous, support, support::Worker, swap::leave};
use serde_json::{Value, json};
use std::path::Path;
use tierbar_core::ModelAccount;

const TOKENS: u32 = 32;
const ON_CPU: &[&str] = &["--gpu-layers", "0"];
/// Of SmolLM2's 30 layers.
const HALF: &[&str] = &["--gpu-layers", "15"];
const MIB: f64 = 1_048_576.0;

/// Arguments of a placement, and the bytes that the device gets.
type Placement = (&'static [&'static str], fn(&ModelAccount) -> u64);

const DENSE: [Placement; 4] = [
    (ON_CPU, |_| 0),
    (&[], |model| every_token(model) + model.expert_bytes),
    (HALF, |model| (model.dense_bytes + model.expert_bytes) / 2),
    (&["--mapped", "--layer-cache-mib", "16"], |model| {
        every_token(model) - model.feed_forward_bytes
    }),
];

const EXPERTS_ON_DEVICE: [Placement; 3] = [DENSE[0], DENSE[1], DENSE[2]];

/// Without `--gpu-prompts`: see [`SHORT`].
const EXPERTS_ON_CPU: [Placement; 3] = [
    DENSE[0],
    (
        &["--mapped", "--experts-on-cpu", "--announce-experts"],
        every_token,
    ),
    (
        &["--mapped", "--experts-on-cpu", "--expert-cache-mib", "120"],
        every_token,
    ),
];

/// What each token reads, with the output; the CPU keeps the table of embeddings besides.
fn every_token(model: &ModelAccount) -> u64 {
    let output = if model.tied_output {
        model.embedding_bytes
    } else {
        0
    };
    model.dense_bytes + output
}

/// Far from a tie, as sums in another order decide between nearly equal tokens.
fn counting() -> String {
    support::numbers(1, 20)
}

/// At most eight tokens, whose experts ggml computes one by one. The driver of Debian 12 (lavapipe of Mesa 22.3.6) crashes when it has
/// multiplied a matrix of experts by more.
const SHORT: &str = "1, 2,";

async fn start(file: &Path, arguments: &[&str]) -> Worker {
    let worker = Worker::start(file, &[&["--context", "1024"], arguments].concat()).await;
    worker.ready();
    worker
}

async fn complete(worker: &Worker, prompt: &str) -> (String, Value) {
    let request =
        json!({"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": true});
    let (status, answer) = worker.post("/v1/completions", &request).await;
    let counted = &answer["usage"]["completion_tokens"];
    assert_eq!((status, counted), (200, &json!(TOKENS)), "{answer}");
    let text = answer["choices"][0]["text"].as_str().unwrap().to_owned();
    (text, answer)
}

async fn assert_places(file: &Path, placements: &[Placement], prompt: &str) {
    let account = tierbar_gguf::read(file).unwrap();
    let mut by_cpu = None;
    for (arguments, on_device) in placements {
        let worker = start(file, arguments).await;
        let (bytes, planned) = (
            worker.ready().memory.weights_device_bytes,
            on_device(&account),
        );
        assert!(
            bytes.abs_diff(planned) <= planned / 50,
            "{arguments:?}: {bytes} instead of {planned}"
        );
        let (text, _) = complete(&worker, prompt).await;
        leave(worker).await;
        assert_eq!(&text, by_cpu.get_or_insert(text.clone()), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_dense_model_answers_from_each_place_as_on_the_cpu() {
    let file = support::model(support::SMOLLM);
    assert_places(&file, &DENSE, &counting()).await;
}

#[tokio::test]
async fn a_mixture_answers_from_each_place_as_on_the_cpu() {
    let mixture = mixture();
    assert_places(&mixture.path, &EXPERTS_ON_DEVICE, SHORT).await;
    assert_places(&mixture.path, &EXPERTS_ON_CPU, &counting()).await;
}

#[tokio::test]
async fn a_conversation_leaves_the_device_and_comes_back() {
    let (file, mixture) = (support::model(support::SMOLLM), mixture());
    let on_cpu = start(&file, ON_CPU).await;
    let (first, answer) = complete(&on_cpu, &counting()).await;
    let held = answer["usage"]["prompt_tokens"].as_u64().unwrap();
    let longer = counting() + &first;
    let (second, _) = complete(&on_cpu, &longer).await;
    leave(on_cpu).await;
    for placement in [&[][..], HALF] {
        let folder = tempfile::tempdir().unwrap();
        let swapped = ["--swapped", folder.path().to_str().unwrap()];
        let arguments = [placement, &swapped, &["--swapped-mib", "1024"]].concat();
        let worker = start(&file, &arguments).await;
        assert_eq!(complete(&worker, &counting()).await.0, first);
        leave(worker).await;
        // Another model has the device meanwhile.
        let other = start(&mixture.path, EXPERTS_ON_CPU[1].0).await;
        assert_eq!(complete(&other, &counting()).await.0, first);
        leave(other).await;
        let worker = start(&file, &arguments).await;
        let (text, answer) = complete(&worker, &longer).await;
        assert!(
            answer["timings"]["cache_n"].as_u64() > Some(held),
            "{placement:?}: {answer}"
        );
        assert_eq!(text, second, "{placement:?}");
        leave(worker).await;
    }
}

#[tokio::test]
async fn twenty_loads_take_no_more_memory_than_the_first() {
    let file = support::model(support::SMOLLM);
    let on_cpu = start(&file, ON_CPU).await;
    let (expected, _) = complete(&on_cpu, SHORT).await;
    leave(on_cpu).await;
    let mut first = None;
    for load in 1..=20 {
        let worker = start(&file, &[]).await;
        assert_eq!(complete(&worker, SHORT).await.0, expected, "{load}");
        let ready = worker.ready();
        let mib = anonymous(ready.pid);
        // The device's memory is the process's own.
        #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^52")]
        let weights = ready.memory.weights_device_bytes as f64 / MIB;
        assert!(weights > 0.0 && mib > weights, "{mib} for {weights} MiB");
        let most = *first.get_or_insert(mib) * 1.1;
        assert!(mib <= most, "load {load}: {mib} MiB, after {first:?}");
        leave(worker).await;
    }
}
