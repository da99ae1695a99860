//! A token bucket: it has a capacity, is drawn from, and refills evenly. Its state is what is missing, so that it can be
//! stored and continue after a restart.

use std::time::Duration;

/// Times are milliseconds of one clock. If that is set back a little, nothing refills until it has caught up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    holds: f64,
    per_ms: f64,
    missing: f64,
    at_ms: u64,
}

impl Bucket {
    /// Creates a bucket that holds `holds` (at least 1), refills completely in `period`, and lacks `missing` at `at_ms`.
    pub fn new(holds: u64, period: Duration, missing: u64, at_ms: u64) -> Self {
        let holds = holds.max(1) as f64;
        Self {
            holds,
            per_ms: holds / period.as_millis().max(1) as f64,
            missing: missing as f64,
            at_ms,
        }
    }

    /// Checks whether there is one to take.
    ///
    /// # Errors
    /// How long until there is.
    pub fn check(&mut self, now_ms: u64) -> Result<(), Duration> {
        self.fill(now_ms);
        let short = self.missing + 1.0 - self.holds;
        if short <= 0.0 {
            return Ok(());
        }
        Err(Duration::from_secs_f64(
            (short / self.per_ms / 1000.0).clamp(0.001, LONGEST_WAIT),
        ))
    }

    /// Takes this many, even more than there are: what an answer costs is known only when it has ended.
    pub fn spend(&mut self, used: u64, now_ms: u64) {
        self.fill(now_ms);
        self.missing += used as f64;
    }

    /// Returns what has been taken and not refilled, rounded up.
    pub fn missing(&mut self, now_ms: u64) -> u64 {
        self.fill(now_ms);
        self.missing.ceil() as u64
    }

    fn fill(&mut self, now_ms: u64) {
        let passed = now_ms.saturating_sub(self.at_ms);
        // After a clock that was far ahead is corrected, the bucket must not stay empty until that time.
        let far_back = self.at_ms.saturating_sub(now_ms) > FAR_MS;
        self.at_ms = if far_back {
            now_ms
        } else {
            self.at_ms.max(now_ms)
        };
        self.missing = (self.missing - passed as f64 * self.per_ms).max(0.0);
    }
}

/// Ordinary corrections of a clock are smaller.
const FAR_MS: u64 = 60_000;
/// In seconds, as a bound on the arithmetic.
const LONGEST_WAIT: f64 = 10.0 * 365.0 * 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn take(bucket: &mut Bucket, now_ms: u64) -> Result<(), Duration> {
        bucket.check(now_ms)?;
        bucket.spend(1, now_ms);
        Ok(())
    }

    #[test]
    fn a_burst_is_granted_then_refills_evenly() {
        let mut bucket = Bucket::new(3, MINUTE, 0, 1_000);
        for _ in 0..3 {
            assert_eq!(take(&mut bucket, 1_000), Ok(()));
        }
        assert_eq!(take(&mut bucket, 1_000), Err(Duration::from_secs(20)));
        assert_eq!(take(&mut bucket, 11_000), Err(Duration::from_secs(10)));
        assert_eq!(take(&mut bucket, 21_000), Ok(()));
        assert!(take(&mut bucket, 21_000).is_err());
        // It never holds more than its capacity.
        assert_eq!(bucket.missing(10_000_000), 0);
        assert_eq!(
            (0..9)
                .filter(|_| take(&mut bucket, 10_000_000).is_ok())
                .count(),
            3
        );
    }

    #[test]
    fn a_deficit_refills_before_the_next_grant() {
        let day = Duration::from_secs(86_400);
        let mut bucket = Bucket::new(86_400, day, 0, 0);
        bucket.spend(86_500, 0);
        assert_eq!(bucket.check(0), Err(Duration::from_secs(101)));
        assert_eq!(bucket.missing(100_000), 86_400);
        // It survives being stored.
        let mut again = Bucket::new(86_400, day, bucket.missing(100_000), 100_000);
        assert_eq!(again.check(100_000), bucket.check(100_000));
        assert_eq!(again.check(101_000), Ok(()));
    }

    #[test]
    fn a_wait_is_at_most_ten_years() {
        let mut bucket = Bucket::new(1, MINUTE, u64::MAX, 0);
        let ten_years = Duration::from_secs(315_360_000);
        assert_eq!(bucket.check(0), Err(ten_years));
    }

    #[test]
    fn a_clock_set_back_grants_nothing_twice() {
        let mut bucket = Bucket::new(1, MINUTE, 0, 60_000);
        assert_eq!(take(&mut bucket, 60_000), Ok(()));
        assert!(take(&mut bucket, 0).is_err());
        assert!(take(&mut bucket, 90_000).is_err());
        assert_eq!(take(&mut bucket, 120_000), Ok(()));
        // A clock that was years ahead is corrected at once.
        let years = 1_000_000_000_000;
        assert_eq!(take(&mut bucket, years), Ok(()));
        assert!(take(&mut bucket, 700_000).is_err());
        assert_eq!(take(&mut bucket, 760_000), Ok(()));
    }

    #[test]
    fn a_clock_set_back_by_over_a_minute_starts_the_bucket_anew() {
        let taken_then_set_back = |by: u64| {
            let start = 10_000_000;
            let mut bucket = Bucket::new(1, MINUTE, 0, start);
            assert_eq!(take(&mut bucket, start), Ok(()));
            assert!(take(&mut bucket, start - by).is_err());
            take(&mut bucket, start - by + 60_000)
        };
        assert!(taken_then_set_back(FAR_MS).is_err());
        assert_eq!(taken_then_set_back(FAR_MS + 1), Ok(()));
    }

    proptest! {
        #[test]
        fn a_limit_refills_up_to_its_capacity(
            holds in 1u64..1000,
            steps in prop::collection::vec(0u64..100_000, 1..200),
        ) {
            let mut bucket = Bucket::new(holds, MINUTE, 0, 0);
            let (mut now, mut taken) = (0u64, 0u64);
            for step in steps {
                now += step;
                match take(&mut bucket, now) {
                    Ok(()) => taken += 1,
                    Err(wait) => {
                        prop_assert!(wait > Duration::ZERO && wait <= MINUTE);
                        let then = now + u64::try_from(wait.as_millis()).unwrap() + 1;
                        prop_assert!(bucket.clone().check(then).is_ok());
                    }
                }
                prop_assert!(taken <= holds + now * holds / 60_000 + 1);
            }
        }
    }
}
