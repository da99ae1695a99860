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
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let CacheStats {
            hits,
            misses,
            ahead,
            evicted,
        } = earlier.stats;
        Self {
            stats: CacheStats {
                hits: self.stats.hits.saturating_sub(hits),
                misses: self.stats.misses.saturating_sub(misses),
                ahead: self.stats.ahead.saturating_sub(ahead),
                evicted: self.stats.evicted.saturating_sub(evicted),
            },
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            waited: self.waited.saturating_sub(earlier.waited),
            held_bytes: self.held_bytes,
        }
    }
}
