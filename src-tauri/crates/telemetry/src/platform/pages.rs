//! What macOS's counts of pages say about memory.

use super::MachineMemory;
use crate::figures::Figures;
use tierbar_core::status::Pressure;

/// Numbers of pages, as `host_statistics64` reports them (`vm_statistics64` in `mach/vm_statistics.h`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pages {
    /// Bytes of a page.
    pub(crate) size: u64,
    /// Of programs, in memory, with the purgeable ones.
    pub(crate) internal: u64,
    pub(crate) purgeable: u64,
    pub(crate) wired: u64,
    /// What the compressor takes up.
    pub(crate) compressor: u64,
    /// What it holds, in memory and in swap.
    pub(crate) compressed: u64,
    /// A counter.
    pub(crate) swapped_out: u64,
}

impl Pages {
    /// Adds what they say; the total is there already.
    pub(crate) fn fill(&self, figures: &mut Figures) {
        figures.ram_available_bytes = self.available_bytes(figures.ram_total_bytes);
        figures.swapped_out_bytes = Some(self.bytes(self.swapped_out));
    }

    pub(crate) fn memory(&self, total: Option<u64>) -> MachineMemory {
        MachineMemory {
            held_bytes: Some(self.held_bytes()),
            available_bytes: self.available_bytes(total),
        }
    }

    /// Memory held by programs and the kernel, including the GPU's, as footprints count it: compressed and swapped pages at their
    /// original size.
    fn held_bytes(&self) -> u64 {
        self.bytes(self.unpurgeable().saturating_add(self.compressed))
    }

    /// What neither programs nor the kernel hold: free, file and purgeable pages.
    fn available_bytes(&self, total: Option<u64>) -> Option<u64> {
        let used = self.bytes(self.unpurgeable().saturating_add(self.compressor));
        total.map(|total| total.saturating_sub(used))
    }

    fn unpurgeable(&self) -> u64 {
        self.internal
            .saturating_sub(self.purgeable)
            .saturating_add(self.wired)
    }

    fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.size)
    }
}

/// Returns what `kern.memorystatus_vm_pressure_level` means (xnu's `kVMPressure…`, as dispatch sources report it).
pub(crate) fn pressure(level: i32) -> Option<Pressure> {
    match level {
        1 => Some(Pressure::Normal),
        2 => Some(Pressure::Warning),
        4 => Some(Pressure::Critical),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 16 << 10;

    fn pages() -> Pages {
        Pages {
            size: SIZE,
            internal: 300,
            purgeable: 20,
            wired: 100,
            compressor: 40,
            compressed: 150,
            swapped_out: 9,
        }
    }

    #[test]
    fn purgeable_and_file_pages_are_available() {
        let mut figures = Figures {
            ram_total_bytes: Some(1000 * SIZE),
            ..Figures::default()
        };
        pages().fill(&mut figures);
        assert_eq!(figures.ram_available_bytes, Some(580 * SIZE));
        assert_eq!(figures.swapped_out_bytes, Some(9 * SIZE));
    }

    #[test]
    fn compressed_pages_are_held_at_their_original_size() {
        let memory = pages().memory(Some(1000 * SIZE));
        assert_eq!(memory.held_bytes, Some(530 * SIZE));
        assert_eq!(memory.available_bytes, Some(580 * SIZE));
        assert_eq!(pages().memory(None).available_bytes, None);
    }

    #[test]
    fn counts_that_contradict_each_other_do_not_overflow() {
        let memory = |pages: Pages| pages.memory(Some(200 * SIZE));
        // The counts are not of one moment.
        let purged = memory(Pages {
            internal: 10,
            ..pages()
        });
        assert_eq!(purged.held_bytes, Some(250 * SIZE));
        assert_eq!(purged.available_bytes, Some(60 * SIZE));
        let many = memory(Pages {
            compressor: u64::MAX,
            compressed: u64::MAX,
            ..pages()
        });
        assert_eq!(many.held_bytes, Some(u64::MAX));
        assert_eq!(many.available_bytes, Some(0));
    }

    #[test]
    fn a_level_that_xnu_does_not_have_is_unknown() {
        let levels = [1, 2, 4].map(|level| pressure(level).unwrap());
        let expected = [Pressure::Normal, Pressure::Warning, Pressure::Critical];
        assert_eq!(levels, expected);
        for level in [-1, 0, 3, 8] {
            assert_eq!(pressure(level), None, "{level}");
        }
    }
}
