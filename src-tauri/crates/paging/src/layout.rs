//! Which pages of a model's files belong to which expert.
//!
//! A matrix of an expert (a *slice*) seldom begins where a page does, so two slices share a page at most of their borders.
//! What belongs to one slice alone comes and goes with its expert; a shared page stays while either of them is held; a
//! page with bytes of any other tensor that is held always stays.

use crate::places::{PageRange, gaps_between, merge_ranges};
use std::{collections::BTreeMap, ops::Range};

/// A tensor's place in one of the model's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The number of the file.
    pub file: usize,
    /// Bytes from the start of the file.
    pub offset: u64,
    pub bytes: u64,
    pub kind: TensorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorKind {
    /// One matrix of each expert of a layer, one behind the other.
    Experts { layer: u32, experts: u32 },
    /// Every token reads it.
    Dense,
    /// It stays in the file's mapping: a token reads one row of it, or another device has it.
    Mapped,
}

/// Why a model's experts cannot be paged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("the model has no experts")]
    NoExperts,
    /// The bytes of a layer's tensor are no multiple of the number of its experts.
    #[error("the experts of layer {layer} are not of one size")]
    Uneven { layer: u32 },
    #[error("the tensors of layer {layer} have different numbers of experts")]
    Contradictory { layer: u32 },
    /// An expert's matrix is smaller than two pages, so that reading it would mostly read its neighbours.
    #[error("a matrix of an expert has only {bytes} bytes")]
    TooSmall { bytes: u64 },
}

/// The number of an expert of a layer, counted over all layers.
pub(crate) type ExpertIndex = u32;

/// The place of one matrix of one expert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpertSlice {
    pub(crate) file: usize,
    /// All pages that have a byte of it.
    pub(crate) pages: PageRange,
    /// Those that have bytes of no other tensor or slice.
    pub(crate) own: PageRange,
    /// The last byte of it, exclusive.
    pub(crate) end: u64,
    /// The slices that share its first and its last page.
    pub(crate) before: Option<SharedPage>,
    pub(crate) after: Option<SharedPage>,
}

/// A page that belongs to two slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedPage {
    pub(crate) page: u64,
    /// The other slice's expert.
    pub(crate) unit: ExpertIndex,
}

/// The pages of all experts, and of what is always held.
#[derive(Debug)]
pub struct Layout {
    /// Bytes of a page.
    pub(crate) page: u64,
    /// The units of each layer that has experts.
    layers: BTreeMap<u32, Range<ExpertIndex>>,
    /// By unit.
    slices: Vec<Vec<ExpertSlice>>,
    /// By unit, with shared pages counted for each of their two.
    pub(crate) pages: Vec<u64>,
    /// By file: runs that memory can be laid over, and of them the pages that are always held.
    areas: Vec<Vec<PageRange>>,
    held: Vec<Vec<PageRange>>,
}

