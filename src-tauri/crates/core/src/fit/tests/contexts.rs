//! Contexts and caches that follow from a model, a machine and a profile.

use super::*;
use crate::config::{Choice, TierConfig};
use crate::run::{Paging, Profile};

const QWEN_9B: u64 = 5_680_522_464;
const QWEN_35B_2_BITS: u64 = 11_391_613_568;
const QWEN_35B_4_BITS: u64 = 22_016_023_168;

fn settled(model: &ModelAccount, ram: u64, profile: Profile) -> (u32, KvCache) {
    let choice = ContextChoice {
        profile,
        ..ContextChoice::default()
    };
    let found = choice.settle(model, CompanionModels::default(), &Machine::mac(ram * GIB));
    (found.context, found.kv_cache)
}

#[test]
fn a_balanced_context_costs_an_eighth_of_the_budget() {
    let model = accounts::qwen35_9b(QWEN_9B);
    for ram in [12, 16, 24, 32, 64] {
        let (context, kv) = settled(&model, ram, Profile::Balanced);
        let share = Machine::mac(ram * GIB).budget().total_bytes / 8;
        assert!(
            model.kv.bytes(context, kv) <= share || context == 16_384,
            "{ram}: {context}"
        );
        assert!(context >= 16_384, "{ram}: {context}");
        assert_eq!(kv, KvCache::F16, "{ram}");
    }
    assert_eq!(
        settled(&model, 16, Profile::Balanced),
        (32_768, KvCache::F16)
    );
}

#[test]
fn a_smaller_cache_is_taken_only_for_a_useful_context() {
    // 11.4 GB of weights leave little of 12 GiB, and of the GPU's part.
    let model = accounts::qwen35_35b(QWEN_35B_2_BITS);
    assert_eq!(
        settled(&model, 16, Profile::Balanced),
        (24_576, KvCache::F16)
    );
    let larger = model.scaled_to(12_150_000_000);
    let (context, kv) = settled(&larger, 16, Profile::Balanced);
    assert_eq!(context, 16_384);
    assert_ne!(kv, KvCache::F16);
    let (agent, _) = settled(&larger, 16, Profile::Agent);
    assert!(agent >= 16_384, "{agent}");
    let verdict = verdict(
        &larger,
        ContextChoice {
            profile: Profile::Agent,
            ..ContextChoice::default()
        },
        &Machine::mac(16 * GIB),
        &[],
    );
    assert_eq!(verdict.placement, Placement::Resident);
}

#[test]
fn a_long_context_is_the_longest_that_fits() {
    let model = accounts::qwen35_9b(QWEN_9B);
    let (context, kv) = settled(&model, 16, Profile::LongContext);
    assert!(context >= 65_536, "{context}");
    let machine = Machine::mac(16 * GIB);
    let fits = |context| {
        verdict(&model, (context, KvCache::Q4_0), &machine, &[]).placement == Placement::Resident
    };
    assert!(fits(context) && kv.bytes(1024) >= KvCache::Q4_0.bytes(1024));
    assert!(context == 262_144 || !fits(context * 2), "{context}");
}

#[test]
fn what_is_paged_keeps_its_memory_for_experts() {
    let model = accounts::qwen35_35b(QWEN_35B_4_BITS);
    for profile in Profile::ALL {
        let (context, _) = settled(&model, 16, profile);
        assert!(context <= 16_384, "{profile:?}: {context}");
    }
}

#[test]
fn the_users_own_values_stand() {
    let model = accounts::qwen35_9b(QWEN_9B);
    let machine = Machine::mac(16 * GIB);
    let tier = TierConfig {
        context: Choice::Fixed(3000),
        ..TierConfig::default()
    };
    let found = settle(&tier, &model, CompanionModels::default(), &machine);
    assert_eq!(found.context, Choice::Fixed(3000));
    assert_eq!(found.kv_cache, Choice::Fixed(KvCache::F16));
    assert_eq!(
        settle(&found, &model, CompanionModels::default(), &machine),
        found
    );
    let tier = TierConfig {
        kv_cache: Choice::Fixed(KvCache::Q4_0),
        ..TierConfig::default()
    };
    let found = settle(&tier, &model, CompanionModels::default(), &machine);
    assert_eq!(found.kv_cache, Choice::Fixed(KvCache::Q4_0));
    assert!(found.context_tokens() > 32_768, "{found:?}");
}

#[test]
fn no_context_exceeds_what_the_model_was_trained_for() {
    let model = accounts::smollm2_135m();
    for profile in Profile::ALL {
        assert_eq!(settled(&model, 64, profile).0, 8192, "{profile:?}");
    }
    let tiny = ModelAccount {
        context_train: 100,
        ..model
    };
    assert_eq!(settled(&tiny, 64, Profile::Balanced).0, 100);
}

#[test]
fn a_model_that_does_not_fit_is_judged_by_the_least_context() {
    let model = accounts::qwen35_9b(9_527_502_048);
    let (context, kv) = settled(&model, 8, Profile::Balanced);
    assert_eq!((context, kv), (2048, KvCache::Q4_0));
}

