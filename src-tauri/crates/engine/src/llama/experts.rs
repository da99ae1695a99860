//! A mixture of experts whose experts are read when the router chooses them.
//!
//! llama.cpp maps the model's files; [`tierbar_paging`] lays its own memory over that mapping. At the router's choice of each
//! layer (`ffn_moe_topk-N` in llama.cpp's graph), evaluation pauses until the chosen experts are there. What is computed,
//! and in what order, stays the same.

use super::{context::Interrupt, model::Model};
use llama_cpp_sys_2 as sys;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, c_char, c_void},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error, ModelAccount, worker::Memory};
use tierbar_gguf::TensorPlace;
use tierbar_paging::{
    Announcer, Area, Cost, Kind, Layout, Mapped, Pager, Policy, Settings, Tensor, page_bytes,
};

/// Reads at once: a disk gives its full rate from four of this size on, and the plateau is wide.
const READS: usize = 8;
/// How long a disk may take for one read: longer than one that has to spin up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long after it was shrunk, and after each step, a cache may grow by the next.
const REGROWTH: Duration = Duration::from_secs(10 * 60);
/// Routers repeat themselves: what is used often stays. On a mixture made of SmolLM2, with 40 and 60 % of the file in memory, a
/// token reads 0.77 and 0.87 of the bytes that it reads if the expert used longest ago goes (96 tokens, `make bench-paging`).
/// Half-lives from 16 to 1024 tokens differ by at most 4 %.
const POLICY: Policy = Policy::LeastFrequent {
    half_life_tokens: 64.0,
};
/// llama.cpp's name of the router's choice, before the number of the layer.
const CHOICE: &str = "ffn_moe_topk-";

unsafe extern "C" {
    fn tierbar_each_mapped_weight(
        model: *const sys::llama_model,
        each: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
        data: *mut c_void,
    );
}

/// Who keeps experts in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// A cache of so many bytes.
    Cache { bytes: u64 },
    /// The system's file cache. It is told what is read next.
    System,
}

/// The experts of a model that is larger than memory.
#[derive(Debug)]
pub(crate) struct Experts {
    paging: Paging,
    /// Of each layer, and those that a token uses.
    all: u32,
    used: u32,
}

#[derive(Debug)]
enum Paging {
    Cache {
        pager: Pager,
        /// What lies in memory of its own instead of the mapping: what every token reads, and all experts.
        held_bytes: u64,
        expert_bytes: u64,
        size: Mutex<Size>,
    },
    System(Announcer),
}

/// The size of a cache.
#[derive(Debug, Clone, Copy)]
struct Size {
    now: u64,
    planned: u64,
    /// When it was changed last.
    changed: Instant,
}

impl Size {
    /// What it may grow to: twice as much, at most what was planned, if memory has not been short for a while.
    fn grown(&self, at: Instant) -> Option<u64> {
        let is_due = at.duration_since(self.changed) >= REGROWTH;
        (is_due && self.now < self.planned).then(|| self.now.saturating_mul(2).min(self.planned))
    }
}

impl Experts {
    /// Lays a cache over the model's mapping and reads the weights that every token needs, or locks them in the mapping.
    ///
    /// # Errors
    /// [`Code::ModelUnsupported`] if the model has no experts that can be told apart; [`Code::OverBudget`] if a cache
    /// would be smaller than what one token uses; [`Code::Storage`] if the file cannot be read.
    ///
    /// # Safety
    /// Nothing may compute with the model meanwhile, and later only with [`Hook`] at its choices. The model must outlive
    /// this.
    pub(super) unsafe fn page(
        model: &Model,
        path: &Path,
        account: &ModelAccount,
        keeping: Keeping,
    ) -> Result<Self, Error> {
        let unsupported = |why: &dyn std::fmt::Display| {
            Error::new(
                Code::ModelUnsupported,
                format!("the experts of {} cannot be paged: {why}", path.display()),
            )
            .hint("set the tier's paging to \"mmap\"")
        };
        let places = tierbar_gguf::tensors(path)?;
        let mapped = mapped_weights(model);
        let bases = bases(&places, &mapped).ok_or_else(|| unsupported(&"it is not mapped"))?;
        let tensors = tensors(&places, &mapped, account.experts);
        let layout = Layout::new(&tensors, page_bytes()).map_err(|error| unsupported(&error))?;
        let paging = match keeping {
            Keeping::System => {
                // SAFETY: as the caller says.
                Paging::System(unsafe { announcer(layout, &bases, path) })
            }
            Keeping::Cache { bytes } => {
                let settings = Settings {
                    budget_bytes: bytes.min(layout.expert_bytes()),
                    used: account.experts_used,
                    policy: POLICY,
                    threads: READS,
                    patience: PATIENCE,
                };
                // SAFETY: as the caller says.
                let areas = unsafe { lay_over(&layout, &bases) };
                let areas = areas.map_err(|error| unsupported(&error))?;
                Paging::Cache {
                    held_bytes: layout.held_bytes(),
                    expert_bytes: layout.expert_bytes(),
                    size: Mutex::new(Size {
                        now: settings.budget_bytes,
                        planned: settings.budget_bytes,
                        changed: Instant::now(),
                    }),
                    pager: Pager::start(layout, areas, files(path), settings)?,
                }
            }
        };
        Ok(Self {
            paging,
            all: account.experts,
            used: account.experts_used,
        })
    }

