//! The back-off of a transfer: how long to wait after a failure, and when to give up.

use super::{Terms, source::Trouble};
use std::time::Duration;
use tierbar_core::Error;
use tokio::time::Instant;

/// After this many wrong answers, each after a wait and without progress, an answer is taken as true.
const WRONG_ANSWERS: u32 = 5;
/// The longest `Retry-After` that is honored.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(15 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Counts failures since the last progress. The connections of a transfer fail together: failures during the wait after
/// a failure count as the same one.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    wrong: u32,
    /// Why nothing arrives, in one sentence.
    pub(super) reason: String,
    waits_until: Option<Instant>,
    /// The furthest offset of a stream that cannot be resumed.
    farthest: u64,
}

impl Backoff {
    pub(super) fn reset(&mut self) {
        self.failures = 0;
        self.wrong = 0;
        self.waits_until = None;
    }

    /// Returns how long to wait after a 429 or 503, at least as long as the server asks.
    pub(super) fn after_busy(
        &mut self,
        error: Error,
        after: Option<Duration>,
        terms: &Terms,
    ) -> Duration {
        self.reason = error.message;
        let requested = after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        self.fail(false, terms).max(requested)
    }

    /// Returns how long to wait after an answer that cannot be right, or `None` once there were too many.
    pub(super) fn after_wrong_answer(&mut self, why: &str, terms: &Terms) -> Option<Duration> {
        why.clone_into(&mut self.reason);
        let wait = self.fail(true, terms);
        (self.wrong < WRONG_ANSWERS).then_some(wait)
    }

    /// Classifies the early end of a stream that cannot be resumed. One that gets no further than the last would be
    /// downloaded forever.
    pub(super) fn after_broken_stream(&mut self, at: u64, error: Error) -> Trouble {
        if at > self.farthest {
            self.farthest = at;
            self.reset();
            return Trouble::Passing(error);
        }
        let hint = "the server cannot resume a download, and each attempt was interrupted; download from another source";
        Trouble::Wrong(error.hint(hint))
    }

    /// Returns how long to wait before the next try.
    ///
    /// # Errors
    /// Those that another try cannot fix.
    pub(super) fn next_wait(&mut self, trouble: Trouble, terms: &Terms) -> Result<Duration, Error> {
        match trouble {
            Trouble::Fatal(error) => Err(error),
            Trouble::Busy(error, after) => Ok(self.after_busy(error, after, terms)),
            Trouble::Passing(error) => {
                self.reason = error.message;
                Ok(self.fail(false, terms))
            }
            Trouble::Wrong(error) => self.after_wrong_answer(&error.message, terms).ok_or(error),
            // Handled by the caller: they need another request, not the same again.
            Trouble::Changed | Trouble::Whole(_) | Trouble::Beyond(_) => Ok(Duration::ZERO),
        }
    }

    /// The wait doubles with each failure. Half of it is random, so that many clients do not return at once.
    fn fail(&mut self, wrong: bool, terms: &Terms) -> Duration {
        let now = Instant::now();
        let another = self.waits_until.is_none_or(|until| now >= until);
        if another {
            self.failures += 1;
            self.wrong += u32::from(wrong);
        }
        let doublings = self.failures.saturating_sub(1).min(16);
        let most = (terms.first_wait * 2u32.pow(doublings)).min(LONGEST_WAIT);
        let wait = most / 2 + most.mul_f64(random() / 2.0);
        if another {
            self.waits_until = Some(now + wait);
        }
        wait
    }
}

/// Returns a random number in 0..1.
fn random() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn passing() -> Trouble {
        Trouble::Passing(Error::new(Code::Unreachable, "no network"))
    }

    fn wrong() -> Trouble {
        Trouble::Wrong(Error::new(Code::Corrupt, "wrong"))
    }

    /// Sleeps for each wait.
    async fn waited(backoff: &mut Backoff, trouble: Trouble) -> Duration {
        let wait = backoff.next_wait(trouble, &Terms::default()).unwrap();
        tokio::time::sleep(wait).await;
        wait
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_30_s_and_never_fail() {
        let (mut backoff, terms) = (Backoff::default(), Terms::default());
        for tries in 0..100 {
            let wait = waited(&mut backoff, passing()).await;
            let most = (terms.first_wait * 2u32.pow(tries.min(16))).min(LONGEST_WAIT);
            assert!((most / 2..=most).contains(&wait), "{tries}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next_wait(passing(), &terms).unwrap() <= terms.first_wait);
    }

    #[tokio::test(start_paused = true)]
    async fn simultaneous_failures_count_as_one() {
        let (mut backoff, terms) = (Backoff::default(), Terms::default());
        for failures in 0..3 {
            let waits: Vec<_> = (0..2 * WRONG_ANSWERS)
                .map(|_| backoff.next_wait(wrong(), &terms).unwrap())
                .collect();
            let most = terms.first_wait * 2u32.pow(failures);
            assert!(waits.iter().all(|wait| *wait <= most), "{waits:?}");
            tokio::time::sleep(most).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_wrong_answers_fail_unless_progress_is_made() {
        let (mut backoff, terms) = (Backoff::default(), Terms::default());
        for _ in 0..3 {
            for _ in 1..WRONG_ANSWERS {
                waited(&mut backoff, wrong()).await;
            }
            backoff.reset();
        }
        for _ in 1..WRONG_ANSWERS {
            waited(&mut backoff, wrong()).await;
        }
        assert_eq!(
            backoff.next_wait(wrong(), &terms).unwrap_err().message,
            "wrong"
        );
    }

    #[test]
    fn retry_after_is_honored_up_to_15_minutes() {
        let (mut backoff, terms) = (Backoff::default(), Terms::default());
        let mut wait = |seconds| {
            let error = Error::new(Code::Unreachable, "busy");
            backoff.after_busy(error, Some(Duration::from_secs(seconds)), &terms)
        };
        assert_eq!(wait(120), Duration::from_secs(120));
        assert_eq!(wait(1_000_000), LONGEST_RETRY_AFTER);
    }
}
