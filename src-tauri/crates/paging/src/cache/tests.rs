//! Policies over made-up choices.

use super::*;
use crate::simulate::{Trace, belady, least_recent, simulate};
use proptest::prelude::*;

fn cache(units: usize, budget: u64) -> Cache {
    Cache::new(vec![1; units], budget, EvictionPolicy::LeastLikely)
}

/// A token that uses these.
fn use_of(cache: &mut Cache, units: &[ExpertIndex]) -> CacheUpdate {
    let taken = cache.take(units, cache.token + 1);
    for &unit in &taken.missing {
        cache.loaded(unit);
    }
    taken
}

#[test]
fn the_one_used_longest_ago_goes_first_at_the_start() {
    let mut cache = cache(9, 2);
    use_of(&mut cache, &[1]);
    use_of(&mut cache, &[2]);
    use_of(&mut cache, &[2]);
    let taken = use_of(&mut cache, &[3]);
    assert_eq!((taken.missing, taken.evicted), (vec![3], vec![1]));
    assert_eq!(
        cache.stats,
        CacheStats {
            hits: 1,
            misses: 3,
            ahead: 0,
            evicted: 1
        }
    );
}

#[test]
fn nothing_is_learned_where_the_last_use_decides() {
    for (policy, learns) in [
        (EvictionPolicy::LeastLikely, true),
        (EvictionPolicy::MostRecent, false),
    ] {
        let mut cache = Cache::new(vec![1; 9], 9, policy);
        for _ in 0..3 {
            use_of(&mut cache, &[1]);
        }
        assert_eq!(cache.entries[1].history.last, 3);
        cache.take(&[], 4);
        assert_eq!(cache.likelihood(1) > 0.0, learns);
    }
}

#[test]
fn what_was_used_since_it_was_to_go_stays() {
    let mut cache = cache(20, 8);
    use_of(&mut cache, &[0, 1, 2, 3, 4, 5, 6, 7]);
    // One token in two layers: the first makes room for one and finds what goes after it.
    let taken = cache.take(&[8], 2);
    assert_eq!(taken.evicted, [0]);
    cache.loaded(8);
    assert_eq!(cache.take(&[1], 2), CacheUpdate::default());
    assert_eq!(cache.take(&[9], 2).evicted, [2]);
}

#[test]
fn what_is_in_use_stays_beyond_the_budget() {
    let mut cache = cache(9, 2);
    assert!(use_of(&mut cache, &[1, 2, 3]).evicted.is_empty());
    assert_eq!(cache.held, 3);
    assert_eq!(use_of(&mut cache, &[4]).evicted, [1, 2]);
}

#[test]
fn a_failed_read_can_be_tried_again() {
    let mut cache = cache(9, 2);
    assert_eq!(cache.take(&[1], 0).missing, [1]);
    cache.failed(1);
    assert_eq!(cache.held, 0);
    assert_eq!(cache.take(&[1], 0).missing, [1]);
}

#[test]
fn reading_ahead_evicts_nothing_of_its_layer_or_in_use() {
    let mut cache = cache(20, 6);
    use_of(&mut cache, &[10]);
    use_of(&mut cache, &[5]);
    use_of(&mut cache, &[0, 1]);
    let taken = cache.take_ahead(10..16, |unit| unit == 12);
    assert_eq!((taken.missing, taken.evicted), (vec![11, 13, 14], vec![5]));
    for unit in [11, 13, 14] {
        cache.loaded(unit);
    }
    assert!(cache.is_held(0) && cache.is_held(1) && cache.is_held(10));
    assert_eq!(cache.held, 6);
}

#[test]
fn a_smaller_budget_frees_at_once() {
    let mut cache = cache(9, 4);
    for unit in [1, 2, 3, 4] {
        use_of(&mut cache, &[unit]);
    }
    assert_eq!(cache.resize(1), [1, 2, 3]);
    assert_eq!(cache.held, 1);
}

#[test]
fn a_cache_below_a_cycle_never_hits() {
    let uses = (0..40)
        .map(|n| (n / 8, vec![u32::try_from(n % 8).unwrap()]))
        .collect();
    let trace = Trace {
        uses,
        counted_from: 0,
    };
    assert_eq!(least_recent(&trace, 7).hits, 0);
    assert_eq!(least_recent(&trace, 8).hits, 32);
    assert_eq!(
        belady(&trace, 7).misses,
        8 + 4,
        "one more in each further round"
    );
}

#[test]
fn a_circle_is_held_best_by_letting_the_last_one_go() {
    let uses = (0..80)
        .map(|n| (n / 8, vec![u32::try_from(n % 8).unwrap()]))
        .collect();
    let trace = Trace {
        uses,
        counted_from: 0,
    };
    for held in 2..8 {
        let ours = simulate(&trace, held, EvictionPolicy::MostRecent).misses;
        assert_eq!(ours, belady(&trace, held).misses, "{held} held");
    }
}

#[test]
fn a_record_is_read_with_its_tokens() {
    let trace = Trace::parse("0 1 3\n2 0 1\n0 2 3\n").unwrap();
    let uses = [(0, vec![1, 3]), (0, vec![8, 9]), (1, vec![2, 3])];
    assert_eq!(trace.uses, uses);
    assert_eq!(Trace::parse("0 1\n0 x\n"), Err("0 x".to_owned()));
}

proptest! {
    #[test]
    fn the_budget_holds_whatever_is_chosen(
        uses in prop::collection::vec(prop::collection::btree_set(0u32..30, 1..5), 1..60),
        in_a_circle: bool,
    ) {
        let policy = if in_a_circle { EvictionPolicy::MostRecent } else { EvictionPolicy::LeastLikely };
        let pages = (0..30).map(|n| 1 + n % 3).collect();
        let mut cache = Cache::new(pages, 16, policy);
        for (token, units) in (0..).zip(&uses) {
            let units: Vec<_> = units.iter().copied().collect();
            let taken = cache.take(&units, token);
            prop_assert!(taken.evicted.iter().all(|unit| !units.contains(unit)));
            prop_assert!(cache.held <= 16);
            for unit in taken.missing {
                cache.loaded(unit);
            }
            prop_assert!(units.iter().all(|&unit| cache.is_held(unit)));
            let ahead = cache.take_ahead(0..10, |_| false);
            prop_assert!(cache.held <= 16);
            prop_assert!(units.iter().all(|&unit| !ahead.evicted.contains(&unit)));
            for unit in ahead.missing {
                cache.loaded(unit);
            }
        }
        let uses = (0..).zip(uses.iter().map(|units| units.iter().copied().collect())).collect();
        let trace = Trace { uses, counted_from: 0 };
        let best = belady(&trace, 12);
        let ours = simulate(&trace, 12, policy);
        prop_assert!(best.misses <= ours.misses);
        prop_assert_eq!(best.hits + best.misses, ours.hits + ours.misses);
    }
}
