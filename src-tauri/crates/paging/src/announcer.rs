//! Tells the system which experts are read next. It keeps them in its file cache, and decides what stays there: memory that
//! other programs can have at any time.

use crate::{
    cache::CacheStats,
    cost::PagingCost,
    layout::{ExpertIndex, Layout},
    picture::{ResidencyPicture, UNKNOWN},
    places::{PageRange, merge_ranges},
    platform::MappedFile,
};
use parking_lot::Mutex;
use tierbar_core::{Code, Error};

/// After as many tokens whose experts were all in memory, only one token in [`SELDOM`] is looked at.
const CALM: u64 = 32;
const SELDOM: u64 = 16;

/// The experts of one model in the mappings of its files.
#[derive(Debug)]
pub struct Announcer {
    layout: Layout,
    mappings: Vec<MappedFile>,
    /// Whether the system tells what is in memory. Linux only tells owners of the file, and says of all pages that they are.
    tells: bool,
    seen: Mutex<Observations>,
}

#[derive(Debug, Default)]
struct Observations {
    stats: CacheStats,
    read_bytes: u64,
    token: u64,
    last_layer: Option<u32>,
    /// The last token of which something was absent.
    absent_at: u64,
}

impl Announcer {
    /// Keeps what every token reads in memory, if that is allowed. The mappings are those of all the model's files.
    pub fn start(layout: Layout, mappings: Vec<MappedFile>) -> Self {
        let mut this = Self {
            layout,
            mappings,
            tells: false,
            seen: Mutex::default(),
        };
        this.tells = (0..this.layout.units()).any(|unit| this.absent_bytes(unit) > 0);
        for (file, mapped) in this.mappings.iter().enumerate() {
            mapped.read_exactly();
            for pages in this.layout.held(file) {
                let run = this.layout.bytes_of(pages);
                mapped.read_ahead(&run);
                mapped.lock(&run);
            }
        }
        this
    }

    /// Announces these experts of a layer; with `next`, also the next layer's.
    ///
    /// # Errors
    /// [`Code::Internal`] if the layer has no such expert.
    pub fn need(&self, layer: u32, experts: &[u32], next: bool) -> Result<(), Error> {
        let mut seen = self.seen.lock();
        if seen.last_layer.is_none_or(|last| layer <= last) {
            seen.token += 1;
        }
        seen.last_layer = Some(layer);
        let is_calm = self.tells && seen.token > seen.absent_at + CALM;
        if is_calm && !seen.token.is_multiple_of(SELDOM) {
            seen.stats.hits += experts.len() as u64;
            return Ok(());
        }
        let mut runs = vec![Vec::new(); self.mappings.len()];
        for &expert in experts {
            let unit = self.layout.unit(layer, expert).ok_or_else(|| {
                let message = format!("layer {layer} has no expert {expert}");
                Error::new(Code::Internal, message)
            })?;
            let absent = self.absent_bytes(unit);
            if absent > 0 {
                seen.stats.misses += 1;
                seen.read_bytes += absent;
                seen.absent_at = seen.token;
            } else {
                seen.stats.hits += 1;
            }
            if absent > 0 || !self.tells {
                self.add(&mut runs, unit);
            }
        }
        if next {
            for unit in self.layout.next_layer(layer, false) {
                self.add(&mut runs, unit);
            }
        }
        drop(seen);
        for (runs, mapped) in runs.into_iter().zip(&self.mappings) {
            for run in merge_ranges(runs) {
                mapped.read_ahead(&self.layout.bytes_of(&run));
            }
        }
        Ok(())
    }

    /// Returns which experts are in memory, as far as the system tells. It looks at all their pages.
    pub fn picture(&self) -> ResidencyPicture {
        let heat = |unit| (self.absent_bytes(unit) == 0).then_some(UNKNOWN);
        ResidencyPicture::new(&self.layout, heat)
    }

    pub fn cost(&self) -> PagingCost {
        let seen = self.seen.lock();
        PagingCost {
            stats: seen.stats,
            read_bytes: seen.read_bytes,
            ..PagingCost::default()
        }
    }

    fn add(&self, runs: &mut [Vec<PageRange>], unit: ExpertIndex) {
        for slice in self.layout.slices(unit) {
            if let Some(runs) = runs.get_mut(slice.file) {
                runs.push(slice.pages.clone());
            }
        }
    }

    fn absent_bytes(&self, unit: ExpertIndex) -> u64 {
        let slices = self.layout.slices(unit).iter();
        let absent = slices.filter_map(|slice| {
            let mapped = self.mappings.get(slice.file)?;
            Some(mapped.absent_bytes(&self.layout.bytes_of(&slice.pages)))
        });
        absent.sum()
    }
}

#[cfg(test)]
mod tests;
