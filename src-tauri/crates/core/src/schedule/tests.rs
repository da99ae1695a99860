use super::*;
use proptest::prelude::*;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// A turn a day, at two hours past midnight.
fn daily(now: i64) -> Vec<i64> {
    let today = now.div_euclid(DAY);
    (today - 2..=today + 7)
        .map(|day| day * DAY + 2 * HOUR)
        .collect()
}

fn next(run: &Run, now: i64) -> NextTurn {
    run.next(&daily(now), now)
}

#[test]
fn a_new_schedule_starts_with_its_next_run() {
    let run = Run::first_seen(10 * DAY + 3 * HOUR);
    assert_eq!(
        next(&run, 10 * DAY + 3 * HOUR),
        NextTurn::Wait(11 * DAY + 2 * HOUR)
    );
    assert_eq!(
        next(&run, 11 * DAY + 2 * HOUR),
        NextTurn::Begin(11 * DAY + 2 * HOUR)
    );
    assert_eq!(run.next(&[], 11 * DAY), NextTurn::Never);
}

#[test]
fn a_missed_run_is_made_up_once_within_a_day() {
    let run = Run::first_seen(10 * DAY).begun(10 * DAY + 2 * HOUR, 10 * DAY + 2 * HOUR);
    let run = run.done(10 * DAY, "done".to_owned());
    let back = 13 * DAY + 9 * HOUR;
    let missed = 13 * DAY + 2 * HOUR;
    assert_eq!(next(&run, back), NextTurn::Begin(missed), "one of three");
    let made_up = run.begun(missed, back).done(back, "done".to_owned());
    assert_eq!(next(&made_up, back), NextTurn::Wait(14 * DAY + 2 * HOUR));
    // A weekly one that was missed by more than a day waits for its next time.
    let weekly = [10 * DAY, 17 * DAY];
    assert_eq!(
        Run::first_seen(9 * DAY).next(&weekly, 11 * DAY),
        NextTurn::Wait(17 * DAY)
    );
    assert_eq!(
        Run::first_seen(9 * DAY).next(&weekly, 11 * DAY - 1),
        NextTurn::Begin(10 * DAY)
    );
}

#[test]
fn a_run_by_hand_is_the_last_result_and_takes_no_turn() {
    let seen = Run::first_seen(10 * DAY);
    let failed = seen.by_hand(10 * DAY + HOUR, "no model".to_owned(), true);
    assert!(failed.failing && failed.finished);
    let run = failed.by_hand(10 * DAY + HOUR + 1, "done".to_owned(), false);
    assert_eq!(run.tried_at, Some(10 * DAY + HOUR + 1));
    assert_eq!((run.outcome.as_deref(), run.failing), (Some("done"), false));
    assert_eq!((run.covers_to, run.attempts), (None, 0));
    let turn = 10 * DAY + 2 * HOUR;
    assert_eq!(next(&run, turn), NextTurn::Begin(turn));
}

#[test]
fn a_failed_run_is_retried_with_back_off_then_given_up() {
    let turn = 10 * DAY + 2 * HOUR;
    let mut run = Run::first_seen(10 * DAY);
    let mut now = turn;
    let mut waited = Vec::new();
    loop {
        assert_eq!(next(&run, now), NextTurn::Begin(turn));
        run = run.begun(turn, now).failed("no".to_owned());
        if run.finished {
            break;
        }
        let NextTurn::Wait(again) = next(&run, now) else {
            panic!("{run:?}");
        };
        waited.push(again - now);
        now = again;
    }
    assert_eq!(waited, BACK_OFF);
    assert_eq!(next(&run, now), NextTurn::Wait(11 * DAY + 2 * HOUR));
    // The next day begins anew.
    let tomorrow = 11 * DAY + 2 * HOUR;
    assert_eq!(run.begun(tomorrow, tomorrow).attempts, 1);
}

#[test]
fn a_run_that_killed_the_host_is_retried() {
    let turn = 10 * DAY + 2 * HOUR;
    let before = Run::first_seen(9 * DAY).by_hand(9 * DAY, "done".to_owned(), false);
    let begun = before.begun(turn, turn);
    assert_eq!(
        (begun.outcome.as_deref(), begun.failing),
        (Some(INTERRUPTED), true)
    );
    assert_eq!(next(&begun, turn + 59), NextTurn::Wait(turn + 60));
    assert_eq!(next(&begun, turn + 60), NextTurn::Begin(turn));
    assert_eq!(
        next(&begun, turn + DAY),
        NextTurn::Begin(turn + DAY),
        "too old, and the next is due"
    );
    let put_off = begun.put_off(&before);
    assert_eq!((put_off.attempts, put_off.finished), (0, false));
    assert_eq!(
        (put_off.outcome.as_deref(), put_off.failing),
        (Some("done"), false)
    );
    assert_eq!(next(&put_off, turn + 60), NextTurn::Begin(turn));
}

#[test]
fn clock_changes_neither_repeat_nor_block_runs() {
    let turn = 10 * DAY + 2 * HOUR;
    let run = Run::first_seen(10 * DAY)
        .begun(turn, turn)
        .done(turn, "done".to_owned());
    for now in [turn, turn - HOUR, turn + HOUR] {
        assert_eq!(next(&run, now), NextTurn::Wait(11 * DAY + 2 * HOUR));
    }
    let ahead = Run {
        turn: turn + 365 * DAY,
        ..run
    };
    assert_eq!(next(&ahead, turn - 1), NextTurn::Wait(turn));
}

proptest! {
    #[test]
    fn no_run_succeeds_twice(steps in proptest::collection::vec((0i64..2 * DAY, 0u8..3), 1..60)) {
        let mut now = 10 * DAY;
        let mut run = Run::first_seen(now);
        let mut done = std::collections::BTreeSet::new();
        for (later, what) in steps {
            now += later;
            match next(&run, now) {
                NextTurn::Begin(turn) => {
                    prop_assert!(turn <= now && now - turn < MADE_UP_WITHIN);
                    prop_assert!(!done.contains(&turn), "{turn} again");
                    run = run.begun(turn, now);
                    match what {
                        0 => {
                            done.insert(turn);
                            run = run.done(now, String::new());
                        }
                        1 => run = run.failed(String::new()),
                        _ => {}
                    }
                }
                NextTurn::Wait(until) => prop_assert!(until > now),
                NextTurn::Never => prop_assert!(false),
            }
        }
    }
}
