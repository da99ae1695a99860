//! The context and the KV cache that a model gets where its tier leaves them to Tierbar.

use super::{Machine, gpu};
use crate::{
    budget::{Budget, CompanionModels, LoadPlan, Placement, plan_placement},
    config::{Choice, TierConfig},
    model::{ModelAccount, ModelKind},
    run::{KvCache, MICRO_BATCH, Paging, Profile},
    tier::TierKind,
};
use serde::{Deserialize, Serialize};

/// Contexts to choose from, besides what a model was trained for.
const STEPS: [u32; 13] = [
    262_144, 196_608, 131_072, 98_304, 65_536, 49_152, 32_768, 24_576, 16_384, 12_288, 8192, 4096,
    2048,
];
/// The part of the budget that a balanced context may cost.
const SHARE: u64 = 8;
/// Coding agents send some 10,000 tokens of instructions and tools with each request. A context up to this one may cost more than
/// its share, and the cache may have fewer bits for it.
const USEFUL: u32 = 16_384;
const AGENT: u32 = 32_768;
/// Texts to embed or to rank, in tokens.
const TEXT_MOST: u32 = 8192;
const TEXT_LEAST: u32 = 2048;

/// What a tier says of how its model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextChoice {
    pub profile: Profile,
    pub context: Choice<u32>,
    pub kv_cache: Choice<KvCache>,
    /// Tokens evaluated at once; 0 for the default.
    pub batch: u32,
    /// For a model that exceeds the memory.
    pub paging: Paging,
}

/// A context in tokens, and the cells of its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSettings {
    pub context: u32,
    pub kv_cache: KvCache,
}

/// How a model runs on a machine with a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProfileFit {
    pub profile: Profile,
    pub context_tokens: u32,
    pub kv_cache: KvCache,
    pub placement: Placement,
    /// What the load uses of the budget.
    pub total_bytes: u64,
}

impl From<(u32, KvCache)> for ContextChoice {
    fn from((context, kv_cache): (u32, KvCache)) -> Self {
        Self {
            context: Choice::Fixed(context),
            kv_cache: Choice::Fixed(kv_cache),
            ..Self::default()
        }
    }
}

impl From<&TierConfig> for ContextChoice {
    fn from(tier: &TierConfig) -> Self {
        Self {
            profile: tier.profile,
            context: tier.context,
            kv_cache: tier.kv_cache,
            batch: tier.batch,
            paging: tier.paging,
        }
    }
}

impl ContextChoice {
    /// Returns the settings for a model on a machine. The user's own stand; the others are chosen so that nothing of the model, or of
    /// what is beside it, leaves memory or the GPU for them.
    pub fn settle(
        &self,
        model: &ModelAccount,
        beside: CompanionModels<'_>,
        machine: &Machine,
    ) -> ContextSettings {
        let search = |beside| Search {
            model,
            beside,
            budget: machine.paging(self.paging).budget(),
            gpu_limit: machine.gpu_limit,
            batch: self.batch_tokens(),
            context: self.context.fixed(),
            caches: match self.kv_cache {
                Choice::Fixed(kv) => vec![kv],
                // From the most precise.
                Choice::Auto => KvCache::ALL.to_vec(),
            },
        };
        let alone = search(CompanionModels::default());
        let alone = alone.settings(self.profile, alone.best());
        // As in a load, the model comes first, then its projector: neither is worth a context that is of no use.
        for part in beside.parts() {
            let with = search(part);
            let best = with.best();
            if best.placement == Placement::Resident.rank() {
                let settings = with.settings(self.profile, best);
                if settings.context >= alone.context.min(USEFUL) {
                    return settings;
                }
            }
        }
        alone
    }

    /// Returns the plan of a load with these settings, of the model and of what there is room for beside it.
    pub(super) fn plan(
        &self,
        model: &ModelAccount,
        beside: CompanionModels<'_>,
        ContextSettings { context, kv_cache }: ContextSettings,
        machine: &Machine,
    ) -> LoadPlan {
        let (batch, budget) = (self.batch_tokens(), machine.paging(self.paging).budget());
        let alone = plan_placement(model, context, kv_cache, batch, &budget);
        beside.join(alone, kv_cache, batch, &budget)
    }

    /// Returns it with another profile, whose context and cache follow from it.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self {
            profile,
            context: Choice::Auto,
            kv_cache: Choice::Auto,
            ..self
        }
    }

    pub fn batch_tokens(&self) -> u32 {
        match self.batch {
            0 => MICRO_BATCH,
            batch => batch,
        }
    }
}

/// Returns the tier with the settings that a model gets on this machine in place of `auto`.
pub fn settle(
    tier: &TierConfig,
    model: &ModelAccount,
    beside: CompanionModels<'_>,
    machine: &Machine,
) -> TierConfig {
    let settled = ContextChoice::from(tier).settle(model, beside, machine);
    TierConfig {
        context: Choice::Fixed(settled.context),
        kv_cache: Choice::Fixed(settled.kv_cache),
        ..tier.clone()
    }
}

