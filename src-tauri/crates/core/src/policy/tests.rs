//! The policy's rules one by one, and its properties on a simulated machine.

mod alarms;
mod brief;
mod embedders;
mod missing;
mod patience;
mod residence;
mod simulation;

use super::*;

fn id(name: &str) -> TierId {
    TierId::new(name).unwrap()
}

fn tier(name: &str, phase: Phase, plan_bytes: u64) -> TierView {
    TierView {
        id: id(name),
        phase,
        kind: TierKind::Generative,
        plan_bytes: Some(plan_bytes),
        reserved_bytes: 0,
        leases: 0,
        brief: 0,
        background: 0,
        brief_after: Duration::ZERO,
        last_used: 0,
        idle_since: None,
        keep: None,
        pinned: false,
        idled_out: false,
        rests: false,
        stop: None,
    }
}

fn leased(name: &str, plan_bytes: u64) -> TierView {
    TierView {
        leases: 1,
        ..tier(name, Phase::Ready, plan_bytes)
    }
}

fn used(last_used: u64, view: TierView) -> TierView {
    TierView { last_used, ..view }
}

fn stopping(stop: StopRequest, view: TierView) -> TierView {
    TierView {
        stop: Some(stop),
        ..view
    }
}

/// A budget of 10 bytes for up to `max_loaded` tiers, and no patience; the requests are numbered from 1 and arrived at 0.
fn state(max_loaded: usize, tiers: Vec<TierView>, queue: &[&str]) -> State {
    let waiting = |(request, name): (u64, &&str)| WaitingRequest {
        request,
        tier: id(name),
        since: Duration::ZERO,
        purpose: Purpose::Answer,
        ahead: false,
    };
    State {
        now: Duration::ZERO,
        patience: Duration::ZERO,
        alarm: Alarm::None,
        alarm_since: Duration::ZERO,
        stance: Stance::Open,
        home: None,
        missing: None,
        budget: Budget {
            total_bytes: 10,
            max_loaded,
            paging: crate::run::Paging::Mmap,
            embedder_bytes: 0,
        },
        tiers,
        queue: (1..).zip(queue).map(waiting).collect(),
    }
}

fn start(name: &str) -> Step {
    Step::Start(id(name))
}

fn ended(name: &str, why: UnloadReason) -> Step {
    Step::Stop {
        tier: id(name),
        force: false,
        why,
    }
}

fn room(name: &str, by: &str) -> Step {
    ended(name, UnloadReason::RoomFor(id(by)))
}

fn stop(name: &str) -> Step {
    ended(name, UnloadReason::Requested)
}

fn force(name: &str) -> Step {
    Step::Stop {
        tier: id(name),
        force: true,
        why: UnloadReason::Requested,
    }
}

use Phase::{Ready, Starting, Stopped, Stopping};

#[test]
fn nothing_happens_without_a_request() {
    let tiers = vec![tier("a", Ready, 5), tier("b", Stopped, 5)];
    assert_eq!(plan(&state(1, tiers, &[])), []);
}

#[test]
fn a_stopped_tier_starts_for_its_first_waiter() {
    let at = |phase| state(1, vec![tier("a", phase, 5)], &["a", "a"]);
    assert_eq!(plan(&at(Stopped)), [start("a")]);
    assert_eq!(plan(&at(Starting)), []);
    assert_eq!(plan(&at(Ready)), [Step::Grant(1), Step::Grant(2)]);
}

#[test]
fn a_switch_loads_only_after_the_old_tier_has_ended() {
    let at = |phase| {
        let tiers = vec![tier("a", phase, 5), tier("b", Stopped, 5)];
        plan(&state(1, tiers, &["b"]))
    };
    assert_eq!(at(Ready), [room("a", "b")]);
    assert_eq!(at(Stopping), []);
    assert_eq!(at(Stopped), [start("b")]);
}

#[test]
fn a_leased_tier_drains_for_an_older_waiter() {
    let tiers = vec![leased("a", 5), tier("b", Stopped, 5)];
    assert_eq!(plan(&state(1, tiers.clone(), &["b", "a"])), []);
    assert_eq!(
        plan(&state(1, tiers, &["a", "b"])),
        [Step::Grant(1)],
        "a request that came before the other's is served first"
    );
}

#[test]
fn an_older_waiter_evicts_a_tier_with_a_newer_waiter() {
    let tiers = vec![tier("a", Ready, 5), tier("b", Stopped, 5)];
    assert_eq!(plan(&state(1, tiers, &["b", "a"])), [room("a", "b")]);
}

#[test]
fn an_idle_tier_leaves_before_a_leased_one() {
    let tiers = vec![
        used(2, tier("a", Ready, 5)),
        used(1, leased("b", 5)),
        tier("c", Stopped, 5),
    ];
    assert_eq!(plan(&state(2, tiers, &["c", "a"])), [room("a", "c")]);
}

#[test]
fn tiers_that_fit_together_stay_loaded_together() {
    let tiers = vec![leased("a", 4), tier("b", Stopped, 6)];
    assert_eq!(
        plan(&state(2, tiers, &["b", "a"])),
        [start("b"), Step::Grant(2)]
    );
}

#[test]
fn the_budget_holds_even_below_the_tier_limit() {
    let tiers = vec![tier("a", Ready, 5), tier("b", Stopped, 6)];
    assert_eq!(plan(&state(8, tiers, &["b"])), [room("a", "b")]);
}

