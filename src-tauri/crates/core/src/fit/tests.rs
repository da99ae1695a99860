use super::*;
use crate::{
    ModelAccount,
    budget::{CompanionModels, GIB, MICRO_BATCH, MediaProjector, plan_placement},
    run::Paging,
};

pub(crate) mod accounts;
mod contexts;
mod named_cases;
mod properties;
mod recommending;
mod speeds;

const OLDER_16: u64 = 11_453_250_000;

/// A projector of that size, and what encoding takes for each token of the context.
#[derive(Debug)]
struct Projector(u64, u64);

impl MediaProjector for Projector {
    fn load_bytes(&self, context: u32, _: u32) -> u64 {
        self.0 + self.1 * u64::from(context)
    }
}

/// Of a model with nothing beside it.
pub(crate) fn verdict(
    model: &ModelAccount,
    choice: impl Into<ContextChoice>,
    machine: &Machine,
    others: &[Offer],
) -> Verdict {
    verdict_with(model, CompanionModels::default(), choice, machine, others)
}

/// The sum over the lines that are in memory.
fn sum(verdict: &Verdict) -> u64 {
    let held = verdict.lines.iter().filter(|line| !line.what.is_paged());
    held.map(|line| line.bytes).sum()
}

fn line(verdict: &Verdict, what: LineKind) -> u64 {
    let found = verdict.lines.iter().find(|line| line.what == what);
    found.map_or(0, |line| line.bytes)
}

#[test]
fn a_machine_without_a_shared_gpu_has_no_gpu_share() {
    let verdict = verdict(
        &accounts::smollm2_135m(),
        (4096, KvCache::F16),
        &Machine::new(16 * GIB, None),
        &[],
    );
    assert_eq!(verdict.gpu, None);
}

#[test]
fn the_gpu_holds_the_whole_model_or_some_layers() {
    let (context, kv) = (4096, KvCache::F16);
    for model in [
        accounts::qwen35_9b(5_680_522_464),
        accounts::smollm2_135m(),
        ModelAccount {
            per_layer_embedding_bytes: GIB,
            ..accounts::smollm2_135m()
        },
    ] {
        let compute = crate::budget::needs(&model, context, kv, MICRO_BATCH).compute;
        let cache = model.kv.bytes(context, kv);
        let weights = model.dense_bytes + model.embedding_bytes + model.per_layer_embedding_bytes;
        let whole = weights + cache + compute;
        // Embeddings, and an output that is none of them, are no part of the layers.
        let output = if model.tied_output {
            0
        } else {
            model.embedding_bytes
        };
        let layers = model.dense_bytes - output + cache;
        let machine = Machine::new(64 * GIB, None);
        let plan = plan_placement(&model, context, kv, MICRO_BATCH, &machine.budget());
        let share = |limit| {
            let share = gpu_share(&model, &plan, kv, MICRO_BATCH, limit);
            assert_eq!(share.layers_all, model.layers + 1);
            (share.layers, share.bytes, share.fewer_layers())
        };
        let count = model.layers;
        assert_eq!(share(whole), (count + 1, whole, None));
        assert_eq!(share(whole - 1), (count, compute + layers, Some(count)));
        let fewer = layers * u64::from(count - 1) / u64::from(count);
        assert_eq!(
            share(compute + layers - 1),
            (count - 1, compute + fewer, Some(count - 1))
        );
        assert_eq!(share(compute), (0, 0, Some(0)));
    }
}

#[test]
fn a_raised_working_set_still_leaves_memory_to_the_system() {
    let raised = Machine::new(16 * GIB, Some(15 * GIB));
    assert_eq!(raised.gpu_limit, Some(12 * GIB));
    let model = accounts::qwen35_35b(22_016_023_168);
    let gpu = verdict(&model, (4096, KvCache::Q4_0), &raised, &[])
        .gpu
        .unwrap();
    assert!(gpu.bytes <= 12 * GIB && gpu.layers > 0, "{gpu:?}");
}

#[test]
fn the_gpu_gets_a_paged_mixture_without_its_experts() {
    let model = accounts::qwen35_35b(22_016_023_168);
    for paging in [Paging::Cache, Paging::Advise, Paging::Mmap] {
        let machine = Machine::mac(16 * GIB).paging(paging);
        let gpu = verdict(&model, (16_384, KvCache::Q4_0), &machine, &[]).gpu;
        let gpu = gpu.unwrap();
        assert!(
            gpu.without_experts && gpu.fewer_layers().is_none(),
            "{gpu:?}"
        );
        assert!(gpu.bytes < 4 * GIB, "{gpu:?}");
    }
    let large = Machine::mac(64 * GIB);
    let gpu = verdict(&model, (16_384, KvCache::Q4_0), &large, &[])
        .gpu
        .unwrap();
    assert!(!gpu.without_experts && gpu.bytes > 20 * GIB, "{gpu:?}");
}

#[test]
fn a_context_beyond_training_is_reduced_with_a_note() {
    let model = accounts::smollm2_135m();
    let verdict = verdict(
        &model,
        (10_000, KvCache::F16),
        &Machine::new(16 * GIB, None),
        &[],
    );
    assert_eq!(verdict.context_tokens, 8192);
    let shorter = Caution::ShorterContext {
        context_tokens: 8192,
    };
    assert_eq!(verdict.cautions, [shorter]);
    let warning = verdict.warning.unwrap();
    assert!(
        warning.contains("trained for a context of 8192 tokens"),
        "{warning}"
    );
}

#[test]
fn embedding_rows_on_disk_are_listed_without_a_warning() {
    let model = ModelAccount {
        dense_bytes: 11 * GIB,
        per_layer_embedding_bytes: 2 * GIB,
        ..accounts::smollm2_135m()
    };
    let machine = Machine {
        memory_bandwidth: Some(1 << 36),
        disk_bandwidth: Some(1 << 30),
        ..Machine::new(16 * GIB, None)
    };
    let verdict = verdict(&model, (512, KvCache::F16), &machine, &[]);
    assert_eq!(
        (verdict.placement, verdict.warning),
        (Placement::Mmap, None)
    );
    assert!(verdict.summary.contains("read from disk as needed"));
    assert_eq!(verdict.speed.unwrap().paged_bytes, 0);
}

#[test]
fn known_macs_have_their_published_working_set() {
    assert_eq!(mac_working_set(16 * GIB), 12_713_120_000);
    assert_eq!(mac_working_set(18 * GIB), 12 * GIB);
    assert_eq!(mac_working_set(96 * GIB), 72 * GIB);
    assert_eq!(
        Machine::mac(16 * GIB).gpu_limit,
        Some(12_713_120_000 - GIB / 2)
    );
}

#[test]
fn equal_looking_figures_get_more_decimals() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let needs = crate::budget::needs(&model, 4096, KvCache::F16, MICRO_BATCH).total_bytes();
    let machine = Machine::new(needs + 4 * GIB - 2_000_000, None);
    let verdict = verdict(&model, (4096, KvCache::F16), &machine, &[]);
    assert!(
        verdict.summary.contains("it needs 5.9"),
        "{}",
        verdict.summary
    );
    let figures: Vec<_> = verdict
        .summary
        .split_whitespace()
        .filter(|word| word.starts_with("5.9"))
        .collect();
    assert_eq!(figures.len(), 2);
    assert_ne!(figures[0], figures[1]);
}
