//! A model larger than memory: a mixture whose experts are read when the router chooses them, or a dense one whose layers
//! are read one after another.
//!
//! llama.cpp maps the model's files; [`tierbar_paging`] lays its own memory over that mapping. At the router's choice of each
//! layer, or before the first use of a dense layer's matrices, evaluation pauses until they are there. What is computed,
//! and in what order, stays the same, unless an [`Approximation`] is asked for.
//!
//! The experts stay with the CPU. On Apple silicon, a GPU could compute them from slots in one shared Metal buffer, if
//! `MUL_MAT_ID` looked up each expert's slot in a table that is written once the router's choice is read back. A Mac would
//! have to show first that a command buffer for each layer costs less than the CPU's slower experts.

mod approximation;
mod hook;
mod places;
mod trace;

use super::model::Model;
pub(super) use hook::{EvaluationHook, evaluating};
use parking_lot::Mutex;
pub(crate) use places::model_files;
use places::{
    PagedParts, create_announcer, lay_over, mapped_weights, mapping_bases, paged_tensors,
    parts_of_layers,
};
use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Error, ModelAccount, paging::Residency, run::Approximation, worker::Memory,
};
use tierbar_paging::{
    Announcer, EvictionPolicy, Layout, Pager, PagerSettings, PagingCost, page_bytes,
};
use trace::ExpertTrace;

/// Reads at once: a disk gives its full rate from four of this size on, and the plateau is wide.
const READS: usize = 8;
/// How long a disk may take for one read: longer than one that has to spin up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long after it was shrunk, and after each step, a cache may grow by the next.
const REGROWTH: Duration = Duration::from_secs(10 * 60);

/// What is kept in memory, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagingMode {
    /// A cache of so many bytes for a mixture's experts.
    Cache { bytes: u64 },
    /// The system's file cache. It is told which experts are read next.
    System,
    /// So many bytes for the layers of a dense model.
    Layers { bytes: u64 },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PagingOptions<'a> {
    pub(crate) keeping: PagingMode,
    pub(crate) approximation: Approximation,
    /// A file to record the router's choices in.
    pub(crate) trace: Option<&'a Path>,
}

/// The weights of a model that come and go.
#[derive(Debug)]
pub(crate) struct PagedWeights {
    paging: PagingBackend,
    /// Experts of each layer; 0 in a dense model.
    all: u32,
    /// Parts that each layer of a dense model is read in.
    parts: BTreeMap<u32, u32>,
    approximation: Approximation,
    changed: Mutex<ApproximationStats>,
    trace: Option<ExpertTrace>,
}

/// What approximating has changed since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ApproximationStats {
    /// Choices of experts.
    pub(crate) choices: u64,
    /// Experts that were chosen, and of them those that were replaced or left out.
    pub(crate) experts: u64,
    pub(crate) changed: u64,
    /// The weight that was lost, where that of one choice is 1.
    pub(crate) lost: f64,
}

impl ApproximationStats {
    fn add(&mut self, used: usize, choice: &approximation::ApproximatedChoice) {
        self.choices += 1;
        self.experts += used as u64;
        self.changed += choice.changed;
        self.lost += choice.lost;
    }

    #[must_use]
    fn since(self, earlier: Self) -> Self {
        Self {
            choices: self.choices - earlier.choices,
            experts: self.experts - earlier.experts,
            changed: self.changed - earlier.changed,
            lost: self.lost - earlier.lost,
        }
    }
}

/// What paging has cost since the start, in time and in quality.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagingReport {
    pub(crate) cost: PagingCost,
    /// Whether the time that was waited is known. Where the system reads, it is not.
    pub(crate) knows_wait: bool,
    /// If choices may be changed.
    pub(crate) changed: Option<ApproximationStats>,
}

impl PagingReport {
    /// What was spent since an earlier moment.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            cost: self.cost.since(&earlier.cost),
            knows_wait: self.knows_wait,
            changed: self
                .changed
                .zip(earlier.changed)
                .map(|(now, earlier)| now.since(earlier)),
        }
    }
}

