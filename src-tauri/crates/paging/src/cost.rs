//! What paging has cost.

use crate::cache::CacheStats;
use std::time::Duration;

/// What paging has cost since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PagingCost {
    pub stats: CacheStats,
    pub read_bytes: u64,
    /// The time that computing has waited for reads.
    pub waited: Duration,
    /// Experts' bytes in memory.
    pub held_bytes: u64,
}

impl PagingCost {
    /// What it has cost since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, before) = (self.stats, earlier.stats);
        Self {
            stats: CacheStats {
                hits: now.hits - before.hits,
                misses: now.misses - before.misses,
                ahead: now.ahead - before.ahead,
                evicted: now.evicted - before.evicted,
            },
            read_bytes: self.read_bytes - earlier.read_bytes,
            waited: self.waited - earlier.waited,
            held_bytes: self.held_bytes,
        }
    }
}
