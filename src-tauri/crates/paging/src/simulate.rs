//! Caches over recorded choices, without any bytes: what a policy would have read, and the least that any could.

use crate::cache::{Cache, CacheStats, EvictionPolicy};
use std::collections::{BTreeSet, HashMap};

/// The experts that a run has used, in the order of their use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// For each use of a layer, the token and the experts, numbered over all layers.
    pub uses: Vec<(u64, Vec<u32>)>,
}

impl Trace {
    /// Reads a worker's record (`--expert-trace`): for each use of a layer a line with its number and those of the experts.
    ///
    /// # Errors
    /// The first line that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = |line: &str| -> Option<Vec<u32>> {
            let numbers = line.split_whitespace().map(|number| number.parse().ok());
            numbers
                .collect::<Option<_>>()
                .filter(|all: &Vec<_>| !all.is_empty())
        };
        let lines: Vec<Vec<u32>> = text
            .lines()
            .map(|line| numbers(line).ok_or_else(|| line.to_owned()))
            .collect::<Result<_, _>>()?;
        let experts = lines.iter().flat_map(|line| &line[1..]).max();
        let of_layer = experts.map_or(0, |most| most + 1);
        let (mut token, mut last) = (0, None);
        let mut trace = Self::default();
        for line in &lines {
            let layer = line[0];
            token += u64::from(last.is_some_and(|last| layer <= last));
            last = Some(layer);
            let units = line[1..].iter().map(|expert| layer * of_layer + expert);
            trace.uses.push((token, units.collect()));
        }
        Ok(trace)
    }

    /// Returns the number of different experts that could be named.
    fn experts(&self) -> usize {
        let all = self.uses.iter().flat_map(|(_, experts)| experts);
        all.max().map_or(0, |&most| most as usize + 1)
    }
}

/// Returns what a cache that holds as many experts would have done.
pub fn simulate(trace: &Trace, held: u64, policy: EvictionPolicy) -> CacheStats {
    let mut cache = Cache::new(vec![1; trace.experts()], held, policy);
    for (token, experts) in &trace.uses {
        for unit in cache.take(experts, *token).missing {
            cache.loaded(unit);
        }
    }
    cache.stats
}

/// Returns what a cache would have done that knows the future, and evicts what is used last of all (Belády, *IBM Systems
/// Journal* 5(2), 1966).
pub fn belady(trace: &Trace, held: u64) -> CacheStats {
    let mut next: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, (_, experts)) in trace.uses.iter().enumerate().rev() {
        for &expert in experts {
            next.entry(expert).or_default().push(at);
        }
    }
    let mut stats = CacheStats::default();
    // By the next use, the farthest last.
    let mut order: BTreeSet<(usize, u32)> = BTreeSet::new();
    for (at, (_, experts)) in trace.uses.iter().enumerate() {
        let mut coming = Vec::with_capacity(experts.len());
        for &expert in experts {
            let uses = next.entry(expert).or_default();
            uses.pop();
            coming.push((uses.last().copied().unwrap_or(usize::MAX), expert));
            if order.remove(&(at, expert)) {
                stats.hits += 1;
            } else {
                stats.misses += 1;
            }
        }
        while (order.len() + coming.len()) as u64 > held && order.pop_last().is_some() {
            stats.evicted += 1;
        }
        order.extend(coming);
    }
    stats
}
