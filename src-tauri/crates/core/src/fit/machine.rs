//! The machine that a verdict is for.

use crate::{
    budget::{Budget, EMBEDDER, GIB},
    config::MaxLoaded,
    run::Paging,
};

/// Kept free of Metal's recommended working set, since the window server and other programs use the same memory.
const GPU_MARGIN: u64 = GIB / 2;

/// More than any supported machine has cache.
const CACHE: u64 = GIB / 4;

/// What a verdict needs to know of a machine. All sizes in bytes, bandwidths in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub ram_bytes: u64,
    /// The bytes that may be placed on the GPU; `None` without a GPU that shares the memory.
    pub gpu_limit: Option<u64>,
    pub max_loaded: MaxLoaded,
    /// What the plan of each generative model leaves to the embedder's slot.
    pub embedder_bytes: u64,
    /// How this machine pages a model that exceeds its memory, unless a tier says otherwise.
    pub paging: Paging,
    /// The most that memory gives.
    pub memory_bandwidth: Option<u64>,
    /// What the cores were measured to read of that, at best.
    pub memory_read: Option<u64>,
    /// The bandwidth of the disk with the models.
    pub disk_bandwidth: Option<u64>,
    /// The best rate at which a model in memory has decoded.
    pub decode: Option<DecodeRate>,
}

/// How fast this machine has decoded with a model that is in memory: what a short answer of any model tells of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeRate {
    pub bytes_per_token: u64,
    pub bytes_per_second: u64,
}

impl Machine {
    /// `working_set`: Metal's `recommendedMaxWorkingSetSize`.
    pub fn new(ram_bytes: u64, working_set: Option<u64>) -> Self {
        // Users can raise the working set to nearly all of the memory, and what the GPU holds is never paged out.
        let budget = Budget::of_machine(ram_bytes, MaxLoaded::Auto).total_bytes;
        Self {
            ram_bytes,
            gpu_limit: working_set.map(|bytes| bytes.saturating_sub(GPU_MARGIN).min(budget)),
            max_loaded: MaxLoaded::Auto,
            embedder_bytes: EMBEDDER,
            paging: Paging::Mmap,
            memory_bandwidth: None,
            memory_read: None,
            disk_bandwidth: None,
            decode: None,
        }
    }

    /// Returns a Mac with this much RAM, with the working set of [`mac_working_set`].
    pub fn mac(ram_bytes: u64) -> Self {
        Self {
            paging: Paging::Advise,
            ..Self::new(ram_bytes, Some(mac_working_set(ram_bytes)))
        }
    }

    /// Returns it with the bandwidth of its memory: the published one of its chip, or else the best that was measured or that an
    /// answer has proved.
    #[must_use]
    pub fn with_memory(
        self,
        chip: Option<u64>,
        read: Option<u64>,
        decode: Option<DecodeRate>,
    ) -> Self {
        // A small model may have been read from a cache of the processor.
        let proves = |decode: &DecodeRate| read.is_none() || decode.bytes_per_token >= CACHE;
        let proved = decode.filter(proves).map(|decode| decode.least_bandwidth());
        Self {
            memory_bandwidth: chip.or(read.max(proved)),
            memory_read: read,
            decode,
            ..self
        }
    }

    /// Returns it for a tier that may choose how its model is paged.
    #[must_use]
    pub fn paging(self, paging: Paging) -> Self {
        match paging {
            Paging::Auto => self,
            // Without a GPU, prompts are read on the CPU.
            Paging::AdviseGpu if self.gpu_limit.is_none() => Self {
                paging: Paging::Advise,
                ..self
            },
            paging => Self { paging, ..self },
        }
    }

    pub fn budget(&self) -> Budget {
        Budget {
            paging: self.paging,
            embedder_bytes: self.embedder_bytes,
            ..Budget::of_machine(self.ram_bytes, self.max_loaded)
        }
    }
}

/// What current systems report as `recommendedMaxWorkingSetSize` on Macs of these sizes, in bytes, from llama.cpp's
/// published logs: "recommendedMaxWorkingSetSize = 12713.12 MB" on a 16 GB M4.
const WORKING_SETS: [(u64, u64); 8] = [
    (8, 5_726_630_000),
    (16, 12_713_120_000),
    (24, 19_069_670_000),
    (32, 26_800_600_000),
    (36, 30_150_670_000),
    (48, 40_200_900_000),
    (64, 55_662_790_000),
    (128, 115_448_730_000),
];

/// Returns Metal's working set on a Mac with this much RAM, to plan for other machines: older systems gave less (10.67 GiB
/// of 16), and the user can change it. Of other sizes, the smallest share that is known: two thirds up to 32 GiB, three
/// quarters above.
pub fn mac_working_set(ram_bytes: u64) -> u64 {
    let mut known = WORKING_SETS.into_iter();
    match known.find(|(gib, _)| ram_bytes == gib * GIB) {
        Some((_, bytes)) => bytes,
        None if ram_bytes <= 32 * GIB => ram_bytes / 3 * 2,
        None => ram_bytes / 4 * 3,
    }
}
