use super::*;
use crate::status::Pressure::{Critical, Normal, Warning};

const TOTAL: u64 = 16 * GIB;

/// A guard that is shown a reading each second.
struct GuardTest {
    guard: MemoryGuard,
    second: u64,
    loading: bool,
}

impl GuardTest {
    fn new() -> Self {
        Self {
            guard: MemoryGuard::default(),
            second: 100,
            loading: false,
        }
    }

    fn sees(&mut self, reading: Reading) -> Alarm {
        self.judges(reading).alarm
    }

    fn judges(&mut self, reading: Reading) -> Judgment {
        self.second += 1;
        let at_ms = self.second * 1000;
        let reading = Reading { at_ms, ..reading };
        self.guard.observe(&reading, self.loading)
    }

    /// Returns the alarms of this many seconds.
    fn sees_for(&mut self, seconds: usize, reading: &Reading) -> Vec<Alarm> {
        let each = (0..seconds).map(|_| self.sees(reading.clone()));
        each.collect()
    }

    /// The first of the next seconds, from 1, in which the alarm is this.
    fn seconds_until(&mut self, alarm: Alarm, reading: &Reading) -> Option<usize> {
        (1..1000).find(|_| self.sees(reading.clone()) == alarm)
    }
}

fn reading(pressure: crate::status::Pressure, available: u64, growth: i64) -> Reading {
    Reading {
        ram_total_bytes: Some(TOTAL),
        ram_available_bytes: Some(available),
        pressure: Some(pressure),
        swap_growth_bytes_per_minute: Some(growth),
        ..Reading::default()
    }
}

fn calm() -> Reading {
    reading(Normal, 8 * GIB, 0)
}

fn swapping() -> Reading {
    reading(Warning, 3 * GIB, 300 << 20)
}

#[test]
fn critical_pressure_holds_then_evicts_idle_then_leased() {
    use Alarm::{Critical as Last, Hold, Unload};
    let mut shown = GuardTest::new();
    shown.sees(calm());
    let alarms = shown.sees_for(7, &reading(Critical, 3 * GIB, 0));
    assert_eq!(alarms, [Hold, Unload, Unload, Unload, Unload, Last, Last]);
}

#[test]
fn little_available_memory_is_critical_unless_the_kernel_grades() {
    let at = |pressure, available| GuardTest::new().sees(reading(pressure, available, 0));
    assert_eq!(at(Warning, TOTAL / 1000), Alarm::None);
    assert_eq!(at(Normal, TOTAL / 1000), Alarm::None);
    let ungraded = |share| GuardTest::new().sees(ungraded(share));
    assert_eq!(ungraded(39), Alarm::Hold);
    assert_eq!(ungraded(41), Alarm::None);
}

/// A reading without a pressure, of which this many thousandths are available.
fn ungraded(share: u64) -> Reading {
    Reading {
        pressure: None,
        ..reading(Normal, TOTAL * share / 1000, 0)
    }
}

#[test]
fn a_load_may_move_others_out_and_ends_at_critical_pressure() {
    use Alarm::{Hold, None, Unload};
    let mut shown = GuardTest::new();
    shown.loading = true;
    assert!(
        shown
            .sees_for(20, &swapping())
            .iter()
            .all(|&alarm| alarm == None)
    );
    assert_eq!(
        shown.sees(reading(Warning, 3 * GIB, 1 << 30)),
        Hold,
        "a flood"
    );
    shown = GuardTest::new();
    shown.loading = true;
    assert_eq!(shown.sees(reading(Critical, 3 * GIB, 0)), Unload);
    // What the load moved out stays in the growth for a minute.
    shown = GuardTest::new();
    shown.loading = true;
    shown.sees(swapping());
    shown.loading = false;
    assert_eq!(shown.seconds_until(Hold, &swapping()), Some(60));
}

#[test]
fn swap_growth_acts_later_than_critical_pressure() {
    let mut shown = GuardTest::new();
    assert_eq!(shown.sees(swapping()), Alarm::Hold);
    assert_eq!(shown.seconds_until(Alarm::Unload, &swapping()), Some(5));
    assert_eq!(shown.seconds_until(Alarm::Critical, &swapping()), Some(25));
}

