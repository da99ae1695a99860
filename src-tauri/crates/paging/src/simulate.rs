//! Caches over recorded choices, without any bytes: what a policy would have read, and the least that any could.

use crate::cache::{Cache, CacheStats, EvictionPolicy};
use std::collections::BTreeSet;

/// The experts that a run has used, in the order of their use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// For each use of a layer, the token and the experts, numbered over all layers.
    pub uses: Vec<(u64, Vec<u32>)>,
    /// The token from which on hits and misses count.
    pub counted_from: u64,
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
    pub fn experts(&self) -> usize {
        let all = self.uses.iter().flat_map(|(_, experts)| experts);
        all.max().map_or(0, |&most| most as usize + 1)
    }
}

/// Returns what ours would have done, with room for as many experts.
pub fn simulate(trace: &Trace, held: u64, policy: EvictionPolicy) -> CacheStats {
    let mut cache = Cache::new(vec![1; trace.experts()], held, policy);
    for (token, experts) in &trace.uses {
        for unit in cache.take(experts, *token).missing {
            cache.loaded(unit);
        }
        if *token < trace.counted_from {
            cache.stats = CacheStats::default();
        }
    }
    cache.stats
}

/// Returns what a cache would have done that evicts what was used longest ago.
pub fn least_recent(trace: &Trace, held: u64) -> CacheStats {
    replay(trace, held, |at, _| (at, 0))
}

/// Returns what a cache would have done that evicts what was used least since the beginning, and of equals what was used longest
/// ago.
pub fn least_frequent(trace: &Trace, held: u64) -> CacheStats {
    let mut uses = vec![0; trace.experts()];
    replay(trace, held, |at, expert| {
        uses[expert as usize] += 1;
        (uses[expert as usize], at)
    })
}

/// Returns what a cache would have done that knows the future, and evicts what is used last of all (Belády, *IBM Systems
/// Journal* 5(2), 1966).
pub fn belady(trace: &Trace, held: u64) -> CacheStats {
    let mut next = vec![Vec::new(); trace.experts()];
    for (at, (_, experts)) in trace.uses.iter().enumerate().rev() {
        for &expert in experts {
            next[expert as usize].push(at);
        }
    }
    replay(trace, held, |_, expert| {
        let uses: &mut Vec<usize> = &mut next[expert as usize];
        uses.pop();
        (usize::MAX - uses.last().copied().unwrap_or(usize::MAX), 0)
    })
}

/// A cache that evicts what was worth least when it was used last. `worth` is called with the number of the use and the expert.
fn replay(
    trace: &Trace,
    held: u64,
    mut worth: impl FnMut(usize, u32) -> (usize, usize),
) -> CacheStats {
    let mut stats = CacheStats::default();
    let mut worths = vec![None; trace.experts()];
    let mut order = BTreeSet::new();
    for (at, (token, experts)) in trace.uses.iter().enumerate() {
        let counts = u64::from(*token >= trace.counted_from);
        let mut used = Vec::with_capacity(experts.len());
        for &expert in experts {
            match worths[expert as usize].take() {
                Some(before) => {
                    order.remove(&(before, expert));
                    stats.hits += counts;
                }
                None => stats.misses += counts,
            }
            used.push((worth(at, expert), expert));
        }
        while (order.len() + used.len()) as u64 > held
            && let Some((_, expert)) = order.pop_first()
        {
            worths[expert as usize] = None;
            stats.evicted += counts;
        }
        for (worth, expert) in used {
            worths[expert as usize] = Some(worth);
            order.insert((worth, expert));
        }
    }
    stats
}

#[cfg(test)]
mod traces;

#[cfg(test)]
mod tests {
    use super::*;

    /// Percent of all experts.
    const SHARES: [u64; 10] = [10, 20, 25, 30, 40, 45, 50, 60, 75, 80];

    /// What is missed of each trace at each budget, in percent of what the better one of the two others misses.
    #[test]
    fn ours_misses_little_more_than_the_better_of_two() {
        let mut all = Vec::new();
        for (name, trace) in traces::all() {
            for share in SHARES {
                let held = trace.experts() as u64 * share / 100;
                let ours = simulate(&trace, held, EvictionPolicy::LeastLikely).misses;
                let recent = least_recent(&trace, held).misses;
                let better = recent.min(least_frequent(&trace, held).misses);
                let percent = 100 * ours / better;
                assert!(percent < 110, "{name}, {share} %: {ours} and {better}");
                all.push(percent);
            }
        }
        let mean = all.iter().sum::<u64>() / all.len() as u64;
        assert!(
            all.len() == 23 * SHARES.len() && mean < 100,
            "{mean} % of {}",
            all.len()
        );
    }
}
