//! How fast a model should decode, from what one token reads.

use super::{LineKind, SpeedEstimate};
use crate::{
    budget::{LoadPlan, Placement, sum},
    config::KvCache,
    fit::{DecodeRate, Machine},
    model::ModelAccount,
};

/// Of the memory's bandwidth, decoding uses from a part to nearly all. Published runs of
/// llama.cpp on Apple's chips, in parts of the nominal bandwidth: Llama 3.1 8B in Q4_K_M 0.57 (M1 Max, 46.2 tokens/s) and
/// 0.86 (M4, 20.9 tokens/s), Gemma 4 E2B 0.4 (M3 Max).
const MEMORY_LOW: f64 = 0.4;
const MEMORY_HIGH: f64 = 0.9;
/// A mixture reads many small matrices, which keep the memory less busy: Gemma 4 26B-A4B 0.37 on an M3 Max.
const MEMORY_LOW_EXPERTS: f64 = 0.25;
/// Decoding reads at least this part of the memory's bandwidth: what is measured far below it was disturbed.
const MEMORY_LEAST: f64 = 0.2;
/// What conversations usually have, in tokens, where the context holds many more.
const TYPICAL: u32 = 4096;
/// What a model reads per second in memory, in parts of what a smaller one was measured to: context, quants and the fixed
/// work of a layer differ.
const MEASURED_LOW: f64 = 0.8;
/// Faulting a mapping in reads the disk at half the rate of large requests, in our measurement of a mixture larger than
/// memory on Linux: 104 MB per token in 0.17 s, where large requests give 1 GB/s.
const DISK_LOW: f64 = 0.5;
/// Announced to the system, and read into a cache: a mixture of which 40 to 80 % were in memory, on the same disk
/// (docs/benchmarks.md, "Experts on demand").
const DISK_LOW_ADVISE: f64 = 0.7;
const DISK_LOW_CACHE: f64 = 0.9;
/// Layers one after another, in large reads that never stop.
const DISK_LOW_STREAM: f64 = 0.9;
/// Neighboring tokens use some of the same experts: of the misses that chance would give, at most half are spared where
/// routing repeats itself.
const REPEATED: f64 = 0.5;

/// Returns `None` if a bandwidth that the plan needs is unknown.
pub(super) fn estimate(
    model: &ModelAccount,
    plan: &LoadPlan,
    kv: KvCache,
    machine: &Machine,
) -> Option<SpeedEstimate> {
    let memory = machine.memory_bandwidth.filter(|rate| *rate > 0)?;
    let read = TokenReads::for_plan(model, plan, kv);
    let paged = read.paged_weights.saturating_add(read.paged_experts);
    let disk = match machine.disk_bandwidth {
        Some(rate) if rate > 0 => rate,
        // Nothing is read from it.
        _ if paged == 0 => 1,
        _ => return None,
    };
    if read.active == 0 {
        return None;
    }
    let seconds = |bytes: u64, rate: u64, part: f64| bytes as f64 / (rate as f64 * part);
    // The cores may get less than the GPU, or than the chip gives at most.
    let read_by_cores = machine
        .memory_read
        .map_or(1.0, |rate| rate as f64 / memory as f64);
    let published_low = match model.expert_bytes {
        0 => MEMORY_LOW,
        _ => MEMORY_LOW_EXPERTS,
    };
    // The fixed work of a token weighs less in a larger model, so it reads at least as fast.
    let measured = machine
        .decode
        .filter(|decode| decode.bytes_per_token <= read.active)
        .map_or(0.0, |decode| decode.bytes_per_second as f64 / memory as f64);
    let memory_low = (published_low * read_by_cores.min(1.0))
        .max(measured * MEASURED_LOW * published_low / MEMORY_LOW)
        .clamp(MEMORY_LEAST, MEMORY_HIGH);
    let disk_low = match plan.placement {
        Placement::Cache => DISK_LOW_CACHE,
        Placement::Advise => DISK_LOW_ADVISE,
        Placement::Stream => DISK_LOW_STREAM,
        _ => DISK_LOW,
    };
    let slow = seconds(read.active, memory, memory_low) + seconds(paged, disk, disk_low);
    // At best the system finds room for the weights of a dense model, and half of the paged experts repeat.
    let computing = seconds(read.active, memory, MEMORY_HIGH);
    let fast = if plan.placement == Placement::Stream {
        // Reading goes on while layers are computed.
        computing.max(seconds(read.paged_weights, disk, 1.0))
    } else {
        computing + seconds(read.paged_experts, disk, 1.0) * REPEATED
    };
    Some(SpeedEstimate {
        low: 1.0 / slow,
        high: 1.0 / fast,
        active_bytes: read.active,
        paged_bytes: paged,
        measured: None,
        error: None,
    })
}