#[test]
fn full_swap_growth_or_pressure_alone_is_no_alarm() {
    let full = Reading {
        swap_used_bytes: Some(8 * GIB),
        ..calm()
    };
    for harmless in [
        full,
        reading(Normal, 8 * GIB, 300 << 20),
        reading(Warning, 3 * GIB, 0),
        reading(Normal, 8 * GIB, -(4 << 30)),
    ] {
        let alarms = GuardTest::new().sees_for(60, &harmless);
        assert!(
            alarms.iter().all(|&alarm| alarm == Alarm::None),
            "{harmless:?}"
        );
    }
    let flood = reading(Normal, 8 * GIB, 1 << 30);
    assert_eq!(GuardTest::new().sees(flood), Alarm::Hold);
}

#[test]
fn tight_memory_is_reported_and_stops_preloading() {
    let mut shown = GuardTest::new();
    let tight = shown.judges(reading(Warning, 2 * GIB, 0));
    assert_eq!(tight.alarm, Alarm::None);
    assert!(tight.reserved);
    assert_eq!(
        tight.why.as_deref(),
        Some("memory is tight: the system reports pressure, 2.0 GiB of 16.0 GiB are available")
    );
    let calm: Vec<_> = (0..30).map(|_| shown.judges(calm())).collect();
    assert!(calm.iter().all(|judged| judged.why.is_none()));
    let (last, first) = calm.split_last().unwrap();
    assert!(first.iter().all(|judged| judged.reserved), "it may hover");
    assert_eq!(*last, Judgment::default());
}

#[test]
fn an_alarm_ends_after_ten_calm_seconds() {
    let mut shown = GuardTest::new();
    shown.sees(reading(Critical, 3 * GIB, 0));
    assert_eq!(shown.seconds_until(Alarm::None, &calm()), Some(11));

    shown = GuardTest::new();
    shown.sees(swapping());
    let hovers = reading(Warning, 3 * GIB, 200 << 20);
    let alarms = shown.sees_for(60, &hovers);
    assert!(alarms.iter().all(|&alarm| alarm > Alarm::None));
    assert_eq!(
        shown.seconds_until(Alarm::None, &reading(Warning, 3 * GIB, 100 << 20)),
        Some(11)
    );
}

#[test]
fn one_bad_second_restarts_only_the_calm() {
    let mut shown = GuardTest::new();
    shown.sees_for(2, &reading(Critical, 3 * GIB, 0));
    shown.sees_for(9, &calm());
    assert_eq!(shown.sees(reading(Critical, 3 * GIB, 0)), Alarm::Unload);
    shown.sees_for(9, &calm());
    assert_eq!(shown.sees(calm()), Alarm::Unload);
    assert_eq!(shown.sees(calm()), Alarm::None);
}

#[test]
fn a_repeated_alarm_needs_a_longer_calm() {
    let mut shown = GuardTest::new();
    let needed: Vec<_> = (0..8)
        .map(|_| {
            shown.sees(reading(Critical, 3 * GIB, 0));
            shown.seconds_until(Alarm::None, &calm())
        })
        .map(Option::unwrap)
        .collect();
    assert_eq!(needed, [11, 21, 41, 81, 161, 321, 321, 321]);
    shown.sees_for(301, &calm());
    shown.sees(reading(Critical, 3 * GIB, 0));
    assert_eq!(shown.seconds_until(Alarm::None, &calm()), Some(11));
}

#[test]
fn unknown_figures_keep_the_level_and_stop_preloading() {
    let unknown = Reading::default();
    let mut shown = GuardTest::new();
    let judged = shown.judges(unknown.clone());
    assert_eq!((judged.alarm, judged.reserved), (Alarm::None, true));
    shown.sees(reading(Critical, 3 * GIB, 0));
    let alarms = shown.sees_for(60, &unknown);
    assert!(alarms.iter().all(|&alarm| alarm == Alarm::Hold));
    let no_growth = Reading {
        swap_growth_bytes_per_minute: None,
        ..calm()
    };
    assert_eq!(shown.seconds_until(Alarm::None, &no_growth), Some(11));

    let absurd = Reading {
        ram_total_bytes: Some(0),
        ram_available_bytes: Some(u64::MAX),
        swap_growth_bytes_per_minute: Some(i64::MIN),
        ..calm()
    };
    let judged = GuardTest::new().judges(absurd);
    assert_eq!((judged.alarm, judged.reserved), (Alarm::None, true));
}