#[test]
fn what_is_beside_is_counted_at_the_context_that_is_loaded() {
    let (model, draft) = (accounts::qwen35_9b(QWEN_9B), accounts::smollm2_135m());
    let machine = Machine::mac(16 * GIB);
    // More of the memory with each token, as sound that is taken whole.
    let projector = Projector(GIB / 4, 16_384);
    let beside = CompanionModels {
        projector: Some(&projector),
        draft: Some(&draft),
    };
    for profile in Profile::ALL {
        let choice = ContextChoice {
            profile,
            batch: 2048,
            ..ContextChoice::default()
        };
        let found = choice.settle(&model, beside, &machine);
        let verdict = verdict_with(&model, beside, choice, &machine, &[]);
        assert_eq!(verdict.context_tokens, found.context, "{profile:?}");
        assert_eq!(verdict.warning, None, "{profile:?}");
        assert_eq!(
            line(&verdict, LineKind::Projector),
            projector.load_bytes(found.context, 2048),
            "{profile:?}"
        );
        let of_draft =
            crate::budget::needs(&draft, found.context, found.kv_cache, 2048).engine_bytes();
        assert_eq!(line(&verdict, LineKind::DraftModel), of_draft);
        assert!(verdict.total_bytes <= verdict.budget_bytes, "{profile:?}");
        let largest = verdict.largest_context_tokens.unwrap();
        assert!(found.context <= largest, "{profile:?}: {largest}");
        let fit = profiles(&model, beside, choice, &machine);
        let fit = fit.iter().find(|fit| fit.profile == profile).unwrap();
        assert_eq!(
            (fit.context_tokens, fit.kv_cache, fit.total_bytes),
            (found.context, found.kv_cache, verdict.total_bytes),
            "{profile:?}"
        );
    }
}

#[test]
fn a_projector_has_room_where_a_draft_model_has_none() {
    let (model, draft) = (accounts::qwen35_9b(QWEN_9B), accounts::qwen35_9b(QWEN_9B));
    let machine = Machine::mac(16 * GIB);
    let projector = Projector(GIB, 0);
    let beside = CompanionModels {
        projector: Some(&projector),
        draft: Some(&draft),
    };
    for profile in Profile::ALL {
        let choice = ContextChoice {
            profile,
            ..ContextChoice::default()
        };
        let verdict = verdict_with(&model, beside, choice, &machine, &[]);
        assert_eq!(line(&verdict, LineKind::Projector), GIB, "{profile:?}");
        assert_eq!(line(&verdict, LineKind::DraftModel), 0, "{profile:?}");
        let warning = verdict.warning.unwrap();
        assert!(warning.contains("without its draft model"), "{warning}");
    }
}

#[test]
fn a_verdict_counts_the_tiers_batch_and_paging() {
    let model = accounts::qwen35_35b(QWEN_35B_4_BITS);
    let of = |batch, paging| {
        let choice = ContextChoice {
            batch,
            paging,
            ..ContextChoice::default()
        };
        verdict(&model, choice, &Machine::mac(16 * GIB), &[])
    };
    let (small, large) = (of(0, Paging::Auto), of(4096, Paging::Auto));
    let buffers = |verdict: &Verdict| line(verdict, LineKind::ComputeBuffers);
    assert!(buffers(&large) > 4 * buffers(&small));
    assert_eq!(small.placement, Placement::Advise);
    assert_eq!(of(0, Paging::Cache).placement, Placement::Cache);
    assert_eq!(of(0, Paging::Off).placement, Placement::Refused);
}

#[test]
fn a_profile_settles_anew_when_models_may_use_less() {
    let model = accounts::qwen35_9b(QWEN_9B);
    let now = Machine::mac(16 * GIB);
    // As where an embedder takes its slot, or the machine is to leave more to other programs.
    let less = Machine {
        embedder_bytes: 6 * GIB,
        ..now
    };
    for profile in Profile::ALL {
        let choice = ContextChoice {
            profile,
            ..ContextChoice::default()
        };
        let [before, after] = [now, less].map(|machine| verdict(&model, choice, &machine, &[]));
        assert_eq!(after.placement, Placement::Resident, "{profile:?}");
        assert!(after.context_tokens <= before.context_tokens, "{profile:?}");
        assert!(after.total_bytes <= after.budget_bytes, "{profile:?}");
    }
    // The user's own context is refused, with the largest that fits.
    let own = TierConfig {
        context: Choice::Fixed(262_144),
        kv_cache: Choice::Fixed(KvCache::F16),
        ..TierConfig::default()
    };
    let settled = settle(&own, &model, CompanionModels::default(), &less);
    assert_eq!(settled, own);
    let error =
        crate::budget::plan_load(&model, 262_144, KvCache::F16, MICRO_BATCH, &less.budget())
            .unwrap_err();
    assert_eq!(error.code, crate::Code::OverBudget);
    assert!(
        error
            .hint
            .unwrap()
            .starts_with("set the tier's context to ")
    );
}
