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
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tierbar_core::{Code, Error, ModelAccount, worker::Memory};
use tierbar_gguf::TensorPlace;
use tierbar_paging::{Area, Cost, Kind, Layout, Pager, Policy, Settings, Tensor, page_bytes};

/// Reads at once: a disk gives its full rate from four of this size on, and the plateau is wide.
const READS: usize = 8;
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

/// The experts of a model, in a cache of fixed size.
#[derive(Debug)]
pub(crate) struct Experts {
    pager: Pager,
    /// Of each layer, and those that a token uses.
    all: u32,
    used: u32,
    /// What lies in memory of its own instead of the mapping: what every token reads, and all experts.
    held_bytes: u64,
    expert_bytes: u64,
    budget_bytes: AtomicU64,
}

impl Experts {
    /// Lays the cache over the model's mapping, and reads the weights that every token needs.
    ///
    /// # Errors
    /// [`Code::ModelUnsupported`] if the model has no experts that can be told apart; [`Code::OverBudget`] if the cache
    /// would be smaller than what one token uses; [`Code::Storage`] if the file cannot be read.
    ///
    /// # Safety
    /// Nothing may compute with the model meanwhile, and later only with [`Hook`] at its choices. The model must outlive
    /// this.
    pub(super) unsafe fn page(
        model: &Model,
        path: &Path,
        account: &ModelAccount,
        budget_bytes: u64,
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
        let mut areas = Vec::new();
        for (&part, &base) in &bases {
            for run in layout.areas(part.into()) {
                let start = usize::try_from(run.start).map_err(|error| unsupported(&error))?;
                // SAFETY: the run lies in the mapping of this file, which the model keeps until it is freed, after this.
                // Nothing computes meanwhile, as the caller says, and later only with what has been read.
                let area = unsafe { Area::lay_over(part.into(), run, base + start) };
                areas.push(area.map_err(|error| unsupported(&error))?);
            }
        }
        let (held_bytes, expert_bytes) = (layout.held_bytes(), layout.expert_bytes());
        let budget_bytes = budget_bytes.min(expert_bytes);
        let settings = Settings {
            budget_bytes,
            used: account.experts_used,
            policy: POLICY,
            threads: READS,
        };
        let pager = Pager::start(layout, areas, files(path), settings)?;
        Ok(Self {
            pager,
            all: account.experts,
            used: account.experts_used,
            held_bytes,
            expert_bytes,
            budget_bytes: budget_bytes.into(),
        })
    }

    /// Returns the memory of a context of this model, where `mapped` counts all weights in the file's mapping.
    pub(super) fn memory(&self, mapped: Memory) -> Memory {
        let gone = self.held_bytes + self.expert_bytes;
        let own = self.held_bytes + self.budget_bytes.load(Ordering::Relaxed);
        Memory {
            weights_mapped_bytes: mapped.weights_mapped_bytes.saturating_sub(gone),
            weights_bytes: mapped.weights_bytes + own,
            ..mapped
        }
    }

    /// Gives half of the cache back, or less where the rest would be too small, and returns the bytes.
    pub(crate) fn shrink(&self) -> u64 {
        let before = self.budget_bytes.load(Ordering::Relaxed);
        let after = self.pager.resize(before / 2).min(before);
        self.budget_bytes.store(after, Ordering::Relaxed);
        before - after
    }

    pub(crate) fn cost(&self) -> Cost {
        self.pager.cost()
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
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    /// Has the chosen experts in memory. If that fails, stops the evaluation; if it is interrupted, it ends by itself.
    fn provide(&self, layer: u32, chosen: &[u32], rows: u64) {
        let Experts {
            pager, all, used, ..
        } = &*self.experts;
        // So many rows use nearly all of the next layer, too.
        let many = rows * u64::from(*used) >= u64::from(*all);
        if let Err(error) = pager.need(layer, chosen, many, &|| self.interrupt.is_due()) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = Some(error);
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