/// Bytes that one token reads at half the context, or in a usual conversation.
struct TokenReads {
    active: u64,
    /// Of them, from the disk: weights that all tokens read, and experts if their places were drawn by chance.
    paged_weights: u64,
    paged_experts: u64,
}

impl TokenReads {
    fn for_plan(model: &ModelAccount, plan: &LoadPlan, kv: KvCache) -> Self {
        let cache = model.kv.bytes((plan.context_tokens / 2).min(TYPICAL), kv);
        Self {
            active: weights_per_token(model).saturating_add(cache),
            paged_weights: plan
                .bytes(LineKind::PagedWeights)
                .saturating_sub(model.row_read_bytes()),
            paged_experts: proportion(
                experts_per_token(model),
                plan.bytes(LineKind::PagedExperts),
                model.expert_bytes,
            ),
        }
    }
}

fn weights_per_token(model: &ModelAccount) -> u64 {
    let row = |table: u64| table / u64::from(model.vocabulary.max(1));
    let output = match model.tied_output {
        true => model.embedding_bytes,
        false => 0,
    };
    let row = row(model.row_read_bytes());
    sum([model.dense_bytes, output, row, experts_per_token(model)])
}

fn experts_per_token(model: &ModelAccount) -> u64 {
    proportion(
        model.expert_bytes,
        u64::from(model.experts_used.min(model.experts)),
        u64::from(model.experts),
    )
}

impl DecodeRate {
    pub(super) fn least_bandwidth(self) -> u64 {
        (self.bytes_per_second as f64 / MEMORY_HIGH) as u64
    }

    /// Returns the rate of a dense model, in memory, that decodes this many tokens per second with a short context.
    pub fn from_measured(model: &ModelAccount, tokens_per_second: f64) -> Option<Self> {
        let bytes_per_token = weights_per_token(model);
        (model.experts == 0 && tokens_per_second > 0.0 && bytes_per_token > 0).then_some(Self {
            bytes_per_token,
            bytes_per_second: (bytes_per_token as f64 * tokens_per_second) as u64,
        })
    }
}

/// Returns `bytes × of / all`, or all bytes if the number of parts is unknown.
fn proportion(bytes: u64, of: u64, all: u64) -> u64 {
    let product = (u128::from(bytes) * u128::from(of)).checked_div(all.into());
    u64::try_from(product.unwrap_or(bytes.into())).unwrap_or(u64::MAX)
}

impl SpeedEstimate {
    /// Adds the median of this model's last answers, and how far it is outside the range: 0 inside, else the fraction below
    /// `low` (negative) or above `high`.
    #[must_use]
    pub fn with_measured(self, tokens_per_second: f64) -> Self {
        let error = if tokens_per_second < self.low {
            tokens_per_second / self.low - 1.0
        } else if tokens_per_second > self.high {
            tokens_per_second / self.high - 1.0
        } else {
            0.0
        };
        Self {
            measured: Some(tokens_per_second),
            error: Some(error),
            ..self
        }
    }
}
