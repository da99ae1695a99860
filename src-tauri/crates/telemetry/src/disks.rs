//! What the disks read and write, now and over a day.

use tierbar_core::{paging::DiskTraffic, reading::Reading};

/// Over a shorter time, a day's writing would be guessed from a few bursts.
const LEAST_MS: u64 = 10 * 60 * 1000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Sums up readings since the first. It has one owner.
#[derive(Debug, Default)]
pub struct DiskUse {
    first_ms: Option<u64>,
    last_ms: u64,
    /// Bytes per second of the last reading: read, and written.
    rates: Option<(u64, u64)>,
    /// Bytes written times 1,000, since rates cover parts of a second.
    written: u128,
}

impl DiskUse {
    pub fn record(&mut self, reading: &Reading) {
        if reading.at_ms < self.last_ms {
            // It stands for one that could not be taken.
            self.rates = None;
            return;
        }
        let first = *self.first_ms.get_or_insert(reading.at_ms);
        let elapsed = reading.at_ms - self.last_ms.max(first);
        self.last_ms = reading.at_ms;
        let written = reading.disk_written_bytes_per_second;
        // A rate that is unknown, as in the first reading after a sleep, adds nothing.
        self.written += u128::from(written.unwrap_or(0)) * u128::from(elapsed);
        self.rates = reading.disk_read_bytes_per_second.zip(written);
    }

    /// Returns the traffic of the last reading; `None` if it is unknown.
    pub fn traffic(&self) -> Option<DiskTraffic> {
        let (read, written) = self.rates?;
        let elapsed = self.last_ms.saturating_sub(self.first_ms?);
        let per_day = self.written * u128::from(DAY_MS) / 1000 / u128::from(elapsed.max(1));
        Some(DiskTraffic {
            read_bytes_per_second: read,
            written_bytes_per_second: written,
            written_bytes_per_day: (elapsed >= LEAST_MS)
                .then(|| u64::try_from(per_day).unwrap_or(u64::MAX)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn reading(at_ms: u64, written: Option<u64>) -> Reading {
        Reading {
            at_ms,
            disk_read_bytes_per_second: Some(7),
            disk_written_bytes_per_second: written,
            ..Reading::default()
        }
    }

    #[test]
    fn a_days_writing_is_the_mean_since_the_start() {
        let mut disks = DiskUse::default();
        assert_eq!(disks.traffic(), None);
        // The rate of a host's first reading is unknown.
        disks.record(&reading(1000, None));
        assert_eq!(disks.traffic(), None);
        for minute in 1..=9 {
            disks.record(&reading(1000 + minute * MINUTE_MS, Some(100)));
        }
        let early = disks.traffic().unwrap();
        assert_eq!(
            (early.read_bytes_per_second, early.written_bytes_per_second),
            (7, 100)
        );
        assert_eq!(early.written_bytes_per_day, None);
        disks.record(&reading(1000 + 10 * MINUTE_MS, Some(1100)));
        let then = disks.traffic().unwrap();
        assert_eq!(then.written_bytes_per_second, 1100);
        // 200 bytes a second in the mean.
        assert_eq!(then.written_bytes_per_day, Some(200 * 86_400));
    }

    #[test]
    fn a_machine_that_sleeps_writes_nothing_meanwhile() {
        let mut disks = DiskUse::default();
        disks.record(&reading(MINUTE_MS, None));
        disks.record(&reading(11 * MINUTE_MS, Some(300)));
        disks.record(&reading(31 * MINUTE_MS, None));
        assert_eq!(disks.traffic(), None);
        disks.record(&reading(31 * MINUTE_MS + 1, Some(0)));
        let per_day = disks.traffic().unwrap().written_bytes_per_day.unwrap();
        assert_eq!(per_day.div_ceil(86_400), 100);
    }

    #[test]
    fn a_reading_that_failed_counts_for_nothing() {
        let mut disks = DiskUse::default();
        disks.record(&reading(90 * MINUTE_MS, None));
        disks.record(&reading(100 * MINUTE_MS, Some(100)));
        disks.record(&Reading::default());
        assert_eq!(disks.traffic(), None);
        disks.record(&reading(110 * MINUTE_MS, Some(100)));
        let per_day = disks.traffic().unwrap().written_bytes_per_day;
        assert_eq!(per_day, Some(100 * 86_400));
    }
}
