//! Brief requests pass while a long answer keeps the tier loaded anyway, and background answers give way.

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// The requests arrived at these seconds; an older one for `b` has waited its time if it arrived before 10.
fn at(now: u64, a: TierView, queue: &[(&str, u64, Purpose)]) -> State {
    let names: Vec<_> = queue.iter().map(|(name, ..)| *name).collect();
    let mut state = state(1, vec![a, tier("b", Stopped, 5)], &names);
    state.now = Duration::from_secs(now);
    state.patience = PATIENCE;
    for (waiting, (_, since, purpose)) in state.queue.iter_mut().zip(queue) {
        waiting.since = Duration::from_secs(*since);
        waiting.purpose = *purpose;
    }
    state
}

fn revoke(name: &str, by: &str) -> Step {
    Step::Revoke {
        tier: id(name),
        why: UnloadReason::RoomFor(id(by)),
    }
}

use Purpose::{Answer, Background, Brief};

#[test]
fn a_brief_request_passes_while_a_longer_answer_lasts() {
    let queue = [("b", 0, Answer), ("a", 8, Brief)];
    assert_eq!(plan(&at(20, leased("a", 5), &queue)), [Step::Grant(2)]);
    let long = [("b", 0, Answer), ("a", 8, Answer)];
    assert_eq!(plan(&at(20, leased("a", 5), &long)), []);
    let idle = tier("a", Ready, 5);
    assert_eq!(plan(&at(20, idle, &queue)), [room("a", "b")]);
    let drains = stopping(StopRequest::Drain, leased("a", 5));
    assert_eq!(plan(&at(20, drains, &queue)), []);
}

#[test]
fn brief_requests_do_not_keep_a_tier_loaded() {
    let brief = TierView {
        brief: 1,
        ..leased("a", 5)
    };
    let queue = [("b", 0, Answer), ("a", 8, Brief)];
    assert_eq!(plan(&at(20, brief, &queue)), []);
}

#[test]
fn brief_requests_pass_one_at_a_time_and_half_of_the_time() {
    let queue = [("b", 0, Answer), ("a", 8, Brief), ("a", 9, Brief)];
    assert_eq!(plan(&at(20, leased("a", 5), &queue)), [Step::Grant(2)]);
    let shared = TierView {
        leases: 2,
        brief: 1,
        ..leased("a", 5)
    };
    assert_eq!(plan(&at(20, shared, &queue)), []);
    let rests = TierView {
        brief_after: Duration::from_secs(21),
        ..leased("a", 5)
    };
    let state = at(20, rests.clone(), &queue);
    assert_eq!(plan(&state), []);
    assert_eq!(next_look(&state), Some(Duration::from_secs(21)));
    assert_eq!(plan(&at(21, rests, &queue)), [Step::Grant(2)]);
    let alone = [("a", 8, Brief), ("a", 9, Brief)];
    let all = [Step::Grant(1), Step::Grant(2)];
    assert_eq!(plan(&at(20, leased("a", 5), &alone)), all);
}

fn in_background(leases: u32, background: u32) -> TierView {
    TierView {
        leases,
        background,
        ..leased("a", 5)
    }
}

#[test]
fn a_background_answer_gives_way_to_an_old_request() {
    let queue = [("b", 0, Answer), ("a", 8, Brief)];
    assert_eq!(plan(&at(9, in_background(1, 1), &queue)), [Step::Grant(2)]);
    assert_eq!(
        plan(&at(10, in_background(1, 1), &queue)),
        [revoke("a", "b")]
    );
    assert_eq!(
        plan(&at(10, in_background(2, 1), &queue[..1])),
        [],
        "while a client's answer lasts, nothing is won by it"
    );
}

#[test]
fn a_background_request_comes_last() {
    let queue = [("a", 0, Background), ("b", 1, Answer)];
    assert_eq!(plan(&at(2, tier("a", Ready, 5), &queue)), [room("a", "b")]);
    assert_eq!(
        plan(&at(2, tier("a", Starting, 5), &queue)),
        [room("a", "b")]
    );
    assert_eq!(plan(&at(2, leased("a", 5), &queue)), []);
    assert_eq!(plan(&at(2, leased("a", 5), &queue[..1])), [Step::Grant(1)]);
}

#[test]
fn a_background_request_is_served_in_turn_after_a_while() {
    let late = BACKGROUND_PATIENCE.as_secs();
    let queue = [("b", 0, Background), ("a", late, Answer)];
    assert_eq!(
        plan(&at(late - 1, leased("a", 5), &queue)),
        [Step::Grant(2)]
    );
    assert_eq!(plan(&at(late, leased("a", 5), &queue)), []);
}