impl Layout {
    /// Lays out the tensors of files that are mapped from their first byte on, in pages of `page` bytes.
    ///
    /// # Errors
    /// [`LayoutError`] if the experts cannot be told apart by pages.
    pub fn new(tensors: &[Tensor], page: u64) -> Result<Self, LayoutError> {
        let layers = layer_units(tensors)?;
        let units = layers.values().map(|units| units.end).max();
        let units = units.unwrap_or(0) as usize;
        if units == 0 {
            return Err(LayoutError::NoExperts);
        }
        let mut parts = place_slices(tensors, &layers, page)?;
        parts.sort_by_key(|part| (part.file, part.offset));

        let files = tensors.iter().map(|tensor| tensor.file + 1).max();
        let of_kind = |file: usize, kinds: fn(TensorKind) -> bool| {
            let in_file = tensors.iter().filter(|tensor| tensor.file == file);
            let touched = in_file.filter(|tensor| kinds(tensor.kind) && tensor.bytes > 0);
            merge_ranges(
                touched
                    .map(|tensor| pages_around(tensor.offset, tensor.bytes, page))
                    .collect(),
            )
        };
        let (mut areas, mut held, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for file in 0..files.unwrap_or(0) {
            let mapped = of_kind(file, |kind| kind == TensorKind::Mapped);
            let dense = of_kind(file, |kind| kind == TensorKind::Dense);
            let all = of_kind(file, |kind| kind != TensorKind::Mapped);
            areas.push(gaps_between(&all, &mapped));
            held.push(gaps_between(&dense, &mapped));
            fixed.push(merge_ranges(dense.into_iter().chain(mapped).collect()));
        }

        let mut by_unit = vec![Vec::new(); units];
        for (at, part) in parts.iter().enumerate() {
            let next_to = |other: Option<&UnplacedSlice>, page: u64, of: fn(&PageRange) -> u64| {
                other
                    .filter(|other| other.file == part.file && of(&other.pages) == page)
                    .map(|other| SharedPage {
                        page,
                        unit: other.unit,
                    })
            };
            let (first, last) = (part.pages.start, part.pages.end - 1);
            let previous = at.checked_sub(1).and_then(|at| parts.get(at));
            let before = next_to(previous, first, |pages| pages.end - 1);
            let after = next_to(parts.get(at + 1), last, |pages| pages.start);
            let is_fixed = |page| fixed[part.file].iter().any(|run| run.contains(&page));
            let start = first + u64::from(before.is_some() || is_fixed(first));
            let end = last + 1 - u64::from(after.is_some() || is_fixed(last));
            by_unit[part.unit as usize].push(ExpertSlice {
                file: part.file,
                pages: part.pages.clone(),
                own: start..end.max(start),
                end: part.offset + part.bytes,
                before: before.filter(|_| !is_fixed(first)),
                after: after.filter(|_| !is_fixed(last)),
            });
        }
        let cost = |slice: &ExpertSlice| {
            let own = slice.own.end - slice.own.start;
            own + u64::from(slice.before.is_some()) + u64::from(slice.after.is_some())
        };
        Ok(Self {
            page,
            layers,
            pages: by_unit
                .iter()
                .map(|slices: &Vec<ExpertSlice>| slices.iter().map(cost).sum())
                .collect(),
            slices: by_unit,
            areas,
            held,
        })
    }

    /// Returns the least that a cache must hold, in bytes: two whole layers, of which one is computed with while the next
    /// is read, and what one token uses of all layers. A cache that is smaller than that cycle never holds what comes
    /// next.
    pub fn least_bytes(&self, experts_used: u32) -> u64 {
        let (mut largest, mut cycle) = (0u64, 0u64);
        for units in self.layers.values() {
            let pages: u64 = units.clone().map(|unit| self.pages[unit as usize]).sum();
            let experts = units.end - units.start;
            let used = u64::from(experts_used.min(experts));
            largest = pages.max(largest);
            cycle += (pages * used).div_ceil(experts.max(1).into());
        }
        (2 * largest).max(cycle) * self.page
    }

    /// Returns the bytes of all experts.
    pub fn expert_bytes(&self) -> u64 {
        self.pages.iter().sum::<u64>() * self.page
    }

    /// Returns the bytes that are always held.
    pub fn held_bytes(&self) -> u64 {
        let runs = self.held.iter().flatten();
        runs.map(|run| run.end - run.start).sum::<u64>() * self.page
    }

    /// Returns the runs of pages of a file that memory is laid over, in bytes from its start.
    pub fn areas(&self, file: usize) -> Vec<Range<u64>> {
        let runs = self.areas.get(file).into_iter().flatten();
        runs.map(|run| self.bytes_of(run)).collect()
    }

    /// Returns a run of pages in bytes from the file's start.
    pub(crate) fn bytes_of(&self, run: &PageRange) -> Range<u64> {
        run.start * self.page..run.end * self.page
    }

    pub(crate) fn files(&self) -> usize {
        self.areas.len()
    }

    pub(crate) fn held(&self, file: usize) -> &[PageRange] {
        &self.held[file]
    }

    /// The units of each layer that has experts, in order.
    pub(crate) fn layers(&self) -> impl Iterator<Item = Range<ExpertIndex>> {
        self.layers.values().cloned()
    }

    /// The number of units.
    pub(crate) fn units(&self) -> ExpertIndex {
        u32::try_from(self.slices.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn slices(&self, unit: ExpertIndex) -> &[ExpertSlice] {
        &self.slices[unit as usize]
    }

    /// The unit of an expert; `None` if the layer has no such one.
    pub(crate) fn unit(&self, layer: u32, expert: u32) -> Option<ExpertIndex> {
        self.layers.get(&layer)?.clone().nth(expert as usize)
    }

    /// All units of the next layer that has experts; after the last, of the first if the layers form a `circle`.
    pub(crate) fn next_layer(&self, layer: u32, circle: bool) -> Range<ExpertIndex> {
        let next = self.layers.range(layer.saturating_add(1)..).next();
        let first = self.layers.first_key_value().filter(|_| circle);
        next.or(first).map_or(0..0, |(_, units)| units.clone())
    }
}

/// A slice before its neighbours are known.
struct UnplacedSlice {
    file: usize,
    offset: u64,
    bytes: u64,
    pages: PageRange,
    unit: ExpertIndex,
}

/// All pages that have a byte of these.
fn pages_around(offset: u64, bytes: u64, page: u64) -> PageRange {
    offset / page..(offset + bytes).div_ceil(page)
}

/// Numbers the experts, layer by layer.
fn layer_units(tensors: &[Tensor]) -> Result<BTreeMap<u32, Range<ExpertIndex>>, LayoutError> {
    let mut counts = BTreeMap::new();
    for tensor in tensors {
        if let TensorKind::Experts { layer, experts } = tensor.kind
            && *counts.entry(layer).or_insert(experts) != experts
        {
            return Err(LayoutError::Contradictory { layer });
        }
    }
    let mut first = 0;
    let numbered = counts.into_iter().map(|(layer, experts)| {
        let units = first..first + experts;
        first = units.end;
        (layer, units)
    });
    Ok(numbered.collect())
}

fn place_slices(
    tensors: &[Tensor],
    layers: &BTreeMap<u32, Range<ExpertIndex>>,
    page: u64,
) -> Result<Vec<UnplacedSlice>, LayoutError> {
    let mut parts = Vec::new();
    for tensor in tensors {
        let TensorKind::Experts { layer, experts } = tensor.kind else {
            continue;
        };
        let count = u64::from(experts);
        if count == 0 || !tensor.bytes.is_multiple_of(count) {
            return Err(LayoutError::Uneven { layer });
        }
        let bytes = tensor.bytes / count;
        if bytes < 2 * page {
            return Err(LayoutError::TooSmall { bytes });
        }
        let first = layers[&layer].start;
        parts.extend((0..experts).map(|expert| {
            let offset = tensor.offset + u64::from(expert) * bytes;
            UnplacedSlice {
                file: tensor.file,
                offset,
                bytes,
                pages: pages_around(offset, bytes, page),
                unit: first + expert,
            }
        }));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
