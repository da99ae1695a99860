//! The times at which a schedule runs, by the calendar.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use tierbar_core::config::ScheduleConfig;

/// Returns a schedule's times from two days ago to more than a week ahead, in seconds since 1970, one per day. A time that
/// the change of clocks skips moves by the skipped amount; of a repeated time, the first counts.
pub(super) fn turns_around(schedule: &ScheduleConfig, now: Timestamp, zone: &TimeZone) -> Vec<i64> {
    let today = now.to_zoned(zone.clone()).date();
    let (hour, minute) = schedule.at.hour_and_minute();
    let (Ok(hour), Ok(minute)) = (i8::try_from(hour), i8::try_from(minute)) else {
        return Vec::new();
    };
    let turn = |offset: i64| {
        let date = today
            .checked_add(SignedDuration::from_hours(24 * offset))
            .ok()?;
        let weekday = date.weekday().to_monday_zero_offset();
        let mut days = schedule.days.iter();
        let wanted = schedule.days.is_empty() || days.any(|day| *day as i8 == weekday);
        let turn = date.at(hour, minute, 0, 0).to_zoned(zone.clone()).ok()?;
        wanted.then(|| turn.timestamp().as_second())
    };
    (-2..=8).filter_map(turn).collect()
}

pub(super) fn date_of(turn: i64, zone: &TimeZone) -> Date {
    Timestamp::from_second(turn)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned(zone.clone())
        .date()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, datetime};
    use tierbar_core::schedule::{NextTurn, Run};

    fn schedule(at: &str, days: &str) -> ScheduleConfig {
        let text = format!(
            "at = \"{at}\"\ndays = {days}\ntask = \"brief\"\nsource = \"/a\"\nto = \"/b\"\n"
        );
        toml::from_str(&text).unwrap()
    }

    /// New York's rules: in 2026 forward on 8 March, back on 1 November, both at two.
    fn new_york() -> TimeZone {
        TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap()
    }

    fn at(zone: &TimeZone, year: i16, month: i8, day: i8, hour: i8, minute: i8) -> Timestamp {
        let civil = datetime(year, month, day, hour, minute, 0, 0);
        civil.to_zoned(zone.clone()).unwrap().timestamp()
    }

    /// Starts what is due in each minute of some days, as a host that never sleeps does.
    fn begun(schedule: &ScheduleConfig, from: Timestamp, hours: i64) -> Vec<String> {
        let zone = new_york();
        let mut run = Run::first_seen(from.as_second());
        let mut begun = Vec::new();
        for minute in 0..hours * 60 {
            let now = Timestamp::from_second(from.as_second() + minute * 60).unwrap();
            let turns = turns_around(schedule, now, &zone);
            if let NextTurn::Begin(turn) = run.next(&turns, now.as_second()) {
                let shown = now.to_zoned(zone.clone());
                begun.push(shown.strftime("%m-%d %H:%M %Z").to_string());
                run = run
                    .begun(turn, now.as_second())
                    .done(now.as_second(), String::new());
            }
        }
        begun
    }

    #[test]
    fn a_time_skipped_by_dst_runs_an_hour_later() {
        let zone = new_york();
        let from = at(&zone, 2026, 3, 7, 0, 0);
        assert_eq!(
            begun(&schedule("02:30", "[]"), from, 72),
            ["03-07 02:30 EST", "03-08 03:30 EDT", "03-09 02:30 EDT"]
        );
    }

    #[test]
    fn a_time_repeated_by_dst_runs_once() {
        let zone = new_york();
        let from = at(&zone, 2026, 10, 31, 0, 0);
        assert_eq!(
            begun(&schedule("01:30", "[]"), from, 73),
            ["10-31 01:30 EDT", "11-01 01:30 EDT", "11-02 01:30 EST"]
        );
    }

    #[test]
    fn weekdays_are_those_of_the_run() {
        let zone = new_york();
        // A Sunday.
        let from = at(&zone, 2026, 11, 22, 12, 0);
        assert_eq!(
            begun(&schedule("00:00", "[\"mon\", \"thu\"]"), from, 9 * 24),
            ["11-23 00:00 EST", "11-26 00:00 EST", "11-30 00:00 EST"]
        );
        let monday = turns_around(&schedule("23:59", "[\"mon\"]"), from, &zone);
        assert_eq!(date_of(monday[0], &zone), date(2026, 11, 23));
    }
}
