//! Where a model's tensors lie: in its files, and in the mappings of them.

use crate::llama::model::Model;
use llama_cpp_sys_2 as sys;
use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_void},
    fs, io,
    path::{Path, PathBuf},
};
use tierbar_gguf::Tensor as TensorPlace;
use tierbar_paging::{Announcer, Layout, MappedFile, MemoryArea, Tensor, TensorKind};

/// A dense layer's matrices are read in parts of about so many bytes, several at once.
const PART: u64 = 1 << 20;

unsafe extern "C" {
    fn tierbar_each_mapped_weight(
        model: *const sys::llama_model,
        each: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
        data: *mut c_void,
    );
}

/// What comes and goes while a model is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PagedParts {
    /// The experts of a mixture, of which each layer has as many.
    Experts(u32),
    /// The feed-forward matrices of a dense model.
    Layers,
}

/// Lays empty memory over the mappings.
///
/// # Safety
/// These are the mappings of the model's files, which outlive the areas; computations read from the areas what has been read into them.
pub(super) unsafe fn lay_over(
    layout: &Layout,
    bases: &BTreeMap<u16, usize>,
) -> io::Result<Vec<MemoryArea>> {
    let mut areas = Vec::new();
    for (&part, &base) in bases {
        for run in layout.areas(part.into()) {
            let start = usize::try_from(run.start).map_err(io::Error::other)?;
            // SAFETY: as the caller says; the run lies in the mapping of this file.
            areas.push(unsafe { MemoryArea::lay_over(part.into(), run, base + start)? });
        }
    }
    Ok(areas)
}

/// Announces what lies in the mappings.
///
/// # Safety
/// These are the mappings of the model's files, which outlive the announcer.
pub(super) unsafe fn create_announcer(
    layout: Layout,
    bases: &BTreeMap<u16, usize>,
    path: &Path,
) -> Announcer {
    let mapping = |(part, file): (u16, PathBuf)| {
        let bytes = fs::metadata(file).map_or(0, |file| file.len());
        let (base, bytes) = bases.get(&part).map_or((0, 0), |&base| (base, bytes));
        // SAFETY: as the caller says; of a file without a mapping, nothing is announced.
        unsafe { MappedFile::new(base, bytes) }
    };
    let mappings = (0..).zip(model_files(path)).map(mapping);
    Announcer::start(layout, mappings.collect())
}

/// The addresses of the weights in files' mappings that the CPU reads, by name.
pub(super) fn mapped_weights(model: &Model) -> BTreeMap<String, usize> {
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
pub(super) fn mapping_bases(
    places: &[TensorPlace],
    mapped: &BTreeMap<String, usize>,
) -> Option<BTreeMap<u16, usize>> {
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
pub(super) fn paged_tensors(
    places: &[TensorPlace],
    mapped: &BTreeMap<String, usize>,
    parts: PagedParts,
) -> Vec<Tensor> {
    let has_output = places.iter().any(|place| place.name == "output.weight");
    let of_layers = match parts {
        PagedParts::Experts(_) => BTreeMap::new(),
        PagedParts::Layers => parts_of_layers(places),
    };
    let kind = |place: &TensorPlace| match (place.name.as_str(), layer_of_tensor(&place.name)) {
        (name, _) if !mapped.contains_key(name) => TensorKind::Mapped,
        // A token reads one row of these.
        ("per_layer_token_embd.weight", _) => TensorKind::Mapped,
        ("token_embd.weight", _) if has_output => TensorKind::Mapped,
        (name, Some(layer)) => match parts {
            // Their biases and scales are a few numbers.
            PagedParts::Experts(experts) if place.is_expert() && name.ends_with(".weight") => {
                TensorKind::Experts { layer, experts }
            }
            PagedParts::Layers if feed_forward_matrix(name).is_some() => of_layers
                .get(&layer)
                .map_or(TensorKind::Dense, |&experts| TensorKind::Experts {
                    layer,
                    experts,
                }),
            _ => TensorKind::Dense,
        },
        _ => TensorKind::Dense,
    };
    let tensor = |place: &TensorPlace| Tensor {
        file: usize::from(place.part),
        offset: place.offset,
        bytes: place.bytes,
        kind: kind(place),
    };
    places.iter().map(tensor).collect()
}

/// How many parts of equal size the matrices of each dense layer are read in.
pub(super) fn parts_of_layers(places: &[TensorPlace]) -> BTreeMap<u32, u32> {
    let mut parts = BTreeMap::new();
    for place in places {
        let Some((layer, _)) = feed_forward_matrix(&place.name) else {
            continue;
        };
        let fits = |count: &u32| {
            let count = u64::from(*count);
            place.bytes.is_multiple_of(count) && (count == 1 || place.bytes / count >= PART)
        };
        let most = (0..=8).rev().map(|power| 1 << power).find(fits);
        let count = parts.entry(layer).or_insert(u32::MAX);
        *count = (*count).min(most.unwrap_or(1));
    }
    parts
}

/// The layer and the matrix in `blk.N.ffn_up.weight`, of the matrices that a dense layer spends most of its bytes on.
pub(super) fn feed_forward_matrix(name: &str) -> Option<(u32, &str)> {
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let matrix = rest.strip_prefix("ffn_")?.strip_suffix(".weight")?;
    let is_matrix = ["gate", "up", "down"].contains(&matrix);
    Some((number.parse().ok().filter(|_| is_matrix)?, matrix))
}

/// The number in `blk.N.`.
fn layer_of_tensor(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}

/// All files of a model, of which this is the first.
pub(crate) fn model_files(path: &Path) -> Vec<PathBuf> {
    let name = path.to_string_lossy();
    tierbar_gguf::split_of(&name).map_or_else(
        || vec![path.to_owned()],
        |split| split.parts().map(PathBuf::from).collect(),
    )
}
