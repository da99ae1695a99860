use super::*;
use crate::{
    ModelAccount,
    budget::{CONTEXT_STEP, GIB},
    model::KvAccount,
};
use proptest::prelude::*;

pub(crate) mod accounts;

const OLDER_16: u64 = 11_453_250_000;

/// The sum over the lines that are in memory.
fn sum(verdict: &Verdict) -> u64 {
    let held = verdict.lines.iter().filter(|line| !line.what.is_paged());
    held.map(|line| line.bytes).sum()
}

fn line(verdict: &Verdict, what: LineKind) -> u64 {
    let found = verdict.lines.iter().find(|line| line.what == what);
    found.map_or(0, |line| line.bytes)
}

mod named_cases {
    use super::*;

    #[test]
    fn qwen_35b_iq2_m_with_12288_tokens_and_a_q4_0_cache_runs_in_the_memory_of_16_gb() {
        let model = accounts::qwen35_35b(11_391_613_568);
        let verdict = verdict(&model, 12_288, KvCache::Q4_0, &Machine::mac(16 * GIB), &[]);
        assert_eq!(verdict.placement, Placement::Resident);
        assert_eq!(verdict.summary, "Runs fully in memory: 11.5 of 12.0 GiB.");
        assert_eq!(verdict.warning, None);
        assert_eq!(
            line(&verdict, LineKind::KvCache),
            5760 * 12_288 + 65_863_680
        );
        let gpu = verdict.gpu.unwrap();
        assert_eq!((gpu.layers, gpu.layers_all), (41, 41));
        assert!(verdict.largest_context_tokens.unwrap() > 12_288);
    }

    #[test]
    fn with_the_older_working_set_some_of_its_layers_stay_on_the_cpu() {
        let model = accounts::qwen35_35b(11_391_613_568);
        let older = Machine::new(16 * GIB, Some(OLDER_16));
        let verdict = verdict(&model, 12_288, KvCache::Q4_0, &older, &[]);
        assert_eq!(verdict.placement, Placement::Resident);
        let gpu = verdict.gpu.unwrap();
        assert!((30..41).contains(&gpu.layers), "{gpu:?}");
        assert_eq!(gpu.limit_bytes, OLDER_16 - GIB / 2);
        assert!(gpu.bytes <= gpu.limit_bytes);
        let warning = verdict.warning.unwrap();
        assert!(
            warning.contains(&format!("{} of its 41 layers", gpu.layers)),
            "{warning}"
        );
    }

    #[test]
    fn qwen_9b_q4_k_m_with_4096_tokens_runs_on_8_gb_with_a_warning() {
        let model = accounts::qwen35_9b(5_680_522_464);
        let verdict = verdict(&model, 4096, KvCache::F16, &Machine::mac(8 * GIB), &[]);
        assert_eq!(verdict.placement, Placement::Mmap);
        assert_eq!(verdict.total_bytes, 5 * GIB);
        let warning = verdict.warning.unwrap();
        assert!(warning.contains("close other programs"), "{warning}");
        // The same on 16 GB needs no warning.
        let roomy = super::verdict(&model, 4096, KvCache::F16, &Machine::mac(16 * GIB), &[]);
        assert_eq!(
            (roomy.placement, roomy.warning),
            (Placement::Resident, None)
        );
    }

    #[test]
    fn qwen_35b_q4_k_m_reads_experts_from_the_disk_on_16_gb_and_iq2_m_is_told_instead() {
        let model = accounts::qwen35_35b(22_016_023_168);
        let offers = accounts::qwen35_35b_offers();
        let verdict = verdict(
            &model,
            12_288,
            KvCache::Q4_0,
            &Machine::mac(16 * GIB),
            &offers,
        );
        assert_eq!(verdict.placement, Placement::Mmap);
        assert_eq!(verdict.total_bytes, verdict.budget_bytes);
        assert_eq!(
            line(&verdict, LineKind::PagedExperts) + line(&verdict, LineKind::ResidentExperts),
            model.expert_bytes
        );
        assert!(verdict.warning.unwrap().contains("wait on the disk"));
        let instead = verdict.instead.unwrap();
        assert_eq!(instead.quant, "UD-IQ2_M");
        assert_eq!(instead.placement, Placement::Resident);
    }