    /// Returns the memory of a context of this model, where `mapped` counts all weights in the file's mapping.
    pub(super) fn memory(&self, mapped: Memory) -> Memory {
        let Paging::Cache {
            held_bytes,
            expert_bytes,
            size,
            ..
        } = &self.paging
        else {
            return mapped;
        };
        let gone = held_bytes + expert_bytes;
        let own = held_bytes + lock(size).now;
        Memory {
            weights_mapped_bytes: mapped.weights_mapped_bytes.saturating_sub(gone),
            weights_bytes: mapped.weights_bytes + own,
            ..mapped
        }
    }

    /// Gives half of a cache back, or less where the rest would be too small, and returns the bytes.
    pub(crate) fn shrink(&self) -> u64 {
        let Paging::Cache { pager, size, .. } = &self.paging else {
            // The system takes what it needs by itself.
            return 0;
        };
        let mut size = lock(size);
        let before = size.now;
        size.now = pager.resize(before / 2).min(before);
        size.changed = Instant::now();
        before - size.now
    }

    /// Lets a cache grow again that has been shrunk, step by step.
    pub(crate) fn regrow(&self) {
        let Paging::Cache { pager, size, .. } = &self.paging else {
            return;
        };
        let mut size = lock(size);
        let now = Instant::now();
        if let Some(bytes) = size.grown(now) {
            size.now = pager.resize(bytes);
            size.changed = now;
        }
    }

    pub(crate) fn cost(&self) -> Cost {
        match &self.paging {
            Paging::Cache { pager, .. } => pager.cost(),
            Paging::System(announcer) => announcer.cost(),
        }
    }
}

/// What llama.cpp calls at the router's choices of one context.
#[derive(Debug)]
pub(super) struct Hook {
    experts: Arc<Experts>,
    interrupt: Arc<Interrupt>,
    failure: Mutex<Option<Error>>,
}

impl Hook {
    pub(super) fn new(experts: Arc<Experts>, interrupt: Arc<Interrupt>) -> Self {
        Self {
            experts,
            interrupt,
            failure: Mutex::default(),
        }
    }

    /// Why the last evaluation was stopped, if it was because of its experts.
    pub(super) fn take_failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }

    /// Has the chosen experts in memory. If that fails, stops the evaluation; if it is interrupted, it ends by itself.
    fn provide(&self, layer: u32, chosen: &[u32], rows: u64) {
        let Experts { paging, all, used } = &*self.experts;
        // So many rows use nearly all of the next layer, too.
        let many = rows * u64::from(*used) >= u64::from(*all);
        let provided = match paging {
            Paging::Cache { pager, .. } => {
                let provided = pager.need(layer, chosen, many, &|| self.interrupt.is_due());
                provided.map(drop)
            }
            Paging::System(announcer) => announcer.need(layer, chosen, many),
        };
        if let Err(error) = provided {
            *lock(&self.failure) = Some(error);
            self.interrupt.stop();
        }
    }
}

/// ggml calls this for each node: first whether its result is wanted, then with it.
///
/// # Safety
/// The tensor must be live, and `data` a [`Hook`].
pub(super) unsafe extern "C" fn chosen(
    tensor: *mut sys::ggml_tensor,
    ask: bool,
    data: *mut c_void,
) -> bool {
    // SAFETY: as the caller says; ggml ends every name with a zero.
    let name = unsafe { CStr::from_ptr((*tensor).name.as_ptr()) };
    let number = name.to_bytes().strip_prefix(CHOICE.as_bytes());
    let layer = number.and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
    let Some(layer) = layer else {
        // Wanted by nobody, so that it is computed together with the next.
        return !ask;
    };
    if !ask {
        // SAFETY: as the caller says; the result of the node is there.
        let (experts, rows) = unsafe { choice(tensor) };
        // SAFETY: as the caller says.
        unsafe { &*data.cast::<Hook>() }.provide(layer, &experts, rows);
    }
    true
}

