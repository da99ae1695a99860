use super::*;
use crate::{budget::CONTEXT_STEP, model::KvAccount};
use proptest::prelude::*;

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
    fn the_total_is_the_sum_of_the_lines_in_memory(
        model in any_account(), context in 1..300_000_u32, kv in any_kv(), ram in 1..(72 * GIB),
    ) {
        let machine = Machine::mac(ram);
        let verdict = verdict(&model, (context, kv), &machine, &[]);
        prop_assert_eq!(verdict.total_bytes, sum(&verdict));
        let fits = verdict.total_bytes <= verdict.budget_bytes;
        prop_assert_eq!(fits, verdict.placement != Placement::Refused);
        let paged = verdict.lines.iter().any(|line| line.what.is_paged());
        prop_assert_eq!(paged, verdict.placement.is_paged());
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
        let rank = |ram| verdict(&model, (context, kv), &Machine::mac(ram), &[]).placement.rank();
        prop_assert!(rank(ram + more) <= rank(ram));
    }

    #[test]
    fn a_larger_context_never_improves_a_placement(
        model in any_account(), context in 1..300_000_u32, kv in any_kv(),
        ram in 1..(72 * GIB), more in 0..100_000_u32,
    ) {
        let rank = |context| verdict(&model, (context, kv), &Machine::mac(ram), &[]).placement.rank();
        prop_assert!(rank(context + more) >= rank(context));
    }

    #[test]
    fn the_largest_context_fits_and_the_next_step_does_not(
        model in any_account(), context in 1..300_000_u32, kv in any_kv(), ram in 1..(72 * GIB),
    ) {
        let machine = Machine::mac(ram);
        let rank = |context| verdict(&model, (context, kv), &machine, &[]).placement.rank();
        let requested = verdict(&model, (context, kv), &machine, &[]);
        let wanted = requested.placement.rank().min(Placement::SLOWEST.rank());
        match requested.largest_context_tokens {
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

    #[test]
    fn a_suggested_model_runs_here_and_better(
        model in any_account(), sizes in prop::collection::vec(1..(48 * GIB), 1..6),
        context in 1..300_000_u32, kv in any_kv(), ram in 1..(72 * GIB),
    ) {
        let machine = Machine::mac(ram);
        let offers: Vec<_> = sizes.iter().map(|size| accounts::offer("Q", *size)).collect();
        let placed = |size| verdict(&model.scaled_to(size), (context, kv), &machine, &[]).placement;
        match recommend(&model, CompanionModels::default(), (context, kv), &machine, &offers) {
            Some(chosen) => {
                prop_assert_ne!(chosen.placement, Placement::Refused);
                prop_assert_eq!(chosen.placement, placed(chosen.size_bytes));
            }
            None => {
                let smallest = sizes.iter().min();
                prop_assert_eq!(smallest.map(|size| placed(*size)), Some(Placement::Refused));
            }
        }
        let verdict = verdict(&model, (context, kv), &machine, &offers);
        if let Some(instead) = verdict.instead {
            prop_assert!(instead.placement.rank() < verdict.placement.rank());
        }
    }
}