#[test]
fn sleep_and_a_clock_set_back_add_no_time() {
    let mut shown = GuardTest::new();
    shown.sees(reading(Critical, 3 * GIB, 0));
    // The sleep counts as a second.
    shown.second += 8 * 3600;
    assert_eq!(shown.sees(reading(Critical, 3 * GIB, 0)), Alarm::Unload);
    assert_eq!(
        shown.seconds_until(Alarm::Critical, &reading(Critical, 3 * GIB, 0)),
        Some(4)
    );
    shown.second += 8 * 3600;
    assert_eq!(shown.sees(calm()), Alarm::Critical);
    shown.second -= 4 * 3600;
    assert_eq!(shown.seconds_until(Alarm::None, &calm()), Some(11));
}

#[test]
fn two_readings_of_one_moment_forget_nothing() {
    let mut shown = GuardTest::new();
    let critical = reading(Critical, 3 * GIB, 0);
    shown.sees_for(5, &critical);
    shown.second -= 1;
    assert_eq!(shown.sees(critical.clone()), Alarm::Unload);
    assert_eq!(shown.sees(critical), Alarm::Critical);
}

#[test]
fn an_alarms_message_has_its_figures() {
    let mut shown = GuardTest::new();
    let why = shown.judges(swapping()).why;
    assert_eq!(
        why.as_deref(),
        Some(
            "memory is low and swap is growing: the system reports pressure, 3.0 GiB of 16.0 GiB are available, swap \
             grew by 300 MiB in a minute"
        )
    );
    let why = shown.judges(calm()).why.unwrap();
    assert!(
        why.starts_with("memory was low a moment ago: 8.0 GiB"),
        "{why}"
    );
}

#[test]
fn nothing_is_judged_just_after_waking() {
    let mut shown = GuardTest::new();
    assert!(!shown.judges(calm()).reserved, "a start is no wake");
    shown.second += 3600;
    let reserved: Vec<_> = (0..40).map(|_| shown.judges(calm()).reserved).collect();
    let (first, rest) = reserved.split_at(30);
    assert!(first.iter().all(|&reserved| reserved));
    assert!(rest.iter().all(|&reserved| !reserved));
}

#[test]
fn missed_readings_of_a_thrashing_machine_still_alarm() {
    let mut shown = GuardTest::new();
    let critical = reading(Critical, GIB, 0);
    let mut alarms = Vec::new();
    for _ in 0..6 {
        alarms.push(shown.sees(critical.clone()));
        shown.second += 20;
    }
    assert_eq!(alarms[0], Alarm::Hold);
    assert_eq!(alarms[1], Alarm::Unload);
    assert_eq!(alarms[5], Alarm::Critical);
}

#[test]
fn a_single_swap_step_is_not_swap_growth() {
    let swapped = |rate| Reading {
        swap_out_bytes_per_second: Some(rate),
        ..reading(Warning, 3 * GIB, 2 << 30)
    };
    let mut shown = GuardTest::new();
    assert_eq!(shown.sees(swapped(400 << 20)), Alarm::Hold);
    // For a minute it still counts as growth.
    let alarms = shown.sees_for(59, &swapped(0));
    assert!(
        alarms.iter().all(|&alarm| alarm <= Alarm::Hold),
        "{alarms:?}"
    );
    assert_eq!(*alarms.last().unwrap(), Alarm::None);
}

/// Readings that a swap of this growth gives, with this much available.
fn grows(pressure: crate::status::Pressure, available: u64, growth: u64) -> Reading {
    reading(pressure, available, i64::try_from(growth).unwrap())
}

fn first_alarm(reading: Reading) -> Alarm {
    GuardTest::new().sees(reading)
}

fn first_reason(reading: Reading) -> Option<String> {
    GuardTest::new().judges(reading).why
}

#[test]
fn swap_growth_under_pressure_counts_from_256_mib() {
    let at = |growth| first_alarm(grows(Warning, 8 * GIB, growth));
    assert_eq!(at(256 * MIB - 1), Alarm::None);
    assert_eq!(at(256 * MIB), Alarm::Hold);
}

