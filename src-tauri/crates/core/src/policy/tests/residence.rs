//! How long tiers stay loaded, and which are loaded again.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn idle(name: &str, since: u64) -> TierView {
    TierView {
        idle_since: Some(Duration::from_secs(since)),
        keep: Some(10 * MINUTE),
        ..tier(name, Ready, 5)
    }
}

fn pinned(view: TierView) -> TierView {
    TierView {
        pinned: true,
        ..view
    }
}

fn at(now: u64, tiers: &[TierView], queue: &[&str]) -> State {
    State {
        now: Duration::from_secs(now),
        ..state(1, tiers.to_vec(), queue)
    }
}

#[test]
fn an_idle_tier_is_evicted_when_its_time_is_over() {
    let tiers = [idle("a", 100)];
    assert_eq!(plan(&at(699, &tiers, &[])), []);
    assert_eq!(
        plan(&at(700, &tiers, &[])),
        [ended("a", UnloadReason::Idle(10 * MINUTE))]
    );
    assert_eq!(
        next_look(&at(200, &tiers, &[])),
        Some(Duration::from_secs(700))
    );
    assert_eq!(
        plan(&at(700, &tiers, &["a"])),
        [Step::Grant(1)],
        "a request has come"
    );
}

#[test]
fn a_tier_with_no_idle_time_still_serves_its_request() {
    let at_once = TierView {
        keep: Some(Duration::ZERO),
        ..idle("a", 0)
    };
    let mut state = at(0, &[at_once], &["a"]);
    state.queue[0].ahead = true;
    assert_eq!(plan(&state), [Step::Grant(1)]);
    state.queue.clear();
    assert_eq!(
        plan(&state),
        [ended("a", UnloadReason::Idle(Duration::ZERO))]
    );
}

#[test]
fn a_lowered_budget_ends_a_pinned_tier_last() {
    let tiers = [
        used(1, pinned(tier("a", Ready, 5))),
        used(2, tier("b", Ready, 5)),
    ];
    assert_eq!(
        plan(&at(0, &tiers, &[])),
        [ended("b", UnloadReason::Budget)]
    );
}

#[test]
fn a_lowered_budget_ends_a_pinned_tier_that_no_longer_fits() {
    let tiers = [pinned(tier("a", Ready, 11))];
    assert_eq!(
        plan(&at(0, &tiers, &[])),
        [ended("a", UnloadReason::Budget)]
    );
}

#[test]
fn a_kept_pinned_or_leased_tier_does_not_expire() {
    let kept = TierView {
        keep: None,
        ..idle("a", 0)
    };
    let used = TierView {
        leases: 1,
        ..idle("a", 0)
    };
    for tier in [kept, used, pinned(idle("a", 0))] {
        assert_eq!(plan(&at(100_000, &[tier], &[])), []);
    }
}

#[test]
fn a_pinned_tier_is_never_evicted() {
    let tiers = [pinned(tier("a", Ready, 5)), tier("b", Stopped, 5)];
    let refused = Step::Refuse {
        request: 1,
        why: Refusal::Pinned(vec![id("a")]),
    };
    assert_eq!(
        plan(&at(100, &tiers, &["b", "a"])),
        [refused, Step::Grant(2)]
    );
    let mut roomy = at(100, &tiers, &["b"]);
    roomy.budget.max_loaded = 2;
    assert_eq!(plan(&roomy), [start("b")]);
    roomy.tiers[1].plan_bytes = Some(6);
    assert!(matches!(*plan(&roomy), [Step::Refuse { .. }]));
}

#[test]
fn other_tiers_are_evicted_before_a_pinned_one() {
    let tiers = [
        used(1, pinned(tier("a", Ready, 3))),
        used(2, tier("b", Ready, 3)),
        tier("c", Stopped, 5),
    ];
    let mut state = at(0, &tiers, &["c"]);
    state.budget.max_loaded = 8;
    assert_eq!(plan(&state), [room("b", "c")]);
}

#[test]
fn a_pinned_tier_loads_by_itself_unless_backing_off() {
    let returns = |view: TierView| tier_to_preload(&at(0, &[view], &[]));
    let away = pinned(tier("a", Stopped, 5));
    assert_eq!(returns(away.clone()), Some(id("a")));
    assert_eq!(returns(tier("a", Stopped, 5)), None);
    assert_eq!(returns(pinned(tier("a", Ready, 5))), None);
    let rests = TierView {
        rests: true,
        ..away.clone()
    };
    assert_eq!(returns(rests), None);
    assert_eq!(returns(stopping(StopRequest::Drain, away.clone())), None);
    let requested = at(0, std::slice::from_ref(&away), &["a"]);
    assert_eq!(tier_to_preload(&requested), None, "it is already requested");
    let deferring = State {
        stance: Stance::Defers,
        ..at(0, std::slice::from_ref(&away), &[])
    };
    assert_eq!(tier_to_preload(&deferring), None);
    let alarmed = State {
        alarm: Alarm::Hold,
        ..at(0, &[away], &[])
    };
    assert_eq!(tier_to_preload(&alarmed), None);
}

