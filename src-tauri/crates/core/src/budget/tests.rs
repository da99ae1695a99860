use super::*;
use crate::{
    Code,
    fit::{Machine, gpu_share, tests::accounts},
};

#[test]
fn the_budget_reserves_4_gib_and_3_on_small_machines() {
    let total = |gib| Budget::of_machine(gib * GIB, MaxLoaded::Auto).total_bytes / GIB;
    assert_eq!([4, 8, 16, 64].map(total), [1, 5, 12, 60]);
    // A machine with more than 8 GiB never has less for models than one with 8.
    assert_eq!(total(9), 5);
    assert_eq!(Budget::of_machine(GIB, MaxLoaded::Auto).total_bytes, 0);
}

#[test]
fn only_small_machines_overcommit() {
    let over = |mib| {
        let budget = Budget::of_machine(mib * MIB, MaxLoaded::Auto);
        budget.overcommit_bytes() / MIB
    };
    assert_eq!(
        [6, 8, 9, 10, 16].map(|gib| over(gib * 1024)),
        [1024, 1024, 1024, 0, 0]
    );
    assert_eq!(over(9 * 1024 + 512), 512);
}

/// Bytes that the worker's handshake reports for its compute buffers, on Linux's CPU, and what the plan counts.
#[test]
fn compute_buffers_are_estimated_from_above() {
    let (smol, gemma) = (accounts::smollm2_135m(), accounts::gemma3_270m());
    for (model, context, measured) in [
        (&smol, 512, 15_910_944),
        (&smol, 4096, 19_580_960),
        (&smol, 8192, 23_775_264),
        (&gemma, 512, 20_770_848),
        (&gemma, 4096, 25_489_440),
        (&gemma, 16_384, 38_072_352),
        (&gemma, 32_768, 54_849_568),
    ] {
        let planned = needs(model, context, KvCache::F16, MICRO_BATCH).compute;
        let name = &model.architecture;
        assert!(planned >= measured, "{name} at {context}: {planned}");
        assert!(
            planned < measured + 64 * MIB,
            "{name} at {context}: {planned} wastes memory"
        );
    }
}

#[test]
fn optional_memory_is_added_where_it_fits() {
    let budget = Budget::of_machine(16 * GIB, MaxLoaded::Auto);
    let plan = plan_load(
        &accounts::smollm2_135m(),
        4096,
        KvCache::F16,
        MICRO_BATCH,
        &budget,
    )
    .unwrap();
    let room = budget.total_bytes - plan.total_bytes();
    let with = plan.with(LineKind::Projector, room, &budget).unwrap();
    assert_eq!(with.total_bytes(), budget.total_bytes);
    assert_eq!(with.bytes(LineKind::Projector), room);
    assert_eq!(plan.with(LineKind::Projector, room + 1, &budget), None);
    let paged = LoadPlan {
        placement: Placement::Mmap,
        ..plan
    };
    assert_eq!(paged.with(LineKind::Projector, 1, &budget), None);
}

#[test]
fn every_line_of_a_plan_is_in_its_sum() {
    let model = ModelAccount {
        dense_bytes: 1,
        embedding_bytes: 20,
        per_layer_embedding_bytes: 300,
        expert_bytes: 4000,
        ..accounts::smollm2_135m()
    };
    let none = ModelAccount {
        dense_bytes: 0,
        embedding_bytes: 0,
        per_layer_embedding_bytes: 0,
        expert_bytes: 0,
        ..accounts::smollm2_135m()
    };
    let total = |model| needs(model, 4096, KvCache::F16, MICRO_BATCH).total_bytes();
    assert_eq!(total(&model) - total(&none), 4321);
}

#[test]
fn every_plan_keeps_room_for_the_embedder_and_the_app() {
    let budget = Budget::of_machine(16 * GIB, MaxLoaded::Auto);
    let plan = plan_load(
        &accounts::smollm2_135m(),
        4096,
        KvCache::F16,
        MICRO_BATCH,
        &budget,
    )
    .unwrap();
    assert_eq!(plan.bytes(LineKind::Embedder), 146_146_432 + 32 * MIB);
    assert_eq!(plan.bytes(LineKind::App), 96 * MIB);
    assert_eq!(plan.bytes(LineKind::KvCache), 4096 * 23_040);
}