    #[test]
    fn a_dense_model_that_is_too_large_is_refused_with_the_context_that_would_do() {
        let model = accounts::qwen35_9b(9_527_502_048);
        let verdict = verdict(&model, 262_144, KvCache::F16, &Machine::mac(16 * GIB), &[]);
        assert_eq!(verdict.placement, Placement::Refused);
        assert_eq!((verdict.gpu, verdict.warning), (None, None));
        let largest = verdict.largest_context_tokens.unwrap();
        assert_eq!(
            super::verdict(&model, largest, KvCache::F16, &Machine::mac(16 * GIB), &[]).placement,
            Placement::Mmap
        );
        assert!(
            verdict
                .summary
                .starts_with("Does not run here: with a context of 262144 tokens it needs "),
            "{}",
            verdict.summary
        );
        assert!(
            verdict
                .summary
                .ends_with(&format!("It would run with {largest} tokens."))
        );
    }
}

#[test]
fn a_machine_without_a_shared_gpu_has_no_gpu_share() {
    let verdict = verdict(
        &accounts::smollm2_135m(),
        4096,
        KvCache::F16,
        &Machine::new(16 * GIB, None),
        &[],
    );
    assert_eq!(verdict.gpu, None);
}

#[test]
fn a_working_set_too_small_for_the_output_layer_holds_nothing() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let share = |limit| gpu_share(&model, 4096, KvCache::F16, limit);
    assert_eq!((share(GIB).layers, share(GIB).bytes), (0, 0));
    let more = share(4 * GIB);
    assert!(
        (1..33).contains(&more.layers) && more.bytes > GIB,
        "{more:?}"
    );
    assert_eq!(share(64 * GIB).layers, 33);
}

#[test]
fn known_macs_have_their_published_working_set_and_others_a_careful_one() {
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
    let needs = crate::budget::needs(&model, 4096, KvCache::F16).total_bytes();
    let machine = Machine::new(needs + 4 * GIB - 2_000_000, None);
    let verdict = verdict(&model, 4096, KvCache::F16, &machine, &[]);
    assert!(
        verdict.summary.contains("it needs 6.2"),
        "{}",
        verdict.summary
    );
    let figures: Vec<_> = verdict
        .summary
        .split_whitespace()
        .filter(|word| word.starts_with("6.2"))
        .collect();
    assert_eq!(figures.len(), 2);
    assert_ne!(figures[0], figures[1]);
}

mod recommending {
    use super::*;

    fn recommended(ram: u64) -> Option<String> {
        let model = accounts::qwen35_35b(11_391_613_568);
        let offers = accounts::qwen35_35b_offers();
        let machine = Machine::mac(ram * GIB);
        recommend(&model, 12_288, KvCache::Q4_0, &machine, &offers).map(|instead| instead.quant)
    }

    #[test]
    fn the_largest_quant_that_stays_in_memory_is_recommended() {
        assert_eq!(recommended(16).as_deref(), Some("UD-IQ2_M"));
        assert_eq!(recommended(24).as_deref(), Some("UD-IQ4_XS"));
        assert_eq!(recommended(48).as_deref(), Some("Q8_0"));
    }

    #[test]
    fn where_none_stays_in_memory_the_largest_that_runs_is() {
        assert_eq!(recommended(8).as_deref(), Some("Q8_0"));
    }

    #[test]
    fn where_none_runs_none_is() {
        let model = accounts::qwen35_9b(5_680_522_464);
        let offers = [offer("Q4_K_M", 5_680_522_464)];
        let machine = Machine::mac(4 * GIB);
        assert_eq!(
            recommend(&model, 4096, KvCache::F16, &machine, &offers),
            None
        );
    }

    #[test]
    fn sixteen_bits_are_recommended_only_where_there_is_nothing_else() {
        let model = accounts::smollm2_135m();
        let machine = Machine::mac(64 * GIB);
        let quant = |offers: &[Offer]| {
            recommend(&model, 4096, KvCache::F16, &machine, offers).map(|instead| instead.quant)
        };
        let (fine, coarse) = (offer("F16", 271_000_000), offer("Q8_0", 144_800_000));
        assert_eq!(quant(&[fine.clone(), coarse]).as_deref(), Some("Q8_0"));
        assert_eq!(quant(&[fine]).as_deref(), Some("F16"));
    }

    #[test]
    fn a_model_that_is_fully_in_memory_has_nothing_to_take_instead() {
        let model = accounts::qwen35_35b(11_391_613_568);
        let offers = accounts::qwen35_35b_offers();
        let verdict = verdict(
            &model,
            4096,
            KvCache::Q4_0,
            &Machine::mac(64 * GIB),
            &offers,
        );
        assert_eq!(verdict.instead, None);
    }

