//! Newer requests for a loaded tier pass an older one for another tier for a while.

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// The requests arrived at these seconds; it is `now`.
fn at(now: u64, tiers: &[TierView], queue: &[(&str, u64)]) -> State {
    let names: Vec<_> = queue.iter().map(|(name, _)| *name).collect();
    let mut state = state(1, tiers.to_vec(), &names);
    state.now = Duration::from_secs(now);
    state.patience = PATIENCE;
    for (waiting, (_, since)) in state.queue.iter_mut().zip(queue) {
        waiting.since = Duration::from_secs(*since);
    }
    state
}

fn busy_a_and_b() -> [TierView; 2] {
    [leased("a", 5), tier("b", Stopped, 5)]
}

#[test]
fn newer_requests_for_the_loaded_tier_pass_for_a_while() {
    let tiers = busy_a_and_b();
    assert_eq!(
        plan(&at(9, &tiers, &[("b", 0), ("a", 8)])),
        [Step::Grant(2)]
    );
    assert_eq!(plan(&at(10, &tiers, &[("b", 0), ("a", 8)])), []);
}

#[test]
fn a_tier_serves_a_newer_request_before_it_is_evicted() {
    let tiers = [tier("a", Ready, 5), tier("b", Stopped, 5)];
    assert_eq!(
        plan(&at(1, &tiers, &[("b", 0), ("a", 1)])),
        [Step::Grant(2)]
    );
    assert_eq!(plan(&at(1, &tiers, &[("b", 0)])), [room("a", "b")]);
    assert_eq!(
        plan(&at(10, &tiers, &[("b", 0), ("a", 1)])),
        [room("a", "b")]
    );
}

#[test]
fn a_load_for_a_newer_request_goes_on_for_a_while() {
    let tiers = [tier("a", Starting, 5), tier("b", Stopped, 5)];
    assert_eq!(plan(&at(1, &tiers, &[("b", 0), ("a", 1)])), []);
    assert_eq!(
        plan(&at(10, &tiers, &[("b", 0), ("a", 1)])),
        [room("a", "b")]
    );
}

#[test]
fn no_tier_is_evicted_for_too_little_memory() {
    let tiers = [
        used(1, tier("idle", Ready, 5)),
        used(2, leased("busy", 5)),
        tier("new", Stopped, 9),
    ];
    let of = |now| {
        let mut state = at(now, &tiers, &[("new", 0)]);
        state.budget.max_loaded = 8;
        plan(&state)
    };
    assert_eq!(of(9), []);
    assert_eq!(of(10), [room("idle", "new")]);
}

#[test]
fn of_two_idle_tiers_the_one_without_waiters_is_evicted() {
    let tiers = [
        used(1, tier("requested", Ready, 5)),
        used(2, tier("unasked", Ready, 5)),
        tier("new", Stopped, 5),
    ];
    for now in [1, 10] {
        let mut state = at(now, &tiers, &[("new", 0), ("requested", 1)]);
        state.budget.max_loaded = 2;
        assert_eq!(plan(&state), [room("unasked", "new"), Step::Grant(2)]);
    }
}

#[test]
fn the_next_look_is_when_a_waiters_patience_ends() {
    let tiers = busy_a_and_b();
    let look = |now| next_look(&at(now, &tiers, &[("b", 2), ("a", 5)]));
    assert_eq!(look(6), Some(Duration::from_secs(12)));
    assert_eq!(look(12), Some(Duration::from_secs(15)));
    assert_eq!(look(15), None);
}

/// The first in the queue is a preload.
fn ahead(mut state: State) -> State {
    state.queue[0].ahead = true;
    state
}

#[test]
fn a_preload_evicts_only_idle_tiers() {
    let of = |a: TierView| [a, tier("b", Stopped, 5)];
    let idle = of(tier("a", Ready, 5));
    assert_eq!(plan(&ahead(at(0, &idle, &[("b", 0)]))), [room("a", "b")]);
    assert_eq!(plan(&ahead(at(99, &of(leased("a", 5)), &[("b", 0)]))), []);
    assert_eq!(
        plan(&ahead(at(99, &idle, &[("b", 0), ("a", 98)]))),
        [Step::Grant(2)],
        "a waiting request comes first, however young"
    );
}

#[test]
fn a_preload_takes_no_memory_a_request_waits_for() {
    let tiers = [leased("a", 6), tier("b", Stopped, 6), tier("c", Stopped, 4)];
    let mut state = at(0, &tiers, &[("c", 0), ("b", 0)]);
    state.budget.max_loaded = 8;
    assert_eq!(plan(&ahead(state)), []);
}

#[test]
fn a_preload_that_cannot_fit_evicts_nothing() {
    let pinned = TierView {
        pinned: true,
        ..tier("a", Ready, 6)
    };
    let tiers = [pinned, tier("b", Ready, 3), tier("c", Stopped, 5)];
    let mut state = at(0, &tiers, &[("c", 0)]);
    state.budget.max_loaded = 8;
    assert_eq!(plan(&ahead(state)), []);
}

#[test]
fn a_preload_gives_way_to_a_request() {
    let tiers = [tier("a", Starting, 5), tier("b", Stopped, 5)];
    assert_eq!(
        plan(&ahead(at(1, &tiers, &[("a", 0), ("b", 1)]))),
        [room("a", "b")]
    );
}

#[test]
fn a_preload_is_satisfied_by_a_loaded_tier() {
    let tiers = [tier("a", Ready, 5)];
    assert_eq!(plan(&ahead(at(0, &tiers, &[("a", 0)]))), [Step::Grant(1)]);
    let leaving = [stopping(StopRequest::Drain, leased("a", 5))];
    assert_eq!(plan(&ahead(at(0, &leaving, &[("a", 0)]))), []);
}
