use super::*;
use crate::figures::SlowFigures;
use tierbar_core::reading::{Power, Thermal};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
const NIGHT_MS: u64 = 8 * 3_600_000;

/// An idle machine of 16 GiB with half of it available, this long after its start.
fn idle(awake_ms: u64) -> Figures {
    Figures {
        awake_ms,
        ram_total_bytes: Some(16 * GIB),
        ram_available_bytes: Some(8 * GIB),
        pressure: Some(Pressure::Normal),
        swap_total_bytes: Some(2 * GIB),
        swap_used_bytes: Some(GIB),
        swapped_out_bytes: Some(0),
        cpu: Some(Ticks {
            busy: 7,
            total: 7 + awake_ms / 10,
        }),
        disk_read_bytes: Some(5),
        disk_written_bytes: Some(3),
        ..Figures::default()
    }
}

fn judge() -> ReadingJudge {
    ReadingJudge::new(false, None)
}

fn doubted(reading: &Reading) -> Vec<Figure> {
    reading.doubts.iter().map(|doubt| doubt.figure).collect()
}

#[test]
fn constant_figures_of_an_idle_machine_are_trusted() {
    let mut judge = judge();
    for second in 0..7200 {
        let reading = judge.judge(&idle(second * 1000));
        assert_eq!(reading.doubts, []);
        assert_eq!(reading.ram_available_bytes, Some(8 * GIB));
        assert_eq!(reading.swap_used_bytes, Some(GIB));
        assert_eq!(reading.swap_growth_bytes_per_minute, Some(0));
        assert_eq!(reading.at_ms, second * 1000);
    }
}

#[test]
fn frozen_counters_make_all_figures_unknown() {
    let mut judge = judge();
    let still = |awake_ms| Figures {
        awake_ms,
        ..idle(1000)
    };
    judge.judge(&idle(1000));
    // Two readings in a moment prove nothing.
    assert_eq!(judge.judge(&still(1001)).doubts, []);
    assert_eq!(judge.judge(&still(2999)).ram_available_bytes, Some(8 * GIB));
    let reading = judge.judge(&still(3000));
    assert_eq!(doubted(&reading), [Figure::All]);
    assert!(
        reading.doubts[0].why.contains("have not moved for 2 s"),
        "{reading:?}"
    );
    let unknown = Reading {
        at_ms: 3000,
        doubts: reading.doubts.clone(),
        ..Reading::default()
    };
    assert_eq!(reading, unknown);
    // The ticks advance again.
    let reading = judge.judge(&idle(4000));
    assert_eq!(
        (doubted(&reading), reading.ram_available_bytes),
        (vec![], Some(8 * GIB))
    );
}

#[test]
fn only_counters_that_disappear_count_as_frozen() {
    let untold = |awake_ms| Figures {
        cpu: None,
        ..idle(awake_ms)
    };
    let mut never = judge();
    for second in 0..60 {
        let reading = never.judge(&untold(second * 1000));
        assert_eq!(reading.doubts, []);
    }
    let mut no_longer = judge();
    no_longer.judge(&idle(0));
    assert_eq!(no_longer.judge(&untold(1000)).doubts, []);
    let reading = no_longer.judge(&untold(2000));
    assert_eq!(doubted(&reading), [Figure::All]);
    assert!(
        reading.doubts[0].why.contains("has not reported"),
        "{reading:?}"
    );
}

#[test]
fn a_missing_figure_is_unknown_with_a_reason() {
    let nothing = Figures {
        cpu: idle(0).cpu,
        ..Figures::default()
    };
    let reading = judge().judge(&nothing);
    assert_eq!(
        doubted(&reading),
        [
            Figure::RamTotal,
            Figure::RamAvailable,
            Figure::Pressure,
            Figure::SwapUsed
        ]
    );
    assert_eq!(reading.ram_total_bytes, None);
    assert_eq!(reading.ram_available_bytes, None);
    assert_eq!(reading.pressure, None);
    assert_eq!(reading.swap_used_bytes, None);
    assert_eq!(reading.swap_growth_bytes_per_minute, None);
}