/// Returns the different experts in a choice, and its rows.
///
/// # Safety
/// The tensor must be live, and hold numbers of 32 bits.
unsafe fn choice(tensor: *const sys::ggml_tensor) -> (Vec<u32>, u64) {
    // SAFETY: as the caller says.
    let (shape, stride) = unsafe { ((*tensor).ne, (*tensor).nb[1]) };
    let [used, rows, ..] = shape.map(|side| usize::try_from(side).unwrap_or(0));
    let mut row = vec![0_i32; used];
    let mut experts = BTreeSet::new();
    for at in 0..rows {
        // SAFETY: a row has as many numbers, one behind the other, and rows are so far apart.
        unsafe {
            let bytes = used * size_of::<i32>();
            sys::ggml_backend_tensor_get(tensor, row.as_mut_ptr().cast(), at * stride, bytes);
        }
        experts.extend(row.iter().filter_map(|&expert| u32::try_from(expert).ok()));
    }
    (experts.into_iter().collect(), rows as u64)
}

/// Lays empty memory over the mappings.
///
/// # Safety
/// These are the mappings of the model's files, which outlive the areas; whoever computes with them reads what has been read.
unsafe fn lay_over(layout: &Layout, bases: &BTreeMap<u16, usize>) -> io::Result<Vec<Area>> {
    let mut areas = Vec::new();
    for (&part, &base) in bases {
        for run in layout.areas(part.into()) {
            let start = usize::try_from(run.start).map_err(io::Error::other)?;
            // SAFETY: as the caller says; the run lies in the mapping of this file.
            areas.push(unsafe { Area::lay_over(part.into(), run, base + start)? });
        }
    }
    Ok(areas)
}

/// Announces what lies in the mappings.
///
/// # Safety
/// These are the mappings of the model's files, which outlive the announcer.
unsafe fn announcer(layout: Layout, bases: &BTreeMap<u16, usize>, path: &Path) -> Announcer {
    let mapping = |(part, file): (u16, PathBuf)| {
        let bytes = fs::metadata(file).map_or(0, |file| file.len());
        let (base, bytes) = bases.get(&part).map_or((0, 0), |&base| (base, bytes));
        // SAFETY: as the caller says; of a file without a mapping, nothing is announced.
        unsafe { Mapped::new(base, bytes) }
    };
    let mappings = (0..).zip(files(path)).map(mapping);
    Announcer::start(layout, mappings.collect())
}

/// The addresses of the weights in files' mappings that the CPU reads, by name.
fn mapped_weights(model: &Model) -> BTreeMap<String, usize> {
    unsafe extern "C" fn each(data: *mut c_void, name: *const c_char, address: usize) {
        // SAFETY: the map below, and a name that ends with a zero.
        unsafe {
            let name = CStr::from_ptr(name).to_string_lossy().into_owned();
            (*data.cast::<BTreeMap<String, usize>>()).insert(name, address);
        }
    }
    let mut weights = BTreeMap::<String, usize>::new();
    // SAFETY: the model is live, and the map outlives the call.
    unsafe {
        tierbar_each_mapped_weight(model.raw.as_ptr(), each, (&raw mut weights).cast());
    }
    weights
}

/// The addresses of the first byte of each file; `None` if the weights do not lie as in the files.
fn bases(places: &[TensorPlace], mapped: &BTreeMap<String, usize>) -> Option<BTreeMap<u16, usize>> {
    let mut bases = BTreeMap::new();
    for place in places {
        let Some(address) = mapped.get(&place.name) else {
            continue;
        };
        let base = address.checked_sub(usize::try_from(place.offset).ok()?)?;
        if *bases.entry(place.part).or_insert(base) != base {
            return None;
        }
    }
    (!bases.is_empty()).then_some(bases)
}

/// What the pager has to know of each tensor.
fn tensors(places: &[TensorPlace], mapped: &BTreeMap<String, usize>, experts: u32) -> Vec<Tensor> {
    let has_output = places.iter().any(|place| place.name == "output.weight");
    let kind = |place: &TensorPlace| match (place.name.as_str(), layer(&place.name)) {
        (name, _) if !mapped.contains_key(name) => Kind::Mapped,
        // A token reads one row of these.
        ("per_layer_token_embd.weight", _) => Kind::Mapped,
        ("token_embd.weight", _) if has_output => Kind::Mapped,
        (_, Some(layer)) if place.is_expert => Kind::Experts { layer, experts },
        _ => Kind::Dense,
    };
    let tensor = |place: &TensorPlace| Tensor {
        file: usize::from(place.part),
        offset: place.offset,
        bytes: place.bytes,
        kind: kind(place),
    };
    places.iter().map(tensor).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number in `blk.N.`.
fn layer(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}

/// All files of a model, of which this is the first.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    let name = path.to_string_lossy();
    tierbar_gguf::split_of(&name).map_or_else(
        || vec![path.to_owned()],
        |split| split.parts().map(PathBuf::from).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        llama::backend::copying,
        testing::{load, model},
    };

    #[test]
    fn a_cache_that_was_shrunk_grows_again_in_steps() {
        let changed = Instant::now();
        let size = |now| Size {
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