#[test]
fn the_home_tier_returns_when_another_has_expired() {
    let idled = |name| TierView {
        idled_out: true,
        ..tier(name, Stopped, 5)
    };
    let of = |tiers: &[TierView], queue: &[&str]| {
        let state = State {
            home: Some(id("home")),
            ..at(0, tiers, queue)
        };
        tier_to_preload(&state)
    };
    let home = tier("home", Stopped, 5);
    assert_eq!(of(&[home.clone(), idled("a")], &[]), Some(id("home")));
    assert_eq!(of(&[home.clone(), tier("a", Stopped, 5)], &[]), None);
    assert_eq!(of(&[idled("home"), tier("a", Stopped, 5)], &[]), None);
    let other = tier("b", Ready, 5);
    assert_eq!(of(&[home.clone(), idled("a"), other], &[]), None);
    assert_eq!(of(&[home, idled("a")], &["a"]), None);
}

#[test]
fn a_return_is_given_up_when_it_no_longer_applies() {
    let idled = TierView {
        idled_out: true,
        ..tier("a", Stopped, 5)
    };
    let of = |queue: &[&str], a: &TierView| {
        let tiers = [tier("home", Stopped, 5), a.clone()];
        let mut state = State {
            home: Some(id("home")),
            ..at(0, &tiers, queue)
        };
        state.queue[0].ahead = true;
        withdrawn_requests(&state, &[1])
    };
    assert_eq!(of(&["home"], &idled), [0; 0]);
    assert_eq!(of(&["home", "a"], &idled), [1], "another tier is requested");
    assert_eq!(of(&["home"], &tier("a", Ready, 5)), [1]);
    // Only its own: expected requests withdraw themselves.
    let tiers = [tier("home", Stopped, 5), tier("a", Ready, 5)];
    assert_eq!(withdrawn_requests(&at(0, &tiers, &["home"]), &[]), [0; 0]);
}

#[test]
fn nothing_is_preloaded_while_background_loads_are_deferred() {
    let mut state = at(0, &[tier("a", Stopped, 5)], &["a"]);
    state.stance = Stance::Defers;
    assert_eq!(plan(&state), [start("a")]);
    state.queue[0].ahead = true;
    assert_eq!(plan(&state), []);
}

#[test]
fn in_quiet_hours_even_pinned_idle_tiers_are_evicted() {
    let minute = |tier: TierView| State {
        stance: Stance::Quiet,
        ..at(60, &[tier], &[])
    };
    let for_good = TierView {
        keep: None,
        ..idle("a", 0)
    };
    for tier in [idle("a", 0), for_good, pinned(idle("a", 0))] {
        let why = UnloadReason::Stance(Stance::Quiet);
        assert_eq!(plan(&minute(tier.clone())), [ended("a", why)]);
        assert_eq!(
            plan(&minute(TierView {
                leases: 1,
                idle_since: None,
                ..tier.clone()
            })),
            []
        );
        let young = State {
            now: Duration::from_secs(59),
            ..minute(tier)
        };
        assert_eq!(plan(&young), []);
        assert_eq!(next_look(&young), Some(Duration::from_secs(60)));
    }
    let short = TierView {
        keep: Some(Duration::from_secs(5)),
        ..idle("a", 0)
    };
    let why = UnloadReason::Idle(Duration::from_secs(60));
    assert_eq!(
        plan(&minute(short)),
        [ended("a", why)],
        "its own time has come too"
    );
}

#[test]
fn a_pause_drains_leased_tiers_and_admits_nothing() {
    let used = TierView {
        leases: 1,
        idle_since: None,
        ..idle("a", 0)
    };
    let paused = |tier: TierView, queue: &[&str]| State {
        stance: Stance::Paused,
        ..at(0, &[tier], queue)
    };
    let refused = Step::Refuse {
        request: 1,
        why: Refusal::Paused,
    };
    let why = UnloadReason::Stance(Stance::Paused);
    let running = plan(&paused(used, &["a"]));
    assert_eq!(running, vec![refused.clone()]);
    assert_eq!(
        plan(&paused(pinned(idle("a", 0)), &["a"])),
        [ended("a", why.clone()), refused]
    );
    assert_eq!(
        plan(&paused(tier("a", Starting, 5), &[])),
        [ended("a", why)]
    );
}

#[test]
fn the_home_tier_returns_after_quiet_hours() {
    assert!(UnloadReason::Stance(Stance::Quiet).is_disuse());
    assert!(UnloadReason::Idle(MINUTE).is_disuse());
    assert!(!UnloadReason::RoomFor(id("a")).is_disuse());
}
