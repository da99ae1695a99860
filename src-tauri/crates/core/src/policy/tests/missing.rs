//! Memory that is not freed.

use super::*;
use crate::reclaim;

fn short(available_bytes: u64, tiers: Vec<TierView>, queue: &[&str]) -> State {
    State {
        missing: Some(MissingTierMemory {
            of: id("gone"),
            memory: reclaim::MissingMemory {
                bytes: 7,
                available_bytes,
                held: false,
            },
        }),
        ..state(2, tiers, queue)
    }
}

#[test]
fn only_what_fits_the_available_memory_is_loaded() {
    let tiers = || {
        vec![
            tier("heavy", Phase::Stopped, 6),
            tier("fast", Phase::Stopped, 3),
        ]
    };
    let state = short(3, tiers(), &["heavy", "fast"]);
    let refused = Step::Refuse {
        request: 1,
        why: Refusal::Missing(state.missing.clone().unwrap(), 6),
    };
    assert_eq!(plan(&state), [refused, start("fast")]);
    assert_eq!(plan(&short(6, tiers(), &["heavy"])), [start("heavy")]);
}

#[test]
fn nothing_is_refused_before_idle_tiers_are_evicted() {
    let tiers = |fast| vec![tier("heavy", Phase::Stopped, 8), tier("fast", fast, 3)];
    let ending = plan(&short(3, tiers(Phase::Ready), &["heavy"]));
    assert_eq!(ending, [ended("fast", UnloadReason::RoomFor(id("heavy")))]);
    assert_eq!(plan(&short(3, tiers(Phase::Stopping), &["heavy"])), []);
    assert_eq!(
        plan(&short(8, tiers(Phase::Stopped), &["heavy"])),
        [start("heavy")]
    );
}

#[test]
fn a_preload_waits_for_available_memory() {
    let mut state = short(3, vec![tier("heavy", Phase::Stopped, 6)], &["heavy"]);
    state.queue[0].ahead = true;
    assert_eq!(plan(&state), []);
}
