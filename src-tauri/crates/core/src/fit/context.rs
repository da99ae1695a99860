//! The context and the KV cache that a model gets where its tier leaves them to Tierbar.

use super::{Machine, gpu};
use crate::{
    budget::{Budget, Placement, place},
    config::{Choice, TierConfig},
    model::{ModelAccount, ModelKind},
    run::{KvCache, MICRO_BATCH, Profile},
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
/// What coding agents ask for.
const AGENT: u32 = 32_768;
/// Texts to embed or to rank, in tokens.
const TEXT_MOST: u32 = 8192;
const TEXT_LEAST: u32 = 2048;
/// From the most precise.
const CACHES: [KvCache; 3] = [KvCache::F16, KvCache::Q8_0, KvCache::Q4_0];

/// What a tier says of its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextChoice {
    pub profile: Profile,
    pub context: Choice<u32>,
    pub kv_cache: Choice<KvCache>,
    /// Tokens evaluated at once; 0 for the default.
    pub batch: u32,
    /// Bytes kept for what is loaded beside the model, if both fit.
    pub beside: u64,
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
            beside: 0,
        }
    }
}

impl ContextChoice {
    /// Returns the settings for a model on a machine. The user's own stand; the others are chosen so that nothing of the model
    /// leaves memory or the GPU for them.
    #[must_use]
    pub fn settle(&self, model: &ModelAccount, machine: &Machine) -> ContextSettings {
        let budget = machine.budget();
        let without = |bytes: u64| Search {
            model,
            budget: Budget {
                total_bytes: budget.total_bytes.saturating_sub(bytes),
                ..budget
            },
            gpu_limit: machine.gpu_limit.map(|limit| limit.saturating_sub(bytes)),
            batch: self.batch_tokens(),
            context: self.context.fixed(),
            caches: match self.kv_cache {
                Choice::Fixed(kv) => vec![kv],
                Choice::Auto => CACHES.to_vec(),
            },
        };
        // As in a load, the model comes first.
        let beside = without(self.beside);
        if beside.holds_all() {
            beside.settings(self.profile)
        } else {
            without(0).settings(self.profile)
        }
    }

    /// Returns the longest prompt that what is beside the model has to be planned for.
    #[must_use]
    pub fn media_context(&self) -> u32 {
        self.context.fixed().unwrap_or(AGENT)
    }

    #[must_use]
    pub fn batch_tokens(&self) -> u32 {
        if self.batch == 0 {
            MICRO_BATCH
        } else {
            self.batch
        }
    }
}

/// Returns the tier with the settings that a model gets on this machine in place of `auto`; `beside` as in [`ContextChoice`].
#[must_use]
pub fn settle(
    tier: &TierConfig,
    model: &ModelAccount,
    beside: u64,
    machine: &Machine,
) -> TierConfig {
    let choice = ContextChoice {
        beside,
        ..ContextChoice::from(tier)
    };
    let settled = choice.settle(model, &machine.paging(tier.paging));
    TierConfig {
        context: Choice::Fixed(settled.context),
        kv_cache: Choice::Fixed(settled.kv_cache),
        ..tier.clone()
    }
}

/// Returns how the model runs with each profile.
#[must_use]
pub fn profiles(model: &ModelAccount, beside: u64, machine: &Machine) -> Vec<ProfileFit> {
    let budget = machine.budget();
    let fit = |profile| {
        let choice = ContextChoice {
            profile,
            beside,
            ..ContextChoice::default()
        };
        let ContextSettings { context, kv_cache } = choice.settle(model, machine);
        let plan = place(model, context, kv_cache, MICRO_BATCH, &budget);
        ProfileFit {
            profile,
            context_tokens: plan.context_tokens,
            kv_cache,
            placement: plan.placement,
            total_bytes: plan.total_bytes(),
        }
    };
    Profile::ALL.map(fit).to_vec()
}

struct Search<'a> {
    model: &'a ModelAccount,
    budget: Budget,
    gpu_limit: Option<u64>,
    batch: u32,
    context: Option<u32>,
    caches: Vec<KvCache>,
}

impl Search<'_> {
    /// Whether all of the model is in memory with the least context.
    fn holds_all(&self) -> bool {
        let (least, smallest) = (self.contexts().last(), self.caches.last());
        least
            .zip(smallest)
            .is_some_and(|(least, &smallest)| self.rank(least, smallest).0 == 0)
    }

    fn settings(&self, profile: Profile) -> ContextSettings {
        if self.model.kind != ModelKind::Chat {
            return self.of_texts();
        }
        // Of the least context in the smallest cache: the best that this model can have.
        let (least, smallest) = (self.contexts().last(), self.caches.last());
        let (Some(least), Some(&smallest)) = (least, smallest) else {
            return ContextSettings {
                context: USEFUL,
                kv_cache: KvCache::F16,
            };
        };
        let best = self.rank(least, smallest);
        if best.0 == Placement::Refused.rank() {
            return ContextSettings {
                context: least,
                kv_cache: smallest,
            };
        }
        // A layer less on the GPU costs less than a context that is of no use.
        let keeps = |context: u32, kv| {
            let (placement, off_gpu) = self.rank(context, kv);
            placement == best.0 && (off_gpu == best.1 || context <= USEFUL)
        };
        let share = self.budget.total_bytes / SHARE;
        let allowed = |context: u32, kv| {
            keeps(context, kv)
                && match profile {
                    // What a paged model's context takes, its experts lack.
                    _ if best.0 > 0 => context <= USEFUL,
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
                .unwrap_or(least)
        };
        let goal = match profile {
            Profile::Balanced | Profile::Paged => USEFUL.min(longest(smallest)),
            Profile::LongContext | Profile::Agent => longest(smallest),
        };
        let fits = |kv: KvCache| longest(kv) >= goal && keeps(longest(kv), kv);
        let kv_cache = self.caches.iter().copied().find(|&kv| fits(kv));
        let kv_cache = kv_cache.unwrap_or(smallest);
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
            let plan = place(self.model, *context, kv_cache, self.batch, &self.budget);
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

    /// Of the placement, and the layers that the GPU does not hold: less is faster.
    fn rank(&self, context: u32, kv: KvCache) -> (u8, u32) {
        let plan = place(self.model, context, kv, self.batch, &self.budget);
        let share = self
            .gpu_limit
            .map(|limit| gpu::share(self.model, &plan, kv, self.batch, limit));
        let off_gpu = share.map_or(0, |share| share.layers_all.saturating_sub(share.layers));
        (plan.placement.rank(), off_gpu)
    }
}