#[derive(Debug)]
enum PagingBackend {
    Cache {
        pager: Pager,
        /// What lies in memory of its own instead of the mapping: what every token reads, and all experts.
        held_bytes: u64,
        expert_bytes: u64,
        size: Mutex<CacheSize>,
    },
    System(Announcer),
}

#[derive(Debug, Clone, Copy)]
struct CacheSize {
    now: u64,
    planned: u64,
    changed: Instant,
}

impl CacheSize {
    /// What it may grow to: twice as much, at most what was planned, if memory has not been short for a while.
    fn grown(&self, at: Instant) -> Option<u64> {
        let is_due = at.duration_since(self.changed) >= REGROWTH;
        (is_due && self.now < self.planned).then(|| self.now.saturating_mul(2).min(self.planned))
    }
}

impl PagedWeights {
    /// Lays a cache over the model's mapping and reads the weights that every token needs, or locks them in the mapping.
    ///
    /// # Errors
    /// [`Code::ModelUnsupported`] if the model has no parts that can be told apart; [`Code::OverBudget`] if a cache
    /// would be smaller than what one token uses; [`Code::Storage`] if the file cannot be read.
    ///
    /// # Safety
    /// Nothing may compute with the model meanwhile, and later only with a [`EvaluationHook`]. The model must outlive this.
    pub(super) unsafe fn page(
        model: &Model,
        path: &Path,
        account: &ModelAccount,
        manner: PagingOptions<'_>,
    ) -> Result<Self, Error> {
        let unsupported = |why: &dyn std::fmt::Display| {
            let message = format!("{} cannot be paged: {why}", path.display());
            Error::new(Code::ModelUnsupported, message).hint("set the tier's paging to \"mmap\"")
        };
        // Its weights are made of the exponentials, so that a zero would count.
        if manner.approximation == Approximation::Drop && account.architecture == "gpt-oss" {
            let message = format!("{} cannot leave experts out", path.display());
            return Err(Error::new(Code::ModelUnsupported, message)
                .hint("set the tier's `approximate` to \"substitute\" or \"off\""));
        }
        let places = tierbar_gguf::tensors(path)?;
        let mapped = mapped_weights(model);
        let bases =
            mapping_bases(&places, &mapped).ok_or_else(|| unsupported(&"it is not mapped"))?;
        let experts = PagedParts::Experts(account.experts);
        let (what, bytes, policy) = match manner.keeping {
            PagingMode::Layers { bytes } => (PagedParts::Layers, bytes, EvictionPolicy::MostRecent),
            PagingMode::Cache { bytes } => (experts, bytes, EvictionPolicy::LeastLikely),
            PagingMode::System => (experts, 0, EvictionPolicy::LeastLikely),
        };
        let tensors = paged_tensors(&places, &mapped, what);
        let layout = Layout::new(&tensors, page_bytes()).map_err(|error| unsupported(&error))?;
        let paging = if manner.keeping == PagingMode::System {
            // SAFETY: as the caller says.
            PagingBackend::System(unsafe { create_announcer(layout, &bases, path) })
        } else {
            let settings = PagerSettings {
                budget_bytes: bytes.min(layout.expert_bytes()),
                used: account.experts_used,
                policy,
                threads: READS,
                patience: PATIENCE,
            };
            // SAFETY: as the caller says.
            let areas = unsafe { lay_over(&layout, &bases) };
            let areas = areas.map_err(|error| unsupported(&error))?;
            PagingBackend::Cache {
                held_bytes: layout.held_bytes(),
                expert_bytes: layout.expert_bytes(),
                size: Mutex::new(CacheSize {
                    now: settings.budget_bytes,
                    planned: settings.budget_bytes,
                    changed: Instant::now(),
                }),
                pager: Pager::start(layout, areas, model_files(path), settings)?,
            }
        };
        let (all, parts) = match what {
            PagedParts::Experts(all) => (all, BTreeMap::new()),
            PagedParts::Layers => (0, parts_of_layers(&places)),
        };
        Ok(Self {
            paging,
            all,
            parts,
            approximation: manner.approximation,
            changed: Mutex::default(),
            trace: manner.trace.map(ExpertTrace::create).transpose()?,
        })
    }