    fn offer(quant: &str, size_bytes: u64) -> Offer {
        accounts::offer(quant, size_bytes)
    }
}

mod speeds {
    use super::*;

    const MEMORY: u64 = 100_000_000_000;

    fn machine(ram: u64, disk: Option<u64>) -> Machine {
        Machine {
            memory_bandwidth: Some(MEMORY),
            disk_bandwidth: disk,
            ..Machine::mac(ram * GIB)
        }
    }

    fn estimate(model: &ModelAccount, machine: &Machine) -> Option<SpeedEstimate> {
        verdict(model, 4096, KvCache::F16, machine, &[]).speed
    }

    #[test]
    fn a_dense_model_reads_its_weights_and_half_a_context_for_each_token() {
        let model = accounts::qwen35_9b(5_680_522_464);
        let speed = estimate(&model, &machine(16, None)).unwrap();
        let cache = model.kv.bytes(2048, 512, KvCache::F16);
        let row = model.embedding_bytes / 248_320;
        assert_eq!(speed.active_bytes, model.dense_bytes + row + cache);
        assert_eq!(speed.paged_bytes, 0);
        #[expect(
            clippy::cast_precision_loss,
            reason = "compared to a tenth of a percent"
        )]
        let fastest = MEMORY as f64 / speed.active_bytes as f64;
        assert!(speed.low < speed.high && speed.high < fastest, "{speed:?}");
        assert!((speed.high / fastest - 0.9).abs() < 1e-3, "{speed:?}");
    }

    #[test]
    fn a_tied_output_is_read_whole_and_embeddings_per_layer_by_the_row() {
        let tied = accounts::smollm2_135m();
        let speed = estimate(&tied, &machine(16, None)).unwrap();
        let cache = tied.kv.bytes(2048, 512, KvCache::F16);
        assert_eq!(
            speed.active_bytes,
            tied.dense_bytes + tied.embedding_bytes + cache
        );
        let per_layer = ModelAccount {
            per_layer_embedding_bytes: 49_152 * 7,
            ..tied
        };
        let with_rows = estimate(&per_layer, &machine(16, None)).unwrap();
        assert_eq!(with_rows.active_bytes, speed.active_bytes + 7);
    }

    #[test]
    fn a_mixture_reads_the_experts_that_a_token_uses() {
        let model = accounts::qwen35_35b(11_391_613_568);
        let speed = estimate(&model, &machine(16, None)).unwrap();
        let rest = model.dense_bytes
            + model.embedding_bytes / 248_320
            + model.kv.bytes(2048, 512, KvCache::F16);
        assert_eq!(
            speed.active_bytes - rest,
            model.expert_bytes / 256 * 8 + model.expert_bytes % 256 * 8 / 256
        );
    }

    #[test]
    fn experts_on_the_disk_make_it_slower_and_need_the_disks_bandwidth() {
        let model = accounts::qwen35_35b(22_016_023_168);
        assert_eq!(estimate(&model, &machine(16, None)), None);
        let slow = estimate(&model, &machine(16, Some(1_000_000_000))).unwrap();
        let fast = estimate(&model, &machine(16, Some(5_000_000_000))).unwrap();
        let resident = estimate(&model, &machine(32, None)).unwrap();
        assert!(slow.paged_bytes > 0 && slow.paged_bytes < slow.active_bytes);
        assert_eq!(resident.paged_bytes, 0);
        assert!(slow.high < fast.high && fast.high < resident.high);
        assert!(slow.low < fast.low && fast.low < resident.low);
    }

    #[test]
    fn there_is_no_estimate_before_the_memory_was_measured() {
        let unmeasured = Machine::mac(16 * GIB);
        assert_eq!(estimate(&accounts::smollm2_135m(), &unmeasured), None);
    }

    #[test]
    fn the_error_is_how_far_the_range_missed() {
        let estimate = SpeedEstimate {
            low: 10.0,
            high: 20.0,
            active_bytes: 1,
            paged_bytes: 0,
            measured: None,
            error: None,
        };
        let error = |measured| estimate.with_measured(measured).error.unwrap();
        assert!((error(8.0) + 0.2).abs() < 1e-9);
        assert!(error(10.0).abs() < 1e-9 && error(15.0).abs() < 1e-9 && error(20.0).abs() < 1e-9);
        assert!((error(25.0) - 0.25).abs() < 1e-9);
        assert_eq!(estimate.with_measured(8.0).measured, Some(8.0));
    }
}