#[test]
fn more_available_than_total_memory_is_unknown() {
    let absurd = Figures {
        ram_available_bytes: Some(16 * GIB + 1),
        ..idle(0)
    };
    for simulated in [None, Some(64 * GIB)] {
        let reading = ReadingJudge::new(false, simulated).judge(&absurd);
        assert_eq!(doubted(&reading), [Figure::RamAvailable]);
        assert_eq!(reading.ram_available_bytes, None);
        assert!(reading.ram_total_bytes.is_some());
        // The kernel's own grade is still known.
        assert_eq!(reading.pressure, Some(Pressure::Normal));
    }
}

#[test]
fn an_impossible_total_makes_available_unknown_too() {
    for total in [0, MOST_BYTES + 1] {
        let reading = judge().judge(&Figures {
            ram_total_bytes: Some(total),
            ..idle(0)
        });
        assert_eq!(doubted(&reading), [Figure::RamTotal, Figure::RamAvailable]);
        assert_eq!(
            (reading.ram_total_bytes, reading.ram_available_bytes),
            (None, None)
        );
    }
}

#[test]
fn a_changed_total_is_believed_once_it_is_stable() {
    let mut judge = judge();
    let sized = |second: u64, gib: u64| Figures {
        ram_total_bytes: Some(gib * GIB),
        ram_available_bytes: Some(GIB),
        ..idle(second * 1000)
    };
    let mut totals = |gibs: &[u64]| {
        gibs.iter()
            .zip(0..)
            .map(|(gib, second)| {
                let reading = judge.judge(&sized(second, *gib));
                assert_eq!(
                    reading.ram_total_bytes.is_none(),
                    !reading.doubts.is_empty()
                );
                reading.ram_total_bytes.map(|bytes| bytes / GIB)
            })
            .collect::<Vec<_>>()
    };
    // A glitch, the same one twice, then a lasting new limit, and one that changes a little.
    assert_eq!(
        totals(&[16, 512, 512, 16, 512, 8, 8, 8, 8]),
        [
            Some(16),
            None,
            None,
            Some(16),
            None,
            None,
            None,
            Some(8),
            Some(8)
        ]
    );
    let reading = judge.judge(&Figures {
        ram_total_bytes: Some(8 * GIB + GIB / 2),
        ram_available_bytes: Some(GIB),
        ..idle(9000)
    });
    assert_eq!(reading.ram_total_bytes, Some(8 * GIB + GIB / 2));
}

#[test]
fn impossible_swap_is_unknown_and_no_growth() {
    let mut judge = judge();
    judge.judge(&idle(0));
    let reading = judge.judge(&Figures {
        swap_used_bytes: Some(2 * GIB + 1),
        ..idle(1000)
    });
    assert_eq!(doubted(&reading), [Figure::SwapUsed]);
    assert_eq!(reading.swap_used_bytes, None);
    assert_eq!(reading.swap_growth_bytes_per_minute, None);
    assert_eq!(
        judge.judge(&idle(2000)).swap_growth_bytes_per_minute,
        Some(0)
    );
    // Without a known total, only a use beyond every machine is absurd.
    let unbounded = |used| Figures {
        swap_total_bytes: None,
        swap_used_bytes: Some(used),
        ..idle(3000)
    };
    assert_eq!(
        judge.judge(&unbounded(3 * GIB)).swap_used_bytes,
        Some(3 * GIB)
    );
    assert_eq!(
        judge.judge(&unbounded(MOST_BYTES + 1)).swap_used_bytes,
        None
    );
}

#[test]
fn swap_growth_excludes_sleep() {
    let mut judge = judge();
    let at = |awake_ms, slept_ms, used| Figures {
        slept_ms,
        swap_used_bytes: Some(used),
        ..idle(awake_ms)
    };
    let growth = |reading: Reading| reading.swap_growth_bytes_per_minute.unwrap();
    judge.judge(&at(0, 0, 0));
    assert_eq!(
        growth(judge.judge(&at(1000, 0, 100 * MIB))),
        100 * MIB as i64
    );
    let woken = judge.judge(&at(2000, NIGHT_MS, GIB));
    assert_eq!(woken.at_ms, NIGHT_MS + 2000);
    assert_eq!(woken.swap_out_bytes_per_second, None, "a rate over a sleep");
    assert_eq!(woken.doubts, []);
    assert_eq!(growth(woken), 0);
    assert_eq!(
        growth(judge.judge(&at(3000, NIGHT_MS, GIB + 5 * MIB))),
        5 * MIB as i64
    );
}