/// Returns how the model runs with each profile, in a tier of that batch and paging.
pub fn profiles(
    model: &ModelAccount,
    beside: CompanionModels<'_>,
    tier: ContextChoice,
    machine: &Machine,
) -> Vec<ProfileFit> {
    let fit = |profile| {
        let choice = tier.with_profile(profile);
        let settings = choice.settle(model, beside, machine);
        let plan = choice.plan(model, beside, settings, machine);
        ProfileFit {
            profile,
            context_tokens: plan.context_tokens,
            kv_cache: settings.kv_cache,
            placement: plan.placement,
            total_bytes: plan.total_bytes(),
        }
    };
    Profile::ALL.map(fit).to_vec()
}

struct Search<'a> {
    model: &'a ModelAccount,
    beside: CompanionModels<'a>,
    budget: Budget,
    gpu_limit: Option<u64>,
    batch: u32,
    context: Option<u32>,
    caches: Vec<KvCache>,
}

/// How well a model is held: less is faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rank {
    placement: u8,
    /// The layers that the GPU does not hold.
    off_gpu: u32,
}

impl Search<'_> {
    /// Returns how well the model can be held at best: with the least context in the smallest cache.
    fn best(&self) -> Rank {
        self.rank(self.least())
    }

    fn least(&self) -> ContextSettings {
        ContextSettings {
            context: self.contexts().last().unwrap_or(USEFUL),
            kv_cache: self.caches.last().copied().unwrap_or_default(),
        }
    }

    fn settings(&self, profile: Profile, best: Rank) -> ContextSettings {
        if self.model.kind != ModelKind::Chat {
            return self.of_texts();
        }
        let least = self.least();
        if best.placement == Placement::Refused.rank() {
            return least;
        }
        let keeps = |context, kv_cache| {
            let rank = self.rank(ContextSettings { context, kv_cache });
            // A layer less on the GPU costs less than a context that is of no use.
            rank.placement == best.placement && (rank.off_gpu == best.off_gpu || context <= USEFUL)
        };
        let share = self.budget.total_bytes / SHARE;
        let allowed = |context: u32, kv| {
            keeps(context, kv)
                && match profile {
                    // What a paged model's context takes, its experts lack.
                    _ if best.placement > 0 => context <= USEFUL,
                    Profile::Balanced => {
                        context <= USEFUL
                            || self.model.kv.bytes_in_batches(context, kv, self.batch) <= share
                    }
                    Profile::LongContext => true,
                    Profile::Agent => context <= AGENT,
                    Profile::Paged => context <= USEFUL,
                }
        };
        let longest = |kv: KvCache| {
            let mut contexts = self.contexts();
            contexts
                .find(|&context| self.context.is_some() || allowed(context, kv))
                .unwrap_or(least.context)
        };
        let goal = match profile {
            Profile::Balanced | Profile::Paged => USEFUL.min(longest(least.kv_cache)),
            Profile::LongContext | Profile::Agent => longest(least.kv_cache),
        };
        let fits = |kv: KvCache| longest(kv) >= goal && keeps(longest(kv), kv);
        let kv_cache = self.caches.iter().copied().find(|&kv| fits(kv));
        let kv_cache = kv_cache.unwrap_or(least.kv_cache);
        ContextSettings {
            context: longest(kv_cache),
            kv_cache,
        }
    }

    /// Embedding and reranking models read one text at a time and keep no cache: the longest text that the slot beside the chat
    /// model has room for, or else a short one.
    fn of_texts(&self) -> ContextSettings {
        let kv_cache = self.caches.first().copied().unwrap_or_default();
        let in_slot = |context: &u32| {
            let plan = plan_placement(self.model, *context, kv_cache, self.batch, &self.budget);
            self.context.is_some() || *context <= TEXT_MOST && plan.kind == TierKind::Embedder
        };
        let trained = self.model.context_train.max(1);
        ContextSettings {
            context: self
                .contexts()
                .find(in_slot)
                .unwrap_or_else(|| trained.min(TEXT_LEAST)),
            kv_cache,
        }
    }

    /// From the longest.
    fn contexts(&self) -> impl Iterator<Item = u32> {
        let trained = self.model.context_train.max(1);
        let steps = STEPS.into_iter().filter(move |step| *step < trained);
        let longest = trained.min(STEPS[0]);
        let all: Vec<u32> = match self.context {
            Some(context) => vec![context],
            None => std::iter::once(longest)
                .chain(steps.filter(|step| *step < longest))
                .collect(),
        };
        all.into_iter()
    }

    fn rank(&self, ContextSettings { context, kv_cache }: ContextSettings) -> Rank {
        let trained = self.model.context_train.max(1);
        let beside = self
            .beside
            .bytes(context.min(trained), kv_cache, self.batch);
        let plan = plan_placement(
            self.model,
            context,
            kv_cache,
            self.batch,
            &self.budget.less(beside),
        );
        let share = self.gpu_limit.map(|limit| {
            let limit = limit.saturating_sub(beside);
            gpu::share(self.model, &plan, kv_cache, self.batch, limit)
        });
        Rank {
            placement: plan.placement.rank(),
            off_gpu: share.map_or(0, |share| share.layers_all.saturating_sub(share.layers)),
        }
    }
}