#[test]
fn row_embeddings_may_stay_on_disk_on_any_machine() {
    let placed = |tied_output, over: u64| {
        let model = ModelAccount {
            embedding_bytes: GIB,
            per_layer_embedding_bytes: GIB,
            dense_bytes: 11 * GIB,
            tied_output,
            ..accounts::smollm2_135m()
        };
        let budget = Budget {
            total_bytes: needs(&model, 512, KvCache::F16, MICRO_BATCH).total_bytes() - over,
            max_loaded: 1,
            paging: crate::run::Paging::Mmap,
            embedder_bytes: EMBEDDER,
        };
        let plan = plan_placement(&model, 512, KvCache::F16, MICRO_BATCH, &budget);
        (plan.placement, plan.bytes(LineKind::PagedWeights))
    };
    assert_eq!(placed(false, 0), (Placement::Resident, 0));
    assert_eq!(placed(false, 2 * GIB), (Placement::Mmap, 2 * GIB));
    assert_eq!(placed(false, 2 * GIB + 1), (Placement::Refused, 0));
    // A tied table is the output layer, which each token reads.
    assert_eq!(placed(true, GIB), (Placement::Mmap, GIB));
    assert_eq!(placed(true, GIB + 1), (Placement::Refused, 0));
}

#[test]
fn at_least_some_experts_must_fit() {
    let model = accounts::qwen35_35b(11_391_613_568);
    let rows = model.row_read_bytes();
    let placed = |over: u64| {
        let total_bytes = needs(&model, 512, KvCache::F16, MICRO_BATCH).total_bytes() - over;
        let budget = Budget {
            total_bytes,
            max_loaded: 1,
            paging: crate::run::Paging::Mmap,
            embedder_bytes: EMBEDDER,
        };
        plan_placement(&model, 512, KvCache::F16, MICRO_BATCH, &budget)
    };
    let plan = placed(rows + model.expert_bytes - 1);
    assert_eq!(plan.placement, Placement::Mmap);
    assert_eq!(plan.bytes(LineKind::ResidentExperts), 1);
    assert_eq!(
        placed(rows + model.expert_bytes).placement,
        Placement::Refused
    );
}

#[test]
fn a_refusal_has_the_need_and_a_context_that_fits() {
    let model = accounts::smollm2_135m();
    let budget = |total_bytes| Budget {
        total_bytes,
        max_loaded: 1,
        paging: crate::run::Paging::Mmap,
        embedder_bytes: EMBEDDER,
    };
    let needed = |context| needs(&model, context, KvCache::F16, MICRO_BATCH).total_bytes();
    // What its overcommit allows comes on top.
    let slack = model.dense_bytes + model.embedding_bytes;
    let error = plan_load(
        &model,
        8192,
        KvCache::F16,
        MICRO_BATCH,
        &budget(needed(4096) - slack),
    )
    .unwrap_err();
    assert_eq!(error.code, Code::OverBudget);
    assert_eq!(error.details["needed_bytes"], needed(8192));
    assert_eq!(error.details["largest_context_tokens"], 4096);
    assert!(error.hint.unwrap().contains("4096 tokens"));
    let error = plan_load(&model, 512, KvCache::F16, MICRO_BATCH, &budget(1)).unwrap_err();
    assert!(!error.details.contains_key("largest_context_tokens"));
    assert!(error.hint.unwrap().contains("smaller"));
}

#[test]
fn a_context_beyond_training_is_planned_as_capped() {
    let model = accounts::smollm2_135m();
    let budget = Budget::of_machine(16 * GIB, MaxLoaded::Auto);
    let plan = plan_load(&model, 100_000, KvCache::F16, MICRO_BATCH, &budget).unwrap();
    assert_eq!(plan.context_tokens, 8192);
    assert_eq!(
        plan,
        plan_load(&model, 8192, KvCache::F16, MICRO_BATCH, &budget).unwrap()
    );
}

#[test]
fn sizes_are_printed_in_readable_units() {
    assert_eq!(gib(12 * GIB + GIB / 4), "12.2 GiB");
    assert_eq!(gib(512 * (1 << 20)), "512 MiB");
}

#[test]
fn a_placement_has_one_name_and_one_rank() {
    use Placement::{Advise, Cache, Mmap, Refused, Resident, Stream};
    let by_speed = [Resident, Cache, Advise, Mmap, Stream, Refused];
    for (rank, placement) in by_speed.into_iter().enumerate() {
        let word = placement.as_str();
        assert_eq!(serde_json::to_value(placement).unwrap(), word);
        assert_eq!(usize::from(placement.rank()), rank, "{word}");
        let runs_from_disk = placement != Resident && placement != Refused;
        assert_eq!(placement.is_paged(), runs_from_disk, "{word}");
    }
}

/// A fuzzer's header: as many heads as a number of 32 bits can say, and experts that could be left on the disk.
#[test]
fn a_sum_that_cannot_be_counted_is_refused() {
    let mut model = accounts::qwen35_35b(11_391_613_568);
    model.kv.full_elements_per_token = u64::MAX;
    let machine = Budget::of_machine(u64::MAX, MaxLoaded::Auto);
    let plan = plan_placement(&model, 4096, KvCache::F16, MICRO_BATCH, &machine);
    assert_eq!(plan.placement, Placement::Refused);
}