fn any_account() -> impl Strategy<Value = ModelAccount> {
    let bytes = || prop_oneof![Just(0), 1..(24 * GIB)];
    let kv = (
        0..400_000_u64,
        0..200_000_u64,
        0..4096_u32,
        0..(1_u64 << 27),
    );
    let shape = (
        1..80_u32,
        64..8192_u32,
        0..300_000_u32,
        1..300_000_u32,
        any::<bool>(),
    );
    (bytes(), bytes(), bytes(), bytes(), kv, shape).prop_map(
        |(dense, embedding, per_layer, expert, kv, shape)| ModelAccount {
            dense_bytes: dense,
            embedding_bytes: embedding / 8,
            per_layer_embedding_bytes: per_layer / 8,
            expert_bytes: expert,
            layers: shape.0,
            embedding: shape.1,
            vocabulary: shape.2,
            context_train: shape.3,
            tied_output: shape.4,
            kv: KvAccount {
                full_elements_per_token: kv.0,
                sliding_elements_per_cell: kv.1,
                window: kv.2,
                state_bytes: kv.3,
            },
            ..accounts::qwen35_35b(11_391_613_568)
        },
    )
}

fn any_kv() -> impl Strategy<Value = KvCache> {
    prop_oneof![Just(KvCache::F16), Just(KvCache::Q8_0), Just(KvCache::Q4_0)]
}

proptest! {
    #[test]
    fn the_total_is_the_sum_of_the_lines_in_memory_and_what_runs_fits(
        model in any_account(), context in 1..300_000_u32, kv in any_kv(), ram in 1..(72 * GIB),
    ) {
        let machine = Machine::mac(ram);
        let verdict = verdict(&model, context, kv, &machine, &[]);
        prop_assert_eq!(verdict.total_bytes, sum(&verdict));
        let fits = verdict.total_bytes <= verdict.budget_bytes;
        prop_assert_eq!(fits, verdict.placement != Placement::Refused);
        let paged = verdict.lines.iter().any(|line| line.what.is_paged());
        prop_assert_eq!(paged, verdict.placement == Placement::Mmap);
        let weights: u64 = [LineKind::DenseWeights, LineKind::Embeddings, LineKind::PagedWeights,
            LineKind::ResidentExperts, LineKind::PagedExperts].map(|what| line(&verdict, what)).iter().sum();
        prop_assert_eq!(weights, model.dense_bytes + model.embedding_bytes
            + model.per_layer_embedding_bytes + model.expert_bytes);
        if let Some(gpu) = verdict.gpu {
            prop_assert!(gpu.bytes <= gpu.limit_bytes && gpu.layers <= gpu.layers_all);
        }
    }

    #[test]
    fn more_ram_never_worsens_a_placement(
        model in any_account(), context in 1..300_000_u32, kv in any_kv(),
        ram in 1..(72 * GIB), more in 0..(8 * GIB),
    ) {
        let rank = |ram| verdict(&model, context, kv, &Machine::mac(ram), &[]).placement.rank();
        prop_assert!(rank(ram + more) <= rank(ram));
    }

    #[test]
    fn a_larger_context_never_improves_a_placement(
        model in any_account(), context in 1..300_000_u32, kv in any_kv(),
        ram in 1..(72 * GIB), more in 0..100_000_u32,
    ) {
        let rank = |context| verdict(&model, context, kv, &Machine::mac(ram), &[]).placement.rank();
        prop_assert!(rank(context + more) >= rank(context));
    }

    #[test]
    fn the_largest_context_fits_and_the_next_step_does_not(
        model in any_account(), context in 1..300_000_u32, kv in any_kv(), ram in 1..(72 * GIB),
    ) {
        let machine = Machine::mac(ram);
        let rank = |context| verdict(&model, context, kv, &machine, &[]).placement.rank();
        let asked = verdict(&model, context, kv, &machine, &[]);
        let wanted = asked.placement.rank().min(Placement::Mmap.rank());
        match asked.largest_context_tokens {
            None => prop_assert!(rank(CONTEXT_STEP) > wanted),
            Some(largest) => {
                prop_assert!(rank(largest) <= wanted);
                prop_assert!(largest <= model.context_train);
                if largest < model.context_train {
                    prop_assert_eq!(largest % CONTEXT_STEP, 0);
                    prop_assert!(rank(largest + CONTEXT_STEP) > wanted);
                }
            }
        }
    }
}
