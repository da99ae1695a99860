//! Embedders in their slot beside generative tiers.

use super::*;

fn embedder(name: &str, phase: Phase, plan_bytes: u64) -> TierView {
    TierView {
        kind: TierKind::Embedder,
        ..tier(name, phase, plan_bytes)
    }
}

/// A generative tier that leaves 2 bytes of its plan to the slot.
fn chat(name: &str, phase: Phase, plan_bytes: u64) -> TierView {
    TierView {
        reserved_bytes: 2,
        ..tier(name, phase, plan_bytes)
    }
}

#[test]
fn an_embedder_loads_beside_the_one_generative_tier() {
    let tiers = vec![chat("a", Ready, 10), embedder("e", Stopped, 2)];
    assert_eq!(
        plan(&state(1, tiers, &["e", "a"])),
        [start("e"), Step::Grant(2)]
    );
}

#[test]
fn a_generative_tier_loads_beside_an_embedder() {
    let tiers = vec![chat("a", Stopped, 10), embedder("e", Ready, 2)];
    assert_eq!(plan(&state(1, tiers, &["a"])), [start("a")]);
}

#[test]
fn a_switch_of_generative_tiers_keeps_the_embedder() {
    let tiers = vec![
        chat("a", Ready, 10),
        chat("b", Stopped, 10),
        used(9, embedder("e", Ready, 2)),
    ];
    assert_eq!(plan(&state(1, tiers, &["b"])), [room("a", "b")]);
}

#[test]
fn no_generative_tier_ends_for_an_embedder() {
    let refused = |beside: &[&str]| Step::Refuse {
        request: 1,
        why: Refusal::Slot(beside.iter().map(|name| id(name)).collect()),
    };
    let beside = |phase| {
        let tiers = vec![chat("a", phase, 10), embedder("e", Stopped, 3)];
        plan(&state(1, tiers, &["e"]))
    };
    assert_eq!(beside(Ready), [refused(&["a"])]);
    assert_eq!(beside(Starting), [refused(&["a"])]);
    assert_eq!(beside(Stopping), [], "it fits soon");
    assert_eq!(beside(Stopped), [start("e")]);
}

#[test]
fn an_embedder_that_is_too_large_ends_for_a_generative_tier() {
    let tiers = vec![chat("a", Stopped, 10), embedder("e", Ready, 3)];
    assert_eq!(plan(&state(1, tiers, &["a"])), [room("e", "a")]);
    let tiers = vec![
        used(1, chat("a", Ready, 5)),
        used(2, embedder("e", Ready, 4)),
        chat("b", Stopped, 5),
    ];
    assert_eq!(
        plan(&state(2, tiers, &["b"])),
        [start("b")],
        "the slots of both hold it"
    );
}

#[test]
fn embedders_take_turns_where_the_slot_has_room_for_one() {
    let at = |phase| {
        let tiers = vec![
            chat("a", Ready, 10),
            embedder("e", phase, 2),
            embedder("r", Stopped, 2),
        ];
        plan(&state(1, tiers, &["r"]))
    };
    assert_eq!(at(Ready), [room("e", "r")]);
    assert_eq!(at(Stopped), [start("r")]);
}

#[test]
fn an_embedder_does_not_wait_behind_a_switch() {
    let tiers = vec![
        TierView {
            leases: 1,
            ..chat("a", Ready, 10)
        },
        chat("b", Stopped, 10),
        embedder("e", Stopped, 2),
    ];
    assert_eq!(plan(&state(1, tiers.clone(), &["b", "e"])), [start("e")]);
    let mut larger = state(1, tiers, &["b", "e"]);
    larger.tiers[1].reserved_bytes = 1;
    assert_eq!(plan(&larger), [], "it would have to leave again");
}

#[test]
fn an_idle_embedder_is_the_first_to_leave_in_an_alarm() {
    let tiers = vec![chat("a", Ready, 10), embedder("e", Ready, 2)];
    let alarmed = |alarm| State {
        alarm,
        ..state(1, tiers.clone(), &[])
    };
    assert_eq!(
        plan(&alarmed(Alarm::Hold)),
        [ended("e", UnloadReason::Alarm(Alarm::Hold))]
    );
    assert_eq!(plan(&alarmed(Alarm::Unload)).len(), 2);
    let mut leased = alarmed(Alarm::Unload);
    leased.tiers[1].leases = 1;
    assert_eq!(
        plan(&leased),
        [ended("a", UnloadReason::Alarm(Alarm::Unload))],
        "an answer ends first"
    );
}

#[test]
fn the_home_tier_returns_beside_an_embedder() {
    let idled = TierView {
        idled_out: true,
        ..chat("a", Stopped, 10)
    };
    let state = State {
        home: Some(id("home")),
        ..state(
            1,
            vec![chat("home", Stopped, 10), idled, embedder("e", Ready, 2)],
            &[],
        )
    };
    assert_eq!(tier_to_preload(&state), Some(id("home")));
    let embedder = State {
        home: Some(id("e")),
        tiers: vec![state.tiers[1].clone(), embedder("e", Stopped, 2)],
        ..state
    };
    assert_eq!(
        tier_to_preload(&embedder),
        None,
        "nothing would keep it loaded"
    );
}

#[test]
fn a_background_answer_does_not_wait_for_an_embedder_to_be_read() {
    let unread = TierView {
        plan_bytes: None,
        ..embedder("e", Stopped, 2)
    };
    let mut state = state(1, vec![chat("a", Ready, 10), unread], &["a", "e"]);
    state.queue[0].purpose = Purpose::Background;
    assert_eq!(plan(&state), [Step::Grant(1)]);
}

#[test]
fn an_idle_embedder_does_not_outlast_a_generative_tier() {
    let keep = Some(Duration::from_secs(600));
    let idle = |since, view: TierView| TierView {
        idle_since: Some(Duration::from_secs(since)),
        keep,
        ..view
    };
    let at = |embedder: TierView, queue: &[&str]| State {
        now: Duration::from_secs(600),
        ..state(1, vec![idle(0, chat("a", Ready, 10)), embedder], queue)
    };
    let e = idle(500, embedder("e", Ready, 2));
    let left = |name, seconds| ended(name, UnloadReason::Idle(Duration::from_secs(seconds)));
    assert_eq!(
        plan(&at(e.clone(), &[])),
        [left("e", 100), left("a", 600)],
        "it leaves first"
    );
    assert_eq!(
        plan(&at(e.clone(), &["e"])),
        [left("a", 600), Step::Grant(1)]
    );
    let kept = TierView {
        keep: None,
        ..e.clone()
    };
    let pinned = TierView {
        pinned: true,
        ..e.clone()
    };
    for stays in [kept, pinned] {
        let mut state = at(stays, &[]);
        assert_eq!(plan(&state), [left("a", 600)]);
        // In quiet hours too, it has a minute of its own.
        state.stance = Stance::Quiet;
        state.tiers[1].idle_since = Some(Duration::from_secs(550));
        assert_eq!(plan(&state), [left("a", 600)]);
    }
    let alone = State {
        now: Duration::from_secs(1099),
        ..state(1, vec![e], &[])
    };
    assert_eq!(plan(&alone), [], "its own time is not over");
}
