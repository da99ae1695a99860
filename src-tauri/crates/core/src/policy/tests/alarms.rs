//! Alarms: memory is low.

use super::*;

fn alarmed(alarm: Alarm, tiers: &[TierView], queue: &[&str]) -> State {
    State {
        alarm,
        ..state(2, tiers.to_vec(), queue)
    }
}

fn stops(name: &str, force: bool, alarm: Alarm) -> Step {
    Step::Stop {
        tier: id(name),
        force,
        why: UnloadReason::Alarm(alarm),
    }
}

#[test]
fn an_alarm_admits_and_loads_nothing() {
    let tiers = [tier("a", Ready, 5), tier("b", Stopped, 5)];
    assert_eq!(plan(&alarmed(Alarm::Hold, &tiers, &["a", "b"])), []);
}

#[test]
fn an_alarm_ends_idle_tiers_and_loads_then_all() {
    let tiers = [leased("a", 5), tier("b", Starting, 5)];
    let of = |alarm| plan(&alarmed(alarm, &tiers, &["b"]));
    assert_eq!(of(Alarm::Hold), []);
    assert_eq!(of(Alarm::Unload), [stops("b", false, Alarm::Unload)]);
    assert_eq!(
        of(Alarm::Critical),
        [
            stops("a", true, Alarm::Critical),
            stops("b", false, Alarm::Critical)
        ]
    );
}

#[test]
fn an_alarm_evicts_pinned_tiers() {
    let pinned = TierView {
        pinned: true,
        ..tier("a", Ready, 5)
    };
    assert_eq!(
        plan(&alarmed(Alarm::Unload, &[pinned], &[])),
        [stops("a", false, Alarm::Unload)]
    );
}

#[test]
fn a_wait_for_the_end_of_an_alarm_is_bounded() {
    let mut state = alarmed(Alarm::Hold, &[tier("a", Ready, 5)], &["a", "a"]);
    state.queue[1].since = Duration::from_secs(1);
    assert_eq!(next_look(&state), Some(ALARM_PATIENCE));
    state.now = ALARM_PATIENCE;
    let raised = State {
        alarm_since: Duration::from_secs(2),
        ..state.clone()
    };
    assert_eq!(plan(&raised), [], "the alarm is younger than the request");
    assert_eq!(
        next_look(&raised),
        Some(ALARM_PATIENCE + Duration::from_secs(2))
    );
    assert_eq!(
        plan(&state),
        [Step::Refuse {
            request: 1,
            why: Refusal::Alarm(Alarm::Hold)
        }]
    );
}

#[test]
fn requests_wait_a_minute_for_an_alarm_to_end() {
    let at = |seconds| State {
        now: Duration::from_secs(seconds),
        ..alarmed(Alarm::Hold, &[tier("a", Ready, 5)], &["a"])
    };
    assert_eq!(plan(&at(59)), []);
    let refused = Step::Refuse {
        request: 1,
        why: Refusal::Alarm(Alarm::Hold),
    };
    assert_eq!(plan(&at(60)), [refused]);
}