#[test]
fn the_least_recently_used_idle_tier_is_evicted_first() {
    let tiers = vec![
        used(3, tier("a", Ready, 3)),
        used(1, leased("b", 3)),
        used(2, tier("c", Ready, 3)),
        tier("d", Stopped, 3),
    ];
    assert_eq!(plan(&state(8, tiers, &["d"])), [room("c", "d")]);
}

#[test]
fn no_more_tiers_are_evicted_than_needed() {
    let tiers = vec![
        used(1, tier("small", Ready, 1)),
        used(2, tier("large", Ready, 8)),
        tier("new", Stopped, 9),
    ];
    assert_eq!(plan(&state(8, tiers, &["new"])), [room("large", "new")]);
}

#[test]
fn memory_being_freed_is_not_freed_twice() {
    let tiers = vec![
        tier("a", Stopping, 5),
        tier("b", Ready, 5),
        tier("c", Stopped, 5),
    ];
    assert_eq!(plan(&state(8, tiers, &["c"])), []);
}

#[test]
fn nothing_loads_while_another_tier_starts_or_stops() {
    for phase in [Starting, Stopping] {
        let tiers = vec![tier("a", phase, 2), tier("b", Stopped, 2)];
        assert_eq!(plan(&state(8, tiers, &["a", "b"])), []);
    }
}

#[test]
fn one_tier_starts_at_a_time() {
    let tiers = vec![tier("a", Stopped, 2), tier("b", Stopped, 2)];
    assert_eq!(plan(&state(8, tiers, &["b", "a"])), [start("b")]);
}

#[test]
fn a_load_without_a_waiter_gives_way() {
    let tiers = vec![tier("a", Starting, 5), tier("b", Stopped, 5)];
    assert_eq!(plan(&state(1, tiers.clone(), &["b"])), [room("a", "b")]);
    assert_eq!(plan(&state(1, tiers, &["a", "b"])), []);
}

#[test]
fn a_tier_without_a_plan_evicts_none_and_keeps_its_place() {
    let unread = TierView {
        plan_bytes: None,
        ..tier("b", Stopped, 0)
    };
    let tiers = vec![tier("a", Ready, 5), unread, tier("c", Stopped, 5)];
    assert_eq!(
        plan(&state(1, tiers, &["b", "c", "a"])),
        [Step::Grant(3)],
        "what is loaded may be used meanwhile"
    );
}

#[test]
fn a_plan_that_can_never_fit_blocks_no_other() {
    let tiers = vec![
        tier("a", Ready, 5),
        tier("huge", Stopped, 11),
        tier("c", Stopped, 5),
    ];
    let alone = state(1, tiers.clone(), &["huge"]);
    assert!(!fits_alone(&alone.budget, 11));
    assert_eq!(plan(&alone), [], "no tier is ended for nothing");
    assert_eq!(plan(&state(1, tiers, &["huge", "c"])), [room("a", "c")]);
}

#[test]
fn a_tier_fits_a_budget_of_its_size_for_at_least_one_tier() {
    let fits = |max_loaded, total_bytes| {
        let budget = Budget {
            total_bytes,
            max_loaded,
            paging: crate::run::Paging::Mmap,
            embedder_bytes: 0,
        };
        fits_alone(&budget, 5)
    };
    assert!(fits(1, 5) && fits(2, 6));
    assert!(!fits(1, 4) && !fits(0, 5));
}

#[test]
fn a_drain_request_ends_leases_and_grants_nothing() {
    let planned = |view| plan(&state(1, vec![stopping(StopRequest::Drain, view)], &["a"]));
    assert_eq!(planned(leased("a", 5)), []);
    assert_eq!(planned(tier("a", Ready, 5)), [stop("a")]);
    assert_eq!(planned(tier("a", Stopping, 5)), []);
}

#[test]
fn a_tier_with_a_stop_request_does_not_start() {
    let tiers = vec![stopping(StopRequest::Drain, tier("a", Stopped, 5))];
    assert_eq!(plan(&state(1, tiers, &["a"])), []);
}

#[test]
fn a_waiter_for_a_restart_keeps_its_place() {
    let tiers = vec![
        stopping(StopRequest::Drain, leased("a", 6)),
        tier("b", Stopped, 4),
    ];
    assert_eq!(plan(&state(2, tiers.clone(), &["b", "a"])), [start("b")]);
    assert_eq!(plan(&state(2, tiers, &["a", "b"])), []);
}

#[test]
fn a_forced_stop_ends_a_leased_tier() {
    let tiers = vec![stopping(StopRequest::Force, leased("a", 5))];
    assert_eq!(plan(&state(1, tiers, &[])), [force("a")]);
}

#[test]
fn a_stop_request_ends_a_load_at_once() {
    let tiers = vec![stopping(StopRequest::Drain, tier("a", Starting, 5))];
    assert_eq!(plan(&state(1, tiers, &["a"])), [stop("a")]);
}

#[test]
fn a_lowered_budget_evicts_idle_and_drains_leased_tiers() {
    let tiers = vec![used(2, tier("a", Ready, 6)), used(1, leased("b", 6))];
    assert_eq!(
        plan(&state(8, tiers, &["b"])),
        [ended("a", UnloadReason::Budget), Step::Grant(1)]
    );
    let tiers = vec![leased("a", 6), used(1, leased("b", 6))];
    assert_eq!(plan(&state(8, tiers, &["a", "b"])), [Step::Grant(2)]);
}
