//! Policies over made-up choices.

use super::*;
use crate::simulate::{Trace, belady, simulate};
use proptest::prelude::*;

const RECENT: EvictionPolicy = EvictionPolicy::LeastRecent;

fn cache(units: usize, budget: u64) -> Cache {
    Cache::new(vec![1; units], budget, RECENT)
}

fn use_of(cache: &mut Cache, units: &[ExpertIndex]) -> CacheUpdate {
    let taken = cache.take(units, 0);
    for &unit in &taken.missing {
        cache.loaded(unit);
    }
    taken
}

#[test]
fn the_one_used_longest_ago_goes_first() {
    let mut cache = cache(9, 2);
    use_of(&mut cache, &[1]);
    use_of(&mut cache, &[2]);
    use_of(&mut cache, &[1]);
    let taken = use_of(&mut cache, &[3]);
    assert_eq!((taken.missing, taken.evicted), (vec![3], vec![2]));
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
fn often_used_ones_outlive_recent_ones() {
    let often = EvictionPolicy::LeastFrequent {
        half_life_tokens: 8.0,
    };
    let mut cache = Cache::new(vec![1; 9], 2, often);
    for (token, unit) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3)] {
        for unit in cache.take(&[unit], token).missing {
            cache.loaded(unit);
        }
    }
    assert!(cache.is_held(1) && cache.is_absent(2) && cache.is_held(3));
    // After many half-lives, three uses weigh less than one.
    for (token, unit) in [(100, 4), (101, 5)] {
        for unit in cache.take(&[unit], token).missing {
            cache.loaded(unit);
        }
    }
    assert!(cache.is_absent(1));
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
    let trace = Trace { uses };
    assert_eq!(simulate(&trace, 7, RECENT).hits, 0);
    assert_eq!(simulate(&trace, 8, RECENT).hits, 32);
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
    let trace = Trace { uses };
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
        half_life in prop::option::of(1.0f64..50.0),
    ) {
        let policy = half_life.map_or(RECENT, |half_life_tokens| EvictionPolicy::LeastFrequent { half_life_tokens });
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
        let trace = Trace { uses: (0..).zip(uses.iter().map(|units| units.iter().copied().collect())).collect() };
        let best = belady(&trace, 12);
        let ours = simulate(&trace, 12, policy);
        prop_assert!(best.misses <= ours.misses);
        prop_assert_eq!(best.hits + best.misses, ours.hits + ours.misses);
    }
}