#[test]
fn a_mixture_beyond_the_budget_has_its_experts_cached() {
    let model = accounts::qwen35_35b(22_016_023_168);
    let plan = |paging| {
        let budget = Machine::mac(16 * GIB).paging(paging).budget();
        plan_placement(&model, 12_288, KvCache::Q4_0, MICRO_BATCH, &budget)
    };
    let cached = plan(Paging::Cache);
    assert_eq!(cached.placement, Placement::Cache);
    assert_eq!(cached.total_bytes(), 12 * GIB);
    let cache = cached.bytes(LineKind::ExpertCache);
    assert_eq!(
        cache + cached.bytes(LineKind::PagedExperts),
        model.expert_bytes
    );
    assert_eq!(cached.bytes(LineKind::ResidentExperts), 0);
    let mapped = plan(Paging::Mmap);
    assert_eq!(mapped.placement, Placement::Mmap);
    assert_eq!(mapped.bytes(LineKind::ResidentExperts), cache);
    let advised = plan(Paging::Advise);
    assert_eq!(advised.placement, Placement::Advise);
    assert_eq!(advised.lines, mapped.lines);
    assert_eq!(plan(Paging::Auto), advised, "as a Mac does");
    assert_eq!(plan(Paging::Off).placement, Placement::Refused);
}

#[test]
fn prompts_on_the_gpu_need_a_copy_of_a_layers_experts() {
    let model = accounts::qwen35_35b(22_016_023_168);
    let placed = |ram, paging| {
        let machine = Machine::mac(ram).paging(paging);
        let plan = plan_placement(
            &model,
            12_288,
            KvCache::Q4_0,
            MICRO_BATCH,
            &machine.budget(),
        );
        let limit = machine.gpu_limit.unwrap();
        let share = gpu_share(&model, &plan, KvCache::Q4_0, MICRO_BATCH, limit);
        (plan, share.bytes)
    };
    let (advised, held) = placed(16 * GIB, Paging::Advise);
    let (copied, held_with_copy) = placed(16 * GIB, Paging::AdviseGpu);
    assert_eq!(copied.placement, Placement::Advise);
    assert_eq!(copied.total_bytes(), advised.total_bytes());
    let more = |what| copied.bytes(what) - advised.bytes(what);
    let copy = more(LineKind::ComputeBuffers);
    assert!(copy >= model.expert_bytes / u64::from(model.layers));
    assert_eq!(more(LineKind::PagedExperts), copy);
    assert_eq!(held_with_copy - held, copy);
    let whole = placed(64 * GIB, Paging::AdviseGpu);
    assert_eq!(whole, placed(64 * GIB, Paging::Advise), "it is not paged");
}

#[test]
fn a_cache_below_two_layers_or_a_token_is_none() {
    let model = accounts::qwen35_35b(22_016_023_168);
    let needs = needs(&model, 4096, KvCache::Q4_0, MICRO_BATCH);
    let least = needs.least_cache;
    assert!(least >= 2 * model.expert_bytes / u64::from(model.layers));
    assert!(least >= model.expert_bytes / u64::from(model.experts) * u64::from(model.experts_used));
    let others = needs.total_bytes() - model.expert_bytes;
    let placement = |cache: u64| {
        let budget = Budget {
            total_bytes: others + cache,
            max_loaded: 1,
            paging: Paging::Cache,
            embedder_bytes: EMBEDDER,
        };
        plan_placement(&model, 4096, KvCache::Q4_0, MICRO_BATCH, &budget).placement
    };
    let rows = model.row_read_bytes();
    assert_eq!(placement(least - rows), Placement::Cache);
    assert_eq!(placement(least - rows - 1), Placement::Advise);
    assert_eq!(placement(model.expert_bytes), Placement::Resident);
}

#[test]
fn a_dense_model_is_read_layer_by_layer_on_request() {
    let model = accounts::qwen35_9b(5_680_522_464);
    let plan = |paging| {
        let budget = Machine::mac(8 * GIB).paging(paging).budget();
        let plan = plan_placement(&model, 4096, KvCache::F16, MICRO_BATCH, &budget);
        assert!(plan.total_bytes() <= budget.total_bytes, "{plan:?}");
        plan
    };
    for paging in [Paging::Advise, Paging::Cache] {
        assert_eq!(plan(paging).placement, Placement::Mmap);
    }
    let plan = plan(Paging::Stream);
    assert_eq!(plan.placement, Placement::Stream);
    let layers = plan.bytes(LineKind::LayerCache) + plan.bytes(LineKind::PagedWeights);
    assert!(layers >= model.feed_forward_bytes, "{plan:?}");
}