#[test]
fn swap_growth_includes_a_gap_without_sleep() {
    let mut judge = judge();
    let growing = |awake_ms, used| Figures {
        swap_used_bytes: Some(used),
        ..idle(awake_ms)
    };
    judge.judge(&growing(0, 0));
    let thrashed = judge.judge(&growing(45_000, GIB));
    assert_eq!(thrashed.swap_growth_bytes_per_minute, Some(GIB as i64));
}

#[test]
fn rates_cover_the_time_between_readings() {
    let mut judge = judge();
    let first = judge.judge(&idle(0));
    assert_eq!(first.swap_out_bytes_per_second, None);
    let moved = |awake_ms| Figures {
        swapped_out_bytes: Some(40 * MIB),
        disk_read_bytes: Some(5 + 8 * MIB),
        disk_written_bytes: Some(3 + 2 * MIB),
        ..idle(awake_ms)
    };
    let expected = |reading: &Reading| {
        assert_eq!(reading.swap_out_bytes_per_second, Some(20 * MIB));
        assert_eq!(reading.disk_read_bytes_per_second, Some(4 * MIB));
        assert_eq!(reading.disk_written_bytes_per_second, Some(MIB));
        assert_eq!(reading.doubts, []);
    };
    expected(&judge.judge(&moved(2000)));
    // A moment later the rates are repeated: that nothing moved in between is noise.
    expected(&judge.judge(&moved(2001)));
}

#[test]
fn impossible_counters_give_no_rate() {
    for (before, now) in [(9, 8), (0, u64::MAX)] {
        let mut judge = judge();
        let counted = |awake_ms, counter| Figures {
            disk_read_bytes: Some(counter),
            disk_written_bytes: Some(counter),
            ..idle(awake_ms)
        };
        judge.judge(&counted(0, before));
        let reading = judge.judge(&counted(1000, now));
        assert_eq!(doubted(&reading), [Figure::DiskReads, Figure::DiskWrites]);
        assert_eq!(reading.disk_read_bytes_per_second, None);
        assert_eq!(reading.disk_written_bytes_per_second, None);
        assert_eq!(reading.swap_out_bytes_per_second, Some(0));
    }
}

#[test]
fn a_clock_that_stands_still_or_runs_back_is_tolerated() {
    let mut judge = judge();
    judge.judge(&idle(5000));
    judge.judge(&idle(6000));
    for awake_ms in [6000, 0, 6001] {
        let reading = judge.judge(&idle(awake_ms));
        assert_eq!(
            (doubted(&reading), reading.swap_out_bytes_per_second),
            (vec![], Some(0))
        );
    }
}

#[test]
fn pressure_rises_as_the_share_of_available_memory_falls() {
    let by = |percent| pressure_by_share(percent * GIB, 100 * GIB, false);
    assert_eq!(by(50), Pressure::Normal);
    assert_eq!(by(10), Pressure::Normal);
    assert_eq!(by(9), Pressure::Warning);
    assert_eq!(by(4), Pressure::Warning);
    assert_eq!(by(3), Pressure::Critical);
    assert_eq!(by(0), Pressure::Critical);

    // A share near the bound does not raise and lower it in turn.
    let mut judge = judge();
    let mut level = |thousandths| {
        let figures = Figures {
            ram_available_bytes: Some(16 * GIB * thousandths / 1000),
            ..idle(0)
        };
        judge.judge(&figures).pressure.unwrap()
    };
    assert_eq!(level(45), Pressure::Warning);
    assert_eq!(level(39), Pressure::Critical);
    assert_eq!(level(49), Pressure::Critical);
    assert_eq!(level(51), Pressure::Warning);
    assert_eq!(level(49), Pressure::Warning);
}