    /// Whether layers come and go, and not experts.
    pub(crate) fn is_dense(&self) -> bool {
        self.all == 0
    }

    /// Returns the memory of a context of this model, where `mapped` counts all weights in the file's mapping.
    pub(super) fn memory(&self, mapped: Memory) -> Memory {
        let PagingBackend::Cache {
            held_bytes,
            expert_bytes,
            size,
            ..
        } = &self.paging
        else {
            return mapped;
        };
        let gone = held_bytes + expert_bytes;
        let own = held_bytes + size.lock().now;
        Memory {
            weights_mapped_bytes: mapped.weights_mapped_bytes.saturating_sub(gone),
            weights_bytes: mapped.weights_bytes + own,
            ..mapped
        }
    }

    /// Gives half of a cache back, or less where the rest would be too small, and returns the bytes.
    pub(crate) fn shrink(&self) -> u64 {
        let PagingBackend::Cache { pager, size, .. } = &self.paging else {
            // The system takes what it needs by itself.
            return 0;
        };
        let mut size = size.lock();
        let before = size.now;
        size.now = pager.resize(before / 2).min(before);
        size.changed = Instant::now();
        before - size.now
    }

    /// Lets a cache grow again that has been shrunk, step by step.
    pub(crate) fn regrow(&self) {
        let PagingBackend::Cache { pager, size, .. } = &self.paging else {
            return;
        };
        let mut size = size.lock();
        let now = Instant::now();
        if let Some(bytes) = size.grown(now) {
            size.now = pager.resize(bytes);
            size.changed = now;
        }
    }

    /// Returns what is in memory at this moment, and what paging has cost since the start.
    pub(crate) fn residency(&self) -> Residency {
        let picture = match &self.paging {
            PagingBackend::Cache { pager, .. } => pager.picture(),
            PagingBackend::System(announcer) => announcer.picture(),
        };
        let cost = self.spent().cost;
        Residency {
            layers: picture.layers,
            held_bytes: picture.held_bytes,
            all_bytes: picture.all_bytes,
            // What was still being read was not in memory when it was needed.
            hits: cost.stats.hits - cost.stats.ahead,
            misses: cost.stats.misses + cost.stats.ahead,
            read_bytes: cost.read_bytes,
            waited_ms: cost.waited.as_secs_f64() * 1e3,
        }
    }

    pub(crate) fn spent(&self) -> PagingReport {
        let approximates = self.approximation != Approximation::Off;
        PagingReport {
            cost: match &self.paging {
                PagingBackend::Cache { pager, .. } => pager.cost(),
                PagingBackend::System(announcer) => announcer.cost(),
            },
            knows_wait: matches!(self.paging, PagingBackend::Cache { .. }),
            changed: approximates.then(|| *self.changed.lock()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        llama::backend::copying,
        testing::{load, model},
    };
    use llama_cpp_sys_2 as sys;

    #[test]
    fn a_cache_that_was_shrunk_grows_again_in_steps() {
        let changed = Instant::now();
        let size = |now| CacheSize {
            now,
            planned: 100,
            changed,
        };
        let later = changed + REGROWTH;
        assert_eq!(size(30).grown(changed), None);
        assert_eq!(size(30).grown(later), Some(60));
        assert_eq!(size(60).grown(later), Some(100));
        assert_eq!(size(100).grown(later), None);
    }

    #[test]
    fn a_device_can_be_made_to_copy_its_weights() {
        let mapped = mapped_weights(&model());
        assert!(mapped.contains_key("blk.0.ffn_up.weight"), "{mapped:?}");
        // The CPU stands for a GPU that shares the memory: both can use a file's mapping.
        let copied = copying(sys::GGML_BACKEND_DEVICE_TYPE_CPU, load);
        assert_eq!(mapped_weights(&copied), BTreeMap::new());
        assert_eq!(mapped_weights(&load()).len(), mapped.len());
    }
}