#[test]
fn a_large_dense_model_is_streamed_only_where_that_is_asked_for() {
    // At 8 bits, 9.5 GB.
    let model = accounts::qwen35_9b(9_527_502_048);
    let plan = |paging| {
        let budget = Machine::mac(8 * GIB).paging(paging).budget();
        plan_placement(&model, 4096, KvCache::F16, MICRO_BATCH, &budget)
    };
    assert_eq!(plan(Paging::Cache).placement, Placement::Refused);
    let streamed = plan(Paging::Stream);
    assert_eq!(streamed.placement, Placement::Stream);
    // Two layers at least: one is computed with while the next is read.
    assert!(streamed.bytes(LineKind::LayerCache) * 16 >= model.feed_forward_bytes);
    // With less than its attention, it is refused in any way.
    let large = accounts::qwen35_9b(40 * GIB);
    let budget = Machine::mac(8 * GIB).paging(Paging::Stream).budget();
    let plan = plan_placement(&large, 4096, KvCache::F16, MICRO_BATCH, &budget);
    assert_eq!(plan.placement, Placement::Refused);
}

#[test]
fn a_refusal_names_the_paging_with_which_the_model_runs() {
    let hint = |model: ModelAccount, ram, paging| {
        let budget = Machine::mac(ram).paging(paging).budget();
        let plan = plan_load(&model, 4096, KvCache::Q4_0, MICRO_BATCH, &budget);
        plan.unwrap_err().hint.unwrap()
    };
    let mixture = accounts::qwen35_35b(22_016_023_168);
    let off = hint(mixture, 16 * GIB, Paging::Off);
    let auto =
        "set the tier's paging to \"auto\", which reads the rest of the model from disk as needed";
    assert!(off.contains(auto), "{off}");
    for paging in [Paging::Off, Paging::Mmap] {
        let dense = accounts::qwen35_9b(9_527_502_048);
        let hint = hint(dense, 8 * GIB, paging);
        let named = "set the tier's paging to \"stream\"";
        assert!(hint.contains(named), "{paging:?}: {hint}");
    }
    let hint = hint(accounts::qwen35_9b(40 * GIB), 8 * GIB, Paging::Off);
    assert!(!hint.contains("paging"), "it runs with none: {hint}");
}

/// all-MiniLM-L6-v2 in 32-bit floats.
fn minilm() -> ModelAccount {
    ModelAccount {
        kind: crate::ModelKind::Embedding,
        file_bytes: 90_900_000,
        dense_bytes: 43_383_000,
        embedding_bytes: 46_881_792,
        per_layer_embedding_bytes: 0,
        layers: 6,
        embedding: 384,
        vocabulary: 30_522,
        context_train: 512,
        kv: crate::model::KvAccount {
            full_elements_per_token: 0,
            sliding_elements_per_cell: 0,
            window: 0,
            state_bytes: 0,
        },
        ..accounts::smollm2_135m()
    }
}

#[test]
fn a_small_embedding_model_is_planned_for_the_slot() {
    let budget = Budget::of_machine(16 * GIB, MaxLoaded::Auto);
    let plan =
        |model: &ModelAccount| plan_placement(model, 4096, KvCache::F16, MICRO_BATCH, &budget);
    let small = plan(&minilm());
    assert_eq!(small.kind, TierKind::Embedder);
    assert_eq!(
        small.bytes(LineKind::Embedder) + small.bytes(LineKind::App),
        0
    );
    // As the worker reports it for 512 tokens at once.
    assert!(small.bytes(LineKind::ComputeBuffers) > 7_647_232);
    let causal = ModelAccount {
        kv: accounts::smollm2_135m().kv,
        ..minilm()
    };
    let logits = 4096 * 30_522 * 4;
    let causal = plan(&ModelAccount {
        context_train: 4096,
        ..causal
    });
    assert!(causal.bytes(LineKind::ComputeBuffers) > logits);
    let large = ModelAccount {
        dense_bytes: 480 * MIB,
        ..minilm()
    };
    let large = plan(&large);
    assert_eq!(large.kind, TierKind::Generative);
    assert_eq!(large.bytes(LineKind::Embedder), EMBEDDER);
}

#[test]
fn generative_plans_leave_as_much_as_the_embedder_needs() {
    let budget = Budget {
        embedder_bytes: 300 * MIB,
        ..Budget::of_machine(16 * GIB, MaxLoaded::Auto)
    };
    let model = accounts::smollm2_135m();
    let plan = plan_placement(&model, 4096, KvCache::F16, MICRO_BATCH, &budget);
    assert_eq!(plan.bytes(LineKind::Embedder), 300 * MIB);
    assert_eq!(plan.kind, TierKind::Generative);
}