#[test]
fn availability_grades_pressure_where_the_kernel_does_not() {
    let level = |kernel_grades, simulated, kernel| {
        let scarce = Figures {
            ram_available_bytes: Some(GIB / 8),
            pressure: kernel,
            ..idle(0)
        };
        ReadingJudge::new(kernel_grades, simulated)
            .judge(&scarce)
            .pressure
    };
    let kernel = Some(Pressure::Normal);
    assert_eq!(level(true, None, kernel), kernel);
    assert_eq!(level(false, None, kernel), Some(Pressure::Critical));
    // The kernel does not know the simulated machine.
    assert_eq!(level(true, Some(8 * GIB), kernel), Some(Pressure::Critical));
    // Without the kernel's level, the share decides.
    assert_eq!(level(true, None, None), Some(Pressure::Critical));
}

#[test]
fn a_simulated_total_has_the_real_use() {
    let simulated = |total: u64, available: u64| {
        let figures = Figures {
            ram_total_bytes: Some(total * GIB),
            ram_available_bytes: Some(available * GIB),
            ..idle(0)
        };
        let reading = ReadingJudge::new(false, Some(16 * GIB)).judge(&figures);
        assert_eq!(reading.ram_total_bytes, Some(16 * GIB));
        (
            reading.ram_available_bytes.unwrap() / GIB,
            reading.pressure.unwrap(),
        )
    };
    assert_eq!(simulated(64, 60), (12, Pressure::Normal));
    assert_eq!(simulated(8, 7), (14, Pressure::Normal));
    // A real machine that is short is not hidden by a larger one.
    assert_eq!(simulated(8, 1).0, 2);
    // Smaller than the memory in use: nothing is available.
    assert_eq!(simulated(64, 8), (0, Pressure::Critical));
    let unread = Figures {
        ram_total_bytes: None,
        ..idle(0)
    };
    let reading = ReadingJudge::new(false, Some(16 * GIB)).judge(&unread);
    assert_eq!(reading.ram_total_bytes, Some(16 * GIB));
    assert_eq!(reading.ram_available_bytes, None);
}

#[test]
fn an_announced_level_lasts_ten_seconds_or_until_lowered() {
    let mut judge = judge();
    let idle = |awake_ms| Figures {
        ram_available_bytes: Some(2 * GIB),
        ..idle(awake_ms)
    };
    judge.announce(Pressure::Warning, 1000);
    assert_eq!(judge.judge(&idle(1000)).pressure, Some(Pressure::Warning));
    assert_eq!(judge.judge(&idle(10_999)).pressure, Some(Pressure::Warning));
    assert_eq!(judge.judge(&idle(11_000)).pressure, Some(Pressure::Normal));
    judge.announce(Pressure::Critical, 12_000);
    judge.announce(Pressure::Normal, 12_500);
    assert_eq!(judge.judge(&idle(13_000)).pressure, Some(Pressure::Normal));
}

#[test]
fn stalls_are_no_pressure_while_memory_is_plentiful() {
    let level = |kernel_grades, available| {
        let stalled = Figures {
            ram_available_bytes: available,
            pressure: Some(Pressure::Warning),
            ..idle(0)
        };
        let mut judge = ReadingJudge::new(kernel_grades, None);
        judge.announce(Pressure::Critical, 0);
        judge.judge(&stalled).pressure.unwrap()
    };
    // Of 16 GiB. Another group's limit, or a model larger than memory that is read through its mapping.
    assert_eq!(level(false, Some(5 * GIB)), Pressure::Normal);
    assert_eq!(level(false, Some(3 * GIB)), Pressure::Critical);
    // Conservative where it is not known.
    assert_eq!(level(false, None), Pressure::Critical);
    // A kernel that grades has counted what is available.
    assert_eq!(level(true, Some(5 * GIB)), Pressure::Critical);
}

#[test]
fn absurd_battery_figures_are_unknown() {
    let with = |level_percent| Figures {
        slow: SlowFigures {
            full_screen: Some(true),
            thermal: Some(Thermal::Fair),
            power: Some(Power {
                on_battery: true,
                level_percent,
            }),
        },
        ..idle(0)
    };
    let reading = judge().judge(&with(Some(100)));
    assert_eq!(reading.doubts, []);
    assert_eq!(reading.thermal, Some(Thermal::Fair));
    assert_eq!(reading.power.unwrap().level_percent, Some(100));
    let reading = judge().judge(&with(Some(101)));
    assert_eq!(
        (doubted(&reading), reading.power),
        (vec![Figure::Power], None)
    );
}