#[test]
fn swap_growth_without_pressure_counts_from_one_gibibyte() {
    let at = |growth| first_alarm(grows(Normal, 8 * GIB, growth));
    assert_eq!(at(GIB - 1), Alarm::None);
    assert_eq!(at(GIB), Alarm::Hold);
    let mild = |growth| first_reason(grows(Normal, 8 * GIB, growth));
    assert_eq!(mild(256 * MIB - 1), None);
    assert!(mild(256 * MIB).unwrap().starts_with("memory is tight"));
}

#[test]
fn memory_is_tight_below_eight_percent_available() {
    let at = |share: u64, growth| grows(Normal, TOTAL / 1000 * share, growth);
    assert!(first_reason(at(79, 0)).is_some());
    assert_eq!(first_reason(at(81, 0)), None);
    // Tight memory bears witness to swap growth as pressure does.
    assert_eq!(first_alarm(at(79, 256 * MIB)), Alarm::Hold);
    assert_eq!(first_alarm(at(81, 256 * MIB)), Alarm::None);
}

#[test]
fn an_alarm_ends_below_half_the_growth_that_raised_it() {
    let raised = || {
        let mut shown = GuardTest::new();
        assert_eq!(shown.sees(swapping()), Alarm::Hold);
        shown
    };
    let half = grows(Warning, 8 * GIB, 128 * MIB);
    assert_eq!(raised().seconds_until(Alarm::None, &half), None);
    let less = grows(Warning, 8 * GIB, 128 * MIB - 1);
    assert_eq!(raised().seconds_until(Alarm::None, &less), Some(11));
}

#[test]
fn a_sleep_adds_no_time_to_swapping_that_lasts() {
    let mut shown = GuardTest::new();
    assert_eq!(shown.sees(swapping()), Alarm::Hold);
    shown.second += 3600;
    assert_eq!(shown.sees(swapping()), Alarm::Hold);
    assert_eq!(shown.seconds_until(Alarm::Unload, &swapping()), Some(4));
    assert_eq!(shown.seconds_until(Alarm::Critical, &swapping()), Some(25));
}

#[test]
fn readings_more_than_fifteen_seconds_apart_have_a_gap() {
    let after = |seconds: u64| {
        let mut shown = GuardTest::new();
        shown.sees(calm());
        shown.second += seconds - 1;
        shown.judges(calm()).reserved
    };
    assert!(!after(15));
    assert!(after(16));
}

#[test]
fn an_alarm_within_five_minutes_of_the_last_is_a_relapse() {
    let calm_needed_after = |pause: usize| {
        let mut shown = GuardTest::new();
        let critical = reading(Critical, 3 * GIB, 0);
        shown.sees(critical.clone());
        shown.seconds_until(Alarm::None, &calm()).unwrap();
        shown.sees_for(pause - 1, &calm());
        shown.sees(critical);
        shown.seconds_until(Alarm::None, &calm()).unwrap()
    };
    assert_eq!(calm_needed_after(299), 21);
    assert_eq!(calm_needed_after(300), 11);
}

#[test]
fn an_ended_alarm_reports_what_it_did_or_why_nothing() {
    let ended = |shown: &mut GuardTest| {
        let mut readings = std::iter::repeat_with(|| shown.judges(calm()));
        readings.find_map(|judged| judged.ended).unwrap()
    };
    // A program takes all memory, and nothing can be read until it is gone.
    let mut shown = GuardTest::new();
    shown.sees(calm());
    assert_eq!(shown.sees(reading(Critical, GIB / 4, 0)), Alarm::Hold);
    shown.second += 12;
    let hog = ended(&mut shown);
    assert_eq!((hog.worst, hog.critical), (Alarm::Hold, Duration::ZERO));
    assert_eq!(
        hog.sentence(),
        "memory is no longer low after 23 s, 13 s of them without a reading; no model was unloaded, which takes 1 s of critical \
         memory (it was 0 s) or 5 s of growing swap (it was 0 s)"
    );
    // The next one is judged by itself.
    shown.sees_for(3, &reading(Critical, GIB / 4, 0));
    let second = ended(&mut shown);
    assert_eq!(
        (second.worst, second.critical, second.unread),
        (
            Alarm::Unload,
            Duration::from_secs(2),
            Duration::from_secs(1)
        )
    );
    let sentence = second.sentence();
    assert!(
        sentence.ends_with("s; idle models were to be unloaded"),
        "{sentence}"
    );
    assert_eq!(shown.judges(calm()).ended, None);
}
